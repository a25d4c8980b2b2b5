"""The Textual application: one engine, one journal, and the screens over them.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from textual import events
from textual.app import App, SuspendNotSupported
from textual.screen import Screen
from textual.widgets import TextArea

import themes
from cockpit.access import user_presence
from cockpit.app import external_editor, prompt_draft
from cockpit.app.actions import plan_command, work_command
from cockpit.app.actions.registry import remap
from cockpit.app.engine_client import Engine, Keys
from cockpit.app.exit_on_signal import exit_on_signals
from cockpit.app.journal_feed import JournalFeed
from cockpit.app.projection.fold import State, Views
from cockpit.app.projection.header import SessionState
from cockpit.app.projection.kanban import Looking
from cockpit.app.prompt_completions import CompletionCache
from cockpit.app.screens.cockpit_screen import CockpitScreen
from cockpit.app.session_runs import SessionRuns
from cockpit.app.session_trail import SessionTrail
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.core.errors import CockpitError
from widgets.text.clean import clean

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.driver import Driver

T = TypeVar("T")

_DRAFT_S = 0.5
_ERROR_S = 8.0
_NOTICE_S = 4.0
_SWITCH_S = 0.001


def _command_provider() -> type[Provider]:
    from cockpit.app.actions.palette import Commands

    return Commands


class CockpitApp(App[int], inherit_bindings=False):
    """The cockpit of one project; the :class:`~cockpit.app.host.Host` of its actions and screens.

    Follows ``session_id``, or starts a session with ``first_message``.
    """

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012 -- Textual's way
    COMMANDS = {_command_provider}  # noqa: RUF012 -- Textual's way
    ENABLE_COMMAND_PALETTE = False  # its key and its palette are our own
    TITLE = "cockpit"

    def __init__(
        self,
        engine: Engine,
        *,
        session_id: str | None = None,
        first_message: str | None = None,
        theme: str = themes.DEFAULT,
        keys: Keys | None = None,
        after_first_frame: Callable[[], Coroutine[Any, Any, None]] | None = None,
        on_theme: Callable[[str], object] | None = None,
        on_draft: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.session_id = session_id or ""
        self.is_starting = False
        """True while a new session is being created."""
        self.interrupted_at = float("-inf")
        self._first_message = first_message
        self._resumed_session = session_id or ""
        for each in themes.THEMES:
            self.register_theme(each)
        self._requested_theme = theme
        # Before any stylesheet is read: a later change of the theme would read all of them again.
        exists = theme in self.available_themes
        self.set_reactive(CockpitApp.theme, theme if exists else themes.DEFAULT)
        self._css_variables_read = self.get_css_variables()
        self.stylesheet.set_variables(self._css_variables_read)
        self._after_first_frame = after_first_frame
        self._on_theme = on_theme
        self._on_draft = on_draft
        self.fatal_error: CockpitError | None = None
        self.actions, self._key_errors = remap(keys or {})
        self._tasks: set[asyncio.Task[None]] = set()
        self._model = ""
        self._draft = ""
        self._draft_on_disk = ""
        self._draft_due = False
        self.trail = SessionTrail()
        self.board_filter = Looking()
        self.feed = JournalFeed(
            engine.store, self._schedule_paint, self.show_error, lambda: self.session_id
        )
        self.runs = SessionRuns(engine, self.show_error, self._schedule_paint)
        self.completions = CompletionCache(engine, self._show_completions)
        self._main: CockpitScreen | None = None

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of the terminal: on Linux one that sleeps while no key comes."""
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":
            return driver  # another system, or a driver that the environment names
        from cockpit.app.terminal_driver import SleepingDriver

        return SleepingDriver

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables of the stylesheet that Textual's own themes do not have."""
        return themes.fallbacks(self.current_theme)

    def get_default_screen(self) -> Screen[Any]:
        """Return the main screen."""
        self._draft = self._draft_on_disk = prompt_draft.load(self.engine.place)
        self._main = CockpitScreen(self, self._draft)
        return self._main

    def on_mount(self) -> None:
        if self.theme != self._requested_theme:
            self.show_error(
                f"No theme is named {self._requested_theme}. “Change the theme” in Ctrl+P lists them."
            )
        for error in self._key_errors:
            self.show_error(error)
        self.call_after_refresh(self._after_frame)

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the stylesheets again. The first time, at the start, they were just read."""
        variables_read, self._css_variables_read = self._css_variables_read, {}
        if variables_read == self.get_css_variables():
            self.stylesheet.update(self, animate=animate)
        else:
            super().refresh_css(animate)

    def _after_frame(self) -> None:
        gc.freeze()  # objects of the start-up live as long as the program: never collect them
        gc.enable()
        # A thread that compiles a packet yields to a key five times sooner than by default.
        sys.setswitchinterval(_SWITCH_S)
        self.run_in_background(self.feed.run())
        self.run_in_background(self._read_default_model())
        if self._after_first_frame is not None:
            self.run_in_background(self._start_up(self._after_first_frame()))
        if self._first_message:
            self.send_message(self._first_message)
        elif self._resumed_session:
            self.run_in_background(self.runs.resume(self._resumed_session))

    async def _read_default_model(self) -> None:
        """Read the model of a new session; the header shows it before there is a session."""
        try:
            self._model = await self.engine.default_model()
        except CockpitError:
            return  # the first message reports the error
        self._schedule_paint()

    async def _start_up(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the rest of the start-up after the first frame; its error ends the program."""
        try:
            await work
        except CockpitError as error:
            self.fatal_error = error
            self.exit(1)

    # State

    @property
    def main(self) -> CockpitScreen:
        """The main screen."""
        if self._main is None:
            raise RuntimeError("the main screen is not there before the application runs")
        return self._main

    @property
    def state(self) -> State:
        """The journal, folded."""
        return self.feed.state

    @property
    def session(self) -> SessionState | None:
        """The state of the followed session."""
        return self.state.sessions.get(self.session_id)

    @property
    def packet_wave_id(self) -> str:
        """The newest wave of the followed session that has a packet; empty without one."""
        return self.session.oriented if self.session is not None else ""

    @property
    def pending(self) -> list[str]:
        """The ids of waiting proposals, in the order of the queue."""
        return self.state.queue.order(self.session_id)

    def views(self, since: int, front: str) -> Views:
        """Return the views of the main screen now."""
        trees = self._main.trees if self._main is not None else None
        views = self.state.views(
            self.engine.store.clock.now(),
            self.session_id,
            since=since,
            front=front,
            project=self.engine.place.home.name,
            model=self._model,
            trees=trees,
        )
        while trees is not None and trees.wanted:
            self.feed.open_chain(trees.wanted.pop())
        return views

    def open_session(self, session_id: str) -> None:
        """Read the conversation of a session that is not followed, for a look at it."""
        self.feed.open_session(session_id)

    def _schedule_paint(self) -> None:
        if self._main is not None and self._main.is_running:
            self._main.schedule_paint()

    # Sessions and messages

    def attach(self, session_id: str) -> None:
        """Follow a session; with an empty id none: the next message starts one."""
        self.session_id = session_id
        self._schedule_paint()

    def send_message(self, text: str, session_id: str = "") -> None:
        """Send a message to a session, by default to the followed one.

        Without a session the message starts one; ``/plan FILE`` proposes a plan for the backlog, and
        ``/work`` starts or resumes a chain.
        """
        if (source := plan_command.plan_source(text)) is not None:
            self.run_in_background(plan_command.propose_plan(self, text, source))
            return
        if (words := work_command.work_words(text)) is not None:
            self.run_in_background(work_command.start_work(self, text, words))
            return
        receiver = session_id or self.session_id
        self.run_in_background(self._send(receiver, text) if receiver else self._start(text))

    async def _send(self, session_id: str, text: str) -> None:
        try:
            await self.engine.say(session_id, text)
        except CockpitError as error:
            self.restore_text(text)
            self.show_error(str(error))
            return
        self.runs.ensure_running(session_id)

    async def _start(self, text: str) -> None:
        if self.is_starting:
            self.restore_text(text)
            return
        self.is_starting = True
        self._schedule_paint()
        try:
            session_id = await self.engine.start(text)
        except Exception as error:
            # A model or a program may fail with an error of its own; its text is for the user too.
            self.restore_text(text)
            self.show_error(str(error) or type(error).__name__)
        else:
            self.attach(session_id)
            self.runs.ensure_running(session_id)
        finally:
            self.is_starting = False
            self._schedule_paint()

    def resume_session(self, session_id: str) -> None:
        """Drive a session after a decision, when it is the followed one and not driven yet.

        A session that runs here notices the decision by itself.
        """
        if session_id and session_id == self.session_id and not self.runs.is_running(session_id):
            self.runs.ensure_running(session_id)

    def restore_text(self, text: str) -> None:
        """Put text that could not be sent back into the prompt, unless the user typed since."""
        if text and self._main is not None and not self._main.prompt.text:
            self._main.prompt.put(text)

    # Work in the background

    def show_error(self, text: str) -> None:
        """Show an error over the screen for some seconds."""
        self.notify(clean(text), severity="error", timeout=_ERROR_S, markup=False)

    def show_notice(self, text: str) -> None:
        """Show a notice over the screen for some seconds."""
        self.notify(clean(text), timeout=_NOTICE_S, markup=False)

    def request(self, call: Callable[[], Awaitable[object]]) -> None:
        """Run a call in the background and show its error."""

        async def run() -> None:
            try:
                await call()
            except Exception as error:
                # Models have errors of their own; the text of each is for the user.
                self.show_error(str(error) or type(error).__name__)

        self.run_in_background(run())

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` until it or the program ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.show_error(f"Internal error: {error!r}. Please report it.")

    # Screens and the terminal

    def open_screen(
        self, screen: Screen[T], on_answer: Callable[[T | None], None] | None = None
    ) -> Awaitable[None]:
        """Open a screen or dialog on top; ``on_answer`` gets its answer, None without one."""
        return self.push_screen(screen, on_answer)

    async def edit_in_editor(self, text: str, suffix: str) -> str | None:
        """Return ``text`` as the user saved it in their editor; None when there is no terminal for it."""
        argv = external_editor.editor_command(os.environ)
        try:
            # Nothing is drawn while the editor has the terminal; sessions keep running.
            with self.batch_update(), self.suspend():
                edited = await asyncio.to_thread(
                    external_editor.edit_text, text, argv=argv, suffix=suffix
                )
        except SuspendNotSupported:
            self.show_error("This terminal cannot be handed to an editor.")
            return None
        self.refresh(layout=True)
        return edited

    def choose_theme(self, name: str) -> None:
        """Switch to a theme and remember it."""
        self.theme = name
        if self._on_theme is not None:
            self._on_theme(name)

    # Keys, draft, end

    async def on_event(self, event: events.Event) -> None:
        """Show every key to the main screen first: the press decides whether a proposal is armed."""
        screen = self._main
        if screen is not None and self.screen_stack[-1:] == [screen] and not event.is_forwarded:
            if isinstance(event, events.Key) and screen.before_key(event.key):
                return
            if isinstance(event, events.Paste):
                screen.before_key("paste")
        await super().on_event(event)

    def _show_completions(self) -> None:
        if self._main is not None:
            prompt = self._main.prompt
            prompt.post_message(TextArea.Changed(prompt))

    def keep_draft(self, text: str) -> None:
        """Remember the text of the prompt, on disk within half a second."""
        self._draft = text
        if text and self._on_draft is not None:
            self._on_draft()
        if not self._draft_due and text != self._draft_on_disk:
            self._draft_due = True
            self.set_timer(_DRAFT_S, self._write_draft)

    def _write_draft(self) -> None:
        self._draft_due = False
        if self._draft != self._draft_on_disk:
            try:
                prompt_draft.save(self.engine.place, self._draft)
            except OSError as error:
                self.show_error(f"The draft cannot be saved: {error.strerror or error}.")
            self._draft_on_disk = self._draft

    async def quit(self) -> None:
        """End the program after every session saved its state, and the draft is saved."""
        await self.runs.stop()
        self._write_draft()
        self.exit(0)

    async def on_unmount(self) -> None:
        """Stop all sessions and tasks, however the program ended."""
        await self.runs.stop()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_app(
    engine: Engine,
    *,
    session_id: str | None = None,
    first_message: str | None = None,
    theme: str = themes.DEFAULT,
    keys: Keys | None = None,
    after_first_frame: Callable[[], Coroutine[Any, Any, None]] | None = None,
    on_theme: Callable[[str], object] | None = None,
    on_draft: Callable[[], object] | None = None,
    on_end: Callable[[str], object] | None = None,
) -> int:
    """Show the cockpit until the user leaves; returns the exit code. Prints nothing itself.

    ``after_first_frame`` runs once the screen is visible; its ``CockpitError`` ends the screen and is
    raised here. ``on_draft`` is called while the prompt has text. ``on_end`` gets the id of the session that
    was followed last ('' for none), so that the command line can say how to come back.
    """
    user_presence.sit_at_screen()
    app = CockpitApp(
        engine,
        session_id=session_id,
        first_message=first_message,
        theme=theme,
        keys=keys,
        after_first_frame=after_first_frame,
        on_theme=on_theme,
        on_draft=on_draft,
    )
    with exit_on_signals(app):
        code = await app.run_async()
    if app.fatal_error is not None:
        raise app.fatal_error
    if on_end is not None:
        on_end(app.session_id)
    return app.return_code or code or 0
