"""The Textual application: one engine, one journal, and the screens over them.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeGuard

from textual import events
from textual.screen import Screen

import themes
from cockpit.app.host import Host
from cockpit.app.screens.starting_screen import StartingScreen
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.app.terminal.terminal_watch import INTERRUPTED
from cockpit.core.errors import CockpitError

# Everything else is imported after the first frame, or where it is used.
if TYPE_CHECKING:
    from textual.command import Provider
    from textual.message_pump import MessagePump

    from cockpit.app.actions.registry import Keys
    from cockpit.app.screens.cockpit_screen import CockpitScreen
    from cockpit.loop.runtime import Runtime

_SWITCH_S = 0.001
_HANDLED_S = 0.25
_STATE_S = 0.2
"""Seconds that the main screen waits for its state; the first frame is shown meanwhile."""


def _command_provider() -> type[Provider]:
    from cockpit.app.actions.palette import Commands

    return Commands


class CockpitApp(Host):
    """The cockpit of one project: its start, its messages and its keys.

    Follows ``session_id`` and, if it ``resumes``, drives it; or starts a session with ``first_message``.
    With ``open_engine`` in place of an engine, a first frame is drawn before the engine is opened and all
    else loaded; keys that come before are kept. What it raises ends the program.
    """

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012 -- Textual's way
    COMMANDS = {_command_provider}  # noqa: RUF012 -- Textual's way
    TITLE = "cockpit"
    _main: CockpitScreen | None

    def __init__(
        self,
        engine: Runtime | None = None,
        *,
        open_engine: Callable[[Callable[[str], object]], Awaitable[Runtime]] | None = None,
        project: str = "",
        session_id: str | None = None,
        first_message: str | None = None,
        resumes: bool = True,
        theme: str = themes.DEFAULT,
        keys: Keys | None = None,
        after_first_frame: Callable[[Runtime], Coroutine[Any, Any, None]] | None = None,
        on_theme: Callable[[str], object] | None = None,
        on_draft: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(session_id or "", on_theme, on_draft)
        self._project = project
        self._open_engine = open_engine
        self._first_message = first_message
        self._resumed_session = (session_id or "") if resumes else ""
        self._requested_theme = theme
        self.use_theme(theme)
        self._after_first_frame = after_first_frame
        self.fatal_error: Exception | None = None
        self._keys = keys or {}
        self._key_errors: list[str] = []
        self._early_keys: list[events.Key | events.Paste] | None = None
        """What the user typed before there was a prompt; None as soon as there is one."""
        self._left_at = ""
        """When a screen that ended without its user wrote its last draft."""
        self._early_key: events.Key | events.Paste | None = None
        """The one that is typed now."""
        if engine is not None:
            self._take_engine(engine)
        else:
            self._early_keys = []
            self.css_path = []  # the first frame needs none: they are read with the rest

    def _take_engine(self, engine: Runtime) -> None:
        """Build what works with the engine: the actions, the state and the runs."""
        from cockpit.app.actions.registry import remap
        from cockpit.app.commands.prompt_commands import COMMANDS
        from cockpit.app.journal_feed import JournalFeed
        from cockpit.app.screens.welcome_facts import WelcomeFacts
        from cockpit.app.session_runs import SessionRuns
        from cockpit.app.session_trail import SessionTrail
        from cockpit.app.state.kanban import Looking

        self.engine = engine
        self.actions, self._key_errors = remap(self._keys)
        self.prompt_commands = COMMANDS
        self.trail = SessionTrail()
        self.welcome = WelcomeFacts()
        self.board_filter = Looking()
        self.feed = JournalFeed(
            engine.store, self._schedule_paint, self.show_error, lambda: self.session_id
        )
        self.runs = SessionRuns(engine, self.show_error, self._schedule_paint)

    def get_default_screen(self) -> Screen[Any]:
        """Return the main screen, or the frames of its panes until the engine is open."""
        if self._early_keys is not None:
            return StartingScreen(self._project)
        return self._make_main()

    def _make_main(self) -> CockpitScreen:
        from cockpit.app.prompt_draft import Draft
        from cockpit.app.screens.cockpit_screen import CockpitScreen

        self.draft = Draft(self.engine.place)
        with contextlib.suppress(OSError):  # they stay, and the next screen offers them
            self._left_at = self.draft.take_left()
        self._main = CockpitScreen(self, self.draft.text)
        return self._main

    def on_mount(self) -> None:
        if self._early_keys is None:
            self.call_after_refresh(self._after_frame)
        else:
            self.call_after_refresh(lambda: self.run_in_background(self._load_rest()))

    async def _load_rest(self) -> None:
        """Load the program, and put the main screen with its state in the place of the first frame."""
        try:
            await asyncio.to_thread(_import_rest)
            if self._open_engine is None:
                raise RuntimeError("an application without an engine needs open_engine")
            self._take_engine(await self._open_engine(self.show_error))
            self.run_in_background(self.feed.run())
            self.css_path = [*STYLESHEETS]
            self.stylesheet.read_all(self.css_path)
            main = self._make_main()
            await self.feed.wait_for_state(_STATE_S)
            # As push_screen does: to take its place, Textual asks the first screen for it.
            self.screen._push_result_callback(self, None)
            with self.batch_update():  # so that the next frame is complete
                await self.switch_screen(main)
        except Exception as error:
            # Without an engine there is nothing to show; the command line reports the error.
            self.fatal_error = error
            self.exit(1)
            return
        self.call_after_refresh(self._after_frame)
        await self._type_early_keys()

    async def _type_early_keys(self) -> None:
        """Type what the user typed before there was a prompt, in order and before any later key."""
        while self._early_keys:
            event = self._early_key = self._early_keys.pop(0)
            self.post_message(event)
            await self._wait_for_queue(self)
            # A key that the focused widget does not take goes up to the application, which runs its action.
            focused = self.focused or self.screen
            for node in (focused, *focused.ancestors):
                await self._wait_for_queue(node)
        self._early_keys = None

    async def _wait_for_queue(self, node: MessagePump) -> None:
        """Wait until a node has handled the messages that it has now."""
        handled = asyncio.Event()
        if node.is_running and node.call_later(handled.set):
            with contextlib.suppress(TimeoutError):  # the key may have closed the node's dialog
                await asyncio.wait_for(handled.wait(), _HANDLED_S)

    def _after_frame(self) -> None:
        from cockpit.app.store_watch import watch_store

        # A thread that compiles a packet yields to a key five times sooner than by default.
        sys.setswitchinterval(_SWITCH_S)
        self._report_settings()
        if self._open_engine is None:  # else it runs since the engine is open
            self.run_in_background(self.feed.run())
        self.run_in_background(self._read_welcome())
        if self._after_first_frame is not None:
            self.run_in_background(self._start_up(self._after_first_frame(self.engine)))
        watch_store(self, self.set_interval)
        if self._first_message:
            self.send_message(self._first_message)
        elif self._resumed_session:
            self.run_in_background(self.runs.resume(self._resumed_session))

    def _report_settings(self) -> None:
        from cockpit.app import prompt_draft

        if self.theme != self._requested_theme:
            self.show_error(
                f"No theme is named {self._requested_theme}. “Change the theme” in Ctrl+P lists them."
            )
        for error in self._key_errors:
            self.show_error(error)
        if self._left_at:
            self.main.flash(f"draft of {self._left_at} · ^s takes it")
        if (path := prompt_draft.take_unsent(self.engine.place)) is not None:
            self.show_notice(f"The terminal went away while you typed. Your text is in {path}.")

    async def _read_welcome(self) -> None:
        """Read what is shown before there is a session."""
        await self.welcome.read(self.engine)
        self._schedule_paint()

    async def _start_up(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the rest of the start-up after the first frame; its error ends the program."""
        try:
            await work
        except CockpitError as error:
            self.fatal_error = error
            self.exit(1)

    # Messages

    def send_message(self, text: str, session_id: str | None = None) -> None:
        """Send a message to a session, by default to the followed one; an empty id starts one."""
        from cockpit.app.commands.prompt_commands import read_command

        if (command := read_command(self, text)) is not None:
            self.run_in_background(command)
            return
        receiver = self.session_id if session_id is None else session_id
        self.run_in_background(self._send(receiver, text))

    async def _send(self, session_id: str, text: str) -> None:
        from cockpit.app.commands.prompt_commands import find_receiver

        try:
            if not (session_id := await find_receiver(self, session_id, text)):
                await self.start_session(text)
                return
            await self.engine.say(session_id, text)
        except CockpitError as error:
            self.restore_text(text)
            self.show_error(str(error))
            return
        self.runs.ensure_running(session_id)

    # Keys, draft, end

    async def on_event(self, event: events.Event) -> None:
        """Show every key to the main screen first: the press decides whether a proposal is armed."""
        if self._early_keys is not None and not event.is_forwarded:
            if isinstance(event, events.Key) and event.key == "ctrl+c" and self._main is None:
                self.exit(return_code=INTERRUPTED)
                return
            if isinstance(event, events.Key | events.Paste) and event is not self._early_key:
                self._early_keys.append(event)
                if isinstance(self.screen, StartingScreen):
                    self.screen.show_typed(self._early_keys)
                return
        if self._early_keys is None and self._is_handled_late(event):
            # A widget gets the key first, and what it means (Tab, Enter) comes later: other keys wait.
            self._early_keys = [event]
            self.run_in_background(self._type_early_keys())
            return
        screen = self._main
        if screen is not None and self.screen_stack[-1:] == [screen] and not event.is_forwarded:
            if isinstance(event, events.Key) and screen.before_key(event.key, event.time):
                return
            if isinstance(event, events.Paste):
                screen.before_key("paste")
        await super().on_event(event)

    def _is_handled_late(self, event: events.Event) -> TypeGuard[events.Key]:
        """Whether the event is a key that may move the focus or open something once a widget passed it on."""
        if self._main is None or not isinstance(event, events.Key) or event.is_forwarded:
            return False
        if self.screen_stack[-1:] == [self._main]:
            return self._main.is_handled_late(event)
        return not event.is_printable

    async def on_unmount(self) -> None:
        """Stop all sessions and tasks, however the program ended."""
        if self._main is not None:
            await self.runs.stop()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.is_leaving:
            self.save_unsent()  # what an editor had
        if self._main is not None and self.feed.ready:
            from cockpit.app.screens.last_visit import save_visit

            with contextlib.suppress(OSError):  # the next welcome tells of a longer time
                save_visit(self.engine.place, self.feed.state.seq)


def _import_rest() -> None:
    """Import the main screen and what reads its state, while the first frame is shown."""
    import cockpit.app.actions.registry
    import cockpit.app.journal_feed
    import cockpit.app.screens.cockpit_screen  # noqa: F401
