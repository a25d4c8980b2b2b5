"""A proposal is drawn once and whole: nothing stands twice, and what has nothing to show can be approved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from app_scenes import BEFORE, ITEMS, Scene, current
from app_world import look, on_screen, status_of, text_of, until, write
from permission_scenes import Agents
from textual.containers import VerticalScroll

from cockpit.app import key_hints
from cockpit.app.actions.context import ActionContext
from cockpit.app.actions.registry import ACTIONS
from cockpit.app.actions.screen_actions import ScreenActions

pytestmark = pytest.mark.slow

EMPTY: dict[str, dict[str, Any]] = {
    "nothing": {},
    "only signs": {"body": "#\n\n-\n\n> \n"},
    "no change": {"diffs": [("a.py", "a\n", "a\n")], "title": "edit a.py (+0 −0)"},
    "the title has every field": {"fields": [("argv", "make")], "title": "run make"},
}


async def test_what_has_nothing_to_show_says_so_and_is_approved(still, project):
    async with on_screen(still, size=(80, 24)) as (pilot, app, screen):
        for shape, more in EMPTY.items():
            scene = (
                Scene(still.store, project).begin(shape).wave("observing").propose(shape, **more)
            )
            app.attach(scene.session_id)
            await look(pilot)
            if shape in ("nothing", "the title has every field"):
                assert "Nothing more to show" in text_of(app)
            assert screen.key_policy.is_armed, text_of(app)
            await pilot.press("enter")
            await until(pilot, lambda shape=shape: status_of(still, shape) == "approved")


async def test_page_down_in_the_prompt_reads_a_proposal_on(still, project):
    scene = Scene(still.store, project).begin().wave("observing")
    scene.propose("p-1", body="\n\n".join(f"word{place}" for place in range(24)))
    async with on_screen(still, scene.session_id, size=(80, 24), ready=look) as (pilot, _, screen):
        scroll = screen.panes.proposals.query_one("#proposal-scroll", VerticalScroll)
        assert not screen.key_policy.is_read
        for _ in range(60):
            if screen.key_policy.is_read:
                break
            assert screen.pane == "prompt"
            before = scroll.scroll_offset.y
            await pilot.press("pagedown")
            await until(pilot, lambda before=before: scroll.scroll_offset.y > before)
            await look(pilot)
        assert screen.key_policy.is_read
        await pilot.press("pageup")
        await until(pilot, lambda: scroll.scroll_offset.y < scroll.max_scroll_y)


TWO_PLACES = f"# the start\n{BEFORE}# the end\n"


def begin(store, root, kind: str, propose: Callable[[Scene, str], object] | None) -> str:
    """Begin a session with a proposal of a kind; without ``propose`` it is an agent's permission."""
    if propose is None:
        agents = Agents(store, root)
        session_id = agents.begin("claude", kind)
        agents.ask(session_id, kind, getattr(agents, kind)())
        return session_id
    scene = Scene(store, root).begin(kind).wave("observing")
    propose(scene, kind)
    return scene.session_id


OPTIONAL = ("narrow", "edit", "always", "hunks", "whole_change")
KINDS: dict[str, tuple[Callable[[Scene, str], object] | None, set[str]]] = {
    "context": (lambda s, name: s.ask(name), {"narrow"}),
    "context of one item": (lambda s, name: s.ask(name, items=ITEMS[:1]), set()),
    "edit in one place": (lambda s, name: s.edit(name), {"edit", "whole_change"}),
    "edit in two places": (
        lambda s, name: s.propose(name, diffs=[("a.py", BEFORE, TWO_PLACES)]),
        {"edit", "whole_change", "hunks"},
    ),
    "run": (lambda s, name: s.propose(name, kind="run", fields=[("argv", "make")]), {"edit"}),
    "profile": (lambda s, name: s.shift_attention(name), set()),
    "edit": (None, {"always", "edit", "whole_change"}),
    "command": (None, {"always", "edit"}),
    "questions": (None, set()),
}


def test_keys_are_offered_where_they_do_something(still, project):
    for kind, (propose, works) in KINDS.items():
        session_id = begin(still.store, project, kind, propose)
        queue = current(still.store, session_id).views(still.store.clock.now(), session_id).queue
        context = ActionContext(pane="proposals").about(queue.front)
        valid = {each.id for _, each in ScreenActions(ACTIONS).pressable(context)}
        assert valid & set(OPTIONAL) == works, kind
        shown = {hint.press for hint in key_hints.proposal_hints(ACTIONS, queue, pane="proposals")}
        for action in ACTIONS:
            if action.id in OPTIONAL and action.id not in works:
                assert action.press not in shown or not action.press, kind


def propose_runs(scene: Scene, *paths: str, risk: str = "low") -> Scene:
    for path in paths:
        argv = f"pytest -q tests/{path}"
        fields = [
            ("argv", argv),
            ("sandbox", "reading: project read-only"),
            ("reason", f"see {path}"),
        ]
        scene.propose(path, title=f"run {argv}", kind="run", risk=risk, fields=fields)
    return scene


async def look_until_armed(pilot) -> None:
    """Look for as long as it takes: a proposal that gets more room is seen anew."""
    screen = await look(pilot)
    while not screen.key_policy.is_armed:
        await look(pilot)


async def test_what_is_alike_in_one_answer_is_drawn_and_approved_as_one(still, project):
    scene = propose_runs(Scene(still.store, project).begin().wave("observing"), "a", "b", "c")
    propose_runs(scene, "d", risk="medium")
    async with on_screen(still, scene.session_id, size=(120, 40), ready=look) as (
        pilot,
        app,
        screen,
    ):
        shown = text_of(app)
        assert "3 alike of 4" in shown
        assert all(f"{place} of 3" in shown for place in (1, 2, 3))
        assert all(f"see {path}" in shown for path in "abc")
        assert "see d" not in shown
        assert "approve all 3" in shown
        await pilot.press("alt+n")  # one by one, from the first
        await look_until_armed(pilot)
        assert [each.proposal_id for each in screen.queue.front.together] == ["a"]
        await pilot.press("enter")
        await until(pilot, lambda: status_of(still, "a") == "approved")
        await look_until_armed(pilot)
        assert [each.proposal_id for each in screen.queue.front.together] == ["b", "c"]
        await pilot.press("escape")
        await write(pilot, "why b?", "enter")
        await until(pilot, lambda: status_of(still, "b") == "discussed")
        assert status_of(still, "c") == "pending", "words answer the first of them"
        propose_runs(scene, "e", "f")
        await look_until_armed(pilot)
        assert [each.proposal_id for each in screen.queue.front.together] == ["c", "e", "f"]
        await pilot.press("enter")
        await until(pilot, lambda: {status_of(still, each) for each in "cef"} == {"approved"})
        assert status_of(still, "d") == "pending"


async def test_requests_that_are_alike_need_all_of_them_read(still, project):
    scene = Scene(still.store, project).begin().wave("observing")
    for name in ("p-1", "p-2"):
        scene.ask(
            name, items=[(f"{name}-{place}.py", 10, "situational", "") for place in range(20)]
        )
    scene.ask("p-0").decide("p-0", "discussed").ask("p-3", revises="p-0", changes=["+ p-3.py"])
    async with on_screen(still, scene.session_id, size=(100, 30), ready=look) as (
        pilot,
        _,
        screen,
    ):
        assert [each.proposal_id for each in screen.queue.front.together] == ["p-1", "p-2"]
        assert not screen.context.can_narrow, "that is for one of them"
        while not screen.key_policy.is_read:
            assert status_of(still, "p-1") == "pending"
            await pilot.press("enter")
            await look(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: {status_of(still, f"p-{n}") for n in "12"} == {"approved"})
        await look(pilot)
        assert screen.queue.front.proposal_id == "p-3", "what answers a discussion is by itself"
        assert status_of(still, "p-3") == "pending"
