"""Each action of the registry is reached by key, by palette and by mouse: one without a way in fails here.

Where an action is not valid in the scene, the condition that it needs is set; what runs is noted. Focus, bindings,
footer, palette and the menu of keys are the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import msgspec
import pytest
from app_scenes import Scene
from app_world import calm, look, screen_of, settled, until
from textual.command import CommandList
from textual.containers import VerticalScroll
from textual.widgets import Input

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import LISTS, ActionContext
from cockpit.app.actions.list_actions import _load_class
from cockpit.app.actions.palette import Palette
from cockpit.app.actions.registry import ACTIONS
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.backlog_form import FormDialog
from cockpit.app.dialogs.help import Help, HelpText
from cockpit.app.dialogs.key_menu import KeyMenuDialog
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.app.screens.board_screen import BoardScreen
from cockpit.app.screens.cockpit_screen import CockpitScreen
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.app.screens.panes import PANES
from cockpit.store.sessions import proposals
from widgets.frame.footer import KeyBar
from widgets.frame.key_menu import KeyMenu
from widgets.proposals.waiting_rows import WaitingRows

pytestmark = pytest.mark.slow

SIZE = (160, 45)
OPENERS = ("palette", "keys", "help")
"""Ways to other actions, which run for real."""
WIDGETS_OWN = {action.id for action in ACTIONS if action.run is None}
TRIES: dict[str, tuple[Any, ...]] = {
    "proposal_kind": ("action", "context", "permission"),
    "task_status": ("todo", "in_progress", "review", "done", "blocked", "archived"),
    "chain_status": ("running", "stopped"),
    "row_verbs": (tuple(verb.partition("_")[2] for verb in ()),),
    "proposal_count": (2,),
}


def set_flips(context: ActionContext, action: Action[Any]) -> dict[str, Any]:
    """Return the fewest fields to change so that the action is valid."""
    verb = action.id.removeprefix(f"{action.pane}_")
    options = [(name, not value) for name, value in fields(context) if isinstance(value, bool)]
    options += [(name, value) for name, some in TRIES.items() for value in some]
    options.append(("row_verbs", (verb,)))
    for count in range(4):
        for flips in combinations(options, count):
            if action.when(msgspec.structs.replace(context, **dict(flips))):
                return dict(flips)
    raise AssertionError(f"{action.id} is never valid in {context.pane}")


def fields(context: ActionContext) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(context, name)) for name in context.__struct_fields__)


class Ways:
    """An app whose actions only say that they ran, and the conditions that are set."""

    def __init__(self, app: CockpitApp, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app = app
        self.ran: list[str] = []
        self.forced: dict[str, Any] = {}
        self.keyed: set[str] = set()
        self.listed: set[str] = set()
        self.clicked: set[str] = set()
        app.actions = tuple(
            action if action.id in OPENERS or action.run is None
            else replace(action, run=lambda _, name=action.id: self.ran.append(name))
            for action in app.actions
        )  # fmt: skip
        for screen in (CockpitScreen, BacklogScreen, ListScreen):
            real = screen.__dict__["context"].fget
            monkeypatch.setattr(
                screen,
                "context",
                property(lambda s, real=real: msgspec.structs.replace(real(s), **self.forced)),
            )
        monkeypatch.setattr(
            ListScreen,
            "_labels",
            lambda screen: {
                action.id.removeprefix(f"{screen.PANE}_"): action.label
                for action in ACTIONS
                if action.pane == screen.PANE
            },
        )

    def group(
        self, screen: Any, actions: list[Action[Any]]
    ) -> list[tuple[dict[str, Any], list[Any]]]:
        """Return sets of conditions, each with actions that are valid under it at once."""
        self.forced = {}
        base = screen.context
        groups: list[tuple[dict[str, Any], list[Any]]] = []
        for action in actions:
            flips = set_flips(base, action)
            for forced, others in groups:
                both = {**forced, **flips}
                context = msgspec.structs.replace(base, **both)
                here = {each.id for _, each in screen._actions.pressable(context)}
                if forced == {**both, **forced} and all(
                    each.when(context) and (each.id in here or not each.press)
                    for each in (*others, action)
                ):
                    forced.update(flips)
                    others.append(action)
                    break
            else:
                groups.append((flips, [action]))
        return groups

    async def try_all(self, pilot: Any, screen: Any, actions: list[Action[Any]]) -> None:
        for forced, some in self.group(screen, actions):
            self.forced = forced
            screen.update_hints()
            for action in some:
                await self.press(pilot, screen, action)
            if any(action.palette for action in some):
                await self.list_in_palette(pilot, screen, some)
            if any(action.press for action in some):
                await self.click_in_menu(pilot, screen, some)
            self.forced = {}

    async def press(self, pilot: Any, screen: Any, action: Action[Any]) -> None:
        if action.run is None or action.id in OPENERS:
            return
        for key in (*action.keys, *action.pane_keys):
            self.ran.clear()
            pilot.app.simulate_key(key)
            await pilot.pause()
            await until(pilot, lambda: self.ran or pilot.app.screen is not screen)
            assert self.ran == [action.id], f"{key} of {action.id} ran {self.ran}"
            self.keyed.add(action.id)

    async def list_in_palette(self, pilot: Any, screen: Any, actions: list[Action[Any]]) -> None:
        bar = screen.query_one(KeyBar)
        hint = next((each for each in bar.hints if each.label == "palette"), None)
        if hint is None:
            pilot.app.simulate_key("ctrl+p")
        else:
            await pilot.click(bar, offset=(bar.gutter.left + str(bar.render()).index("palette"), 0))
        await until(pilot, lambda: isinstance(pilot.app.screen, Palette))
        rows = pilot.app.screen.query_one(CommandList)
        wanted = {action.title for action in actions if action.palette}
        await until(pilot, lambda: wanted <= {str(row.hit.text) for row in rows.options})
        commands = {str(row.hit.text): row.hit.command for row in rows.options}
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        for action in actions:
            if action.palette and action.id not in OPENERS:
                self.ran.clear()
                commands[action.title]()
                assert self.ran == [action.id]
                self.listed.add(action.id)

    async def click_in_menu(self, pilot: Any, screen: Any, actions: list[Action[Any]]) -> None:
        screen.act("keys")
        await until(pilot, lambda: isinstance(pilot.app.screen, KeyMenuDialog))
        dialog = pilot.app.screen
        menu = dialog.query_one(KeyMenu)
        await until(pilot, lambda: menu.size.width > 0)
        scroll = dialog.query_one("#keys", VerticalScroll)
        pressed: list[str] = []
        dialog.dismiss = pressed.append
        keys = {action.id: key for key, action in screen.pressable()}
        for y, (_, entries) in enumerate(menu._lay_out(menu.size.width)):
            for hint, first, _ in entries:
                ids = [each.id for each in actions if keys.get(each.id) == hint.press]
                if not ids:
                    continue
                scroll.scroll_to(y=y, animate=False, immediate=True)
                await pilot.pause()
                await pilot.click(menu, offset=(first + 1, y))
                await until(pilot, lambda: pressed)
                assert pressed.pop() == hint.press
                self.clicked |= set(ids)
        del dialog.dismiss
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)


async def test_each_action_is_reached_by_key_palette_and_mouse(still, project, monkeypatch):
    scene = Scene(still.store, project).begin().wave("observing").ask("p-1")
    app = CockpitApp(still)
    ways = Ways(app, monkeypatch)
    async with app.run_test(size=SIZE) as pilot:
        app.attach(scene.session_id)
        main = await settled(pilot)
        for pane in ("prompt", *PANES):
            (main.prompt if pane == "prompt" else main.panes.pane(pane)).focus()
            await until(pilot, lambda pane=pane: main.pane == pane)
            places = (
                {pane, "tasks"} if pane == "work" else {pane, ""} if pane == "prompt" else {pane}
            )
            here = [each for each in ACTIONS if each.pane in places and each.id != "save"]
            board = [each for each in here if each.needs == "the board"]
            await ways.try_all(pilot, main, [each for each in here if each not in board])
        for screen, actions in [
            (BoardScreen(app), [each for each in ACTIONS if each.needs == "the board"]),
            *((_load_class(name)(app), [a for a in ACTIONS if a.pane == name]) for name in LISTS),
        ]:
            await app.open_screen(screen)
            await calm(pilot)
            await ways.try_all(pilot, screen, actions)
            screen.dismiss(None)
            await until(pilot, lambda: app.screen is main)
    palette_only = {action.id for action in ACTIONS if not action.press}
    by_widget = WIDGETS_OWN | set(OPENERS)
    every = {action.id for action in ACTIONS}
    assert every - palette_only - by_widget - ways.keyed == set(), "no key reaches these"
    in_palette = {action.id for action in ACTIONS if action.palette} - set(OPENERS)
    assert in_palette - ways.listed == set(), "the palette does not reach these"
    assert every - ways.clicked - ways.listed - {"save"} == set(), "no click reaches these"
