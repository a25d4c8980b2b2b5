"""Each action of the registry is reached by key, by palette and by mouse: one without a way in fails here.

Where an action is not valid in the scene, the condition that it needs is set; what runs is noted. Focus,
bindings, footer, palette and the menu of keys are the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec
import pytest
from app_scenes import Scene
from app_world import calm, look, settled, until
from msgspec.structs import replace
from textual.command import CommandList
from textual.containers import VerticalScroll
from textual.events import Paste
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
from cockpit.app.dialogs.peek_session import PeekDialog
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.app.screens.board_screen import BoardScreen
from cockpit.app.screens.cockpit_screen import CockpitScreen
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.app.screens.panes import PANES
from cockpit.app.screens.task_screen import TaskScreen
from cockpit.backlog import service
from cockpit.store.sessions import proposals
from widgets.conversation.conversation import Conversation
from widgets.frame.footer import KeyBar
from widgets.frame.key_menu import KeyMenu
from widgets.proposals.waiting_rows import WaitingRows

pytestmark = pytest.mark.slow

SIZE = (160, 45)
LOOKS = 50
OPENERS = ("palette", "keys", "help")
"""Ways to other actions, which run for real."""
WIDGETS_OWN = {action.id for action in ACTIONS if action.run is None}
ON_BOARD = [action for action in ACTIONS if action.needs == "the board" or action.id == "open_task"]
TRIES: dict[str, tuple[Any, ...]] = {
    "proposal_kind": ("action", "context", "permission"),
    "task_status": ("todo", "in_progress", "review", "done", "blocked", "archived"),
    "chain_status": ("running", "stopped"),
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
        self.wrong: list[str] = []
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
            for _ in range(LOOKS):
                if self.ran:
                    break
                await pilot.pause()
            if self.ran == [action.id]:
                self.keyed.add(action.id)
            else:
                self.wrong.append(f"{key} of {action.id} ran {self.ran} under {self.forced}")

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
    # The pane copies by itself, as it does without a screen around it.
    monkeypatch.setattr(Conversation, "action_copy", lambda _: ways.ran.append("copy_block"))
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
            await ways.try_all(pilot, main, [each for each in here if each not in ON_BOARD])
        for screen, actions in [
            (BoardScreen(app), ON_BOARD),
            *((_load_class(name)(app), [a for a in ACTIONS if a.pane == name]) for name in LISTS),
        ]:
            await app.open_screen(screen)
            await calm(pilot)
            screen.body.focus()  # a field of questions has the focus first, where there is one
            await ways.try_all(pilot, screen, actions)
            screen.dismiss(None)
            await until(pilot, lambda: app.screen is main)
    assert not ways.wrong, "\n".join(ways.wrong)
    palette_only = {action.id for action in ACTIONS if not action.press}
    by_widget = WIDGETS_OWN | set(OPENERS)
    every = {action.id for action in ACTIONS}
    assert every - palette_only - by_widget - ways.keyed == set(), "no key reaches these"
    in_palette = {action.id for action in ACTIONS if action.palette} - set(OPENERS)
    assert in_palette - ways.listed == set(), "the palette does not reach these"
    assert every - ways.clicked - ways.listed - {"save"} == set(), "no click reaches these"


async def test_keys_of_widgets_and_clicks_elsewhere(still, project, monkeypatch):
    """The actions that a widget handles itself, and what can be clicked besides footers and menus."""
    other = Scene(still.store, project).begin("fix it", title="Fix it").wave("observing").ask("p-1")
    scene = Scene(still.store, project).begin().wave("observing")
    scene.propose("p-2", risk="high", body="Do it.").propose("p-3", risk="low", body="And it.")
    still.store.write_now(lambda tx: service.create_task(tx, "Seed the jitter", by="person"))
    app = CockpitApp(still)
    sent: list[str] = []
    keyed: set[str] = set()

    def status(name: str) -> str:
        return still.store.read_now(lambda c: proposals.load(c, name)).status

    async with app.run_test(size=SIZE) as pilot:
        app.attach(scene.session_id)
        main = await look(pilot)
        prompt, panes = main.prompt, main.panes
        monkeypatch.setattr(app, "send_message", lambda text, *_: sent.append(text))

        # Decisions: a high risk takes two keys.
        await pilot.press("escape")
        await until(pilot, lambda: main.key_policy.discussing is not None)
        await pilot.press("escape")
        await until(pilot, lambda: main.key_policy.discussing is None)
        await look(pilot)
        await pilot.press("enter", "y")
        await until(pilot, lambda: status("p-2") == "approved")
        await until(pilot, lambda: main.queue.front is not None and main.front_id == "p-3")
        await look(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: status("p-3") == "approved")
        keyed |= {"discuss", "approve", "second"}

        # The prompt.
        for key in ("shift+enter", "ctrl+j", "alt+enter"):
            await pilot.press("a", key, "b")
            assert prompt.text == "a\nb", key
            await pilot.press("ctrl+u", "ctrl+u", "ctrl+u")
        assert prompt.text == ""
        await pilot.press("ctrl+underscore")
        assert prompt.text != ""
        prompt.put("later")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: prompt.text == "")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: prompt.text == "later")
        prompt.put("")
        app.post_message(Paste("\n".join(["long"] * 3_000)))
        await until(pilot, lambda: "lines]" in prompt.text)
        await pilot.press("alt+o")
        await until(pilot, lambda: prompt.text.count("long") == 3_000)
        prompt.put("go on")
        await pilot.press("enter")
        await until(pilot, lambda: sent == ["go on"])
        await pilot.press("ctrl+r")
        await until(pilot, lambda: main.context.list_open)
        await pilot.press("escape", "ctrl+z")
        await until(pilot, lambda: any("No shell" in each.message for each in app._notifications))
        keyed |= {"newline", "clear", "undo", "stash", "unfold_paste", "send", "history", "suspend"}
        prompt.put("")

        # A row of another session takes you there; a title fills the screen, and gives it back.
        rows = main.query_one(WaitingRows)
        await until(pilot, lambda: rows.size.height and not main.context.list_open)
        await pilot.click(rows)
        await until(pilot, lambda: app.session_id == other.session_id and main.front_id == "p-1")
        await settled(pilot)
        for _ in range(2):
            before = panes.is_zoomed
            await pilot.click(panes.conversation, offset=(4, 0))
            await until(pilot, lambda before=before: panes.is_zoomed != before)

        # The ellipsis of a footer shows all keys; the help runs what is clicked, where it is valid.
        await pilot.resize_terminal(60, 24)
        await settled(pilot)
        bar = main.query_one(KeyBar)
        await pilot.click(bar, offset=(bar.gutter.left + str(bar.render()).index("…"), 0))
        await until(pilot, lambda: isinstance(app.screen, KeyMenuDialog))
        drawn = app.screen._compositor.render_strips()
        y = next(at for at, strip in enumerate(drawn) if "esc back" in strip.text)
        await pilot.click(offset=(drawn[y].text.index("esc back") + 1, y))
        await until(pilot, lambda: app.screen is main)
        await pilot.resize_terminal(*SIZE)
        await settled(pilot)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help))
        text = app.screen.query_one(HelpText)
        head, columns = text._lay_out(text.content_size.width)
        cells = text.content_size.width // len(columns)
        x, place = next(
            (number * cells + 4, len(head) + at)
            for number, column in enumerate(columns)
            for at, (_, name) in enumerate(column)
            if name == "board"
        )
        app.screen.query_one("#help", VerticalScroll).scroll_to(
            y=place, animate=False, immediate=True
        )
        await calm(pilot)
        await pilot.click(text, offset=(x, place))
        await until(pilot, lambda: isinstance(app.screen, BoardScreen))

        # Rows of tasks and sessions, and a form.
        await calm(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen))
        await pilot.press("escape", "n")
        await until(pilot, lambda: isinstance(app.screen, FormDialog))
        app.screen.query_one(Input).value = "Written down"
        await calm(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "T-2" in app.state.work.tasks)
        await until(pilot, lambda: isinstance(app.screen, BoardScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is main)
        panes.work.focus()
        panes.work.turn_to(scene.session_id)
        await pilot.press("space")
        await until(pilot, lambda: isinstance(app.screen, PeekDialog))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is main)
        await pilot.press("enter")
        await until(pilot, lambda: app.session_id == scene.session_id)
        keyed |= {"open_task", "save", "glimpse", "attach"}
    assert WIDGETS_OWN - keyed == set(), "no key reaches these"
