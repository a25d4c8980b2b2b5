"""Under every kind of proposal each offered key does something, and stands once on the screen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from app_scenes import BEFORE, ITEMS, Scene
from app_world import look, until
from permission_scenes import Agents

from cockpit.app.actions.registry import ACTIONS
from cockpit.app.application import CockpitApp
from widgets.frame.footer import KeyBar

pytestmark = pytest.mark.slow

TWO_PLACES = f"# the start\n{BEFORE}# the end\n"
SIZES = ((60, 20), (80, 24), (100, 30), (160, 45), (250, 70))


def permission(kind: str) -> Callable[[Scene], str]:
    def ask(scene: Scene) -> str:
        agents = Agents(scene.store, scene.root)
        session_id = agents.begin("claude", "reset the backoff")
        agents.ask(session_id, "p-1", getattr(agents, kind)())
        return session_id

    return ask


def own(step: Callable[[Scene], object]) -> Callable[[Scene], str]:
    def ask(scene: Scene) -> str:
        step(scene.begin().wave("observing"))
        return scene.session_id

    return ask


def ask_twice(scene: Scene) -> None:
    scene.ask("p-1").ask("p-2")


OPTIONAL = ("narrow", "edit", "always", "hunks", "whole_change", "next", "previous")
KINDS: dict[str, tuple[Callable[[Scene], str], set[str]]] = {
    "context": (own(lambda s: s.ask()), {"narrow"}),
    "context of one item": (own(lambda s: s.ask(items=ITEMS[:1])), set()),
    "equal contexts": (own(ask_twice), {"narrow", "next", "previous"}),
    "edit in one place": (own(lambda s: s.edit()), {"edit", "whole_change"}),
    "edit in two places": (
        own(lambda s: s.propose(diffs=[("a.py", BEFORE, TWO_PLACES)])),
        {"edit", "whole_change", "hunks"},
    ),
    "new file": (
        own(lambda s: s.propose(kind="write_file", diffs=[("a.py", None, "a\n\nb\n\n")])),
        {"edit", "whole_change"},
    ),
    "command": (own(lambda s: s.propose(kind="run", fields=[("argv", "make")])), {"edit"}),
    "gh": (own(lambda s: s.review(risk="high")), {"edit"}),
    "profile": (own(lambda s: s.shift_attention()), set()),
    "permission to edit": (permission("edit"), {"always", "edit", "whole_change"}),
    "permission to run": (permission("command"), {"always", "edit"}),
    "permission for a server": (permission("server"), {"always", "edit"}),
    "questions": (permission("questions"), set()),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_keys_are_offered_where_they_do_something(still, project, kind):
    begin, works = KINDS[kind]
    session_id = begin(Scene(still.store, project))
    app = CockpitApp(still)
    async with app.run_test(size=(160, 45)) as pilot:
        app.attach(session_id)
        screen = await look(pilot)
        screen.panes.proposals.focus()
        await pilot.pause()
        valid = {each.id for _, each in screen.pressable()}
        assert valid & set(OPTIONAL) == works
        drawn = {hint.press for hint in screen.panes.proposals.hints}
        for action in ACTIONS:
            if action.id in OPTIONAL and action.id not in works:
                assert action.press not in drawn or not action.press
        for key, opened in (("a", "always"), ("v", "whole_change"), ("n", "narrow")):
            await pilot.press(key)
            has_opened = app.screen is not screen or screen.panes.proposals.narrowing
            assert has_opened == (opened in works), key
            if has_opened:
                await pilot.press("escape")
                await look(pilot)
                screen.panes.proposals.focus()


@pytest.mark.parametrize("kind", ["context", "edit in two places", "permission to edit"])
async def test_each_key_stands_once_at_every_size(still, project, kind):
    session_id = KINDS[kind][0](Scene(still.store, project))
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        app.attach(session_id)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            screen = await look(pilot)
            panel, bar = screen.panes.proposals, screen.query_one(KeyBar)

            def keys(panel=panel, bar=bar) -> list[str]:
                return [*panel.list_keys(), *(hint.press for hint in bar.hints)]

            await until(pilot, lambda keys=keys: len(keys()) == len(set(keys())))
            assert {"enter", "escape", "ctrl+x"} <= set(keys()), size
