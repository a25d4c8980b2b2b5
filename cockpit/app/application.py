"""The Textual application: one engine, one journal, and the screens over them.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from textual import events
from textual.app import SuspendNotSupported
from textual.screen import Screen

import themes
from cockpit.app.screens.starting_screen import StartingScreen
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.app.terminal.terminal_app import TerminalApp
from cockpit.app.terminal.terminal_watch import INTERRUPTED
from cockpit.core.errors import CockpitError
from widgets.text.clean import clean

# Everything else is imported after the first frame, or where it is used.
if TYPE_CHECKING:
    from textual.command import Provider
    from textual.message_pump import MessagePump

    from cockpit.access.notices import Notifier
    from cockpit.app.actions.action import Action
    from cockpit.app.all_projects.jump import Jump
    from cockpit.app.engine_client import Engine, Keys
    from cockpit.app.host import Host
    from cockpit.app.journal_feed import JournalFeed
    from cockpit.app.projection.fold import State, Views
    from cockpit.app.projection.header import SessionState
    from cockpit.app.projection.kanban import Looking
    from cockpit.app.prompt_completions import CompletionCache
    from cockpit.app.prompt_draft import Draft
    from cockpit.app.screens.cockpit_screen import CockpitScreen
    from cockpit.app.screens.welcome_facts import WelcomeFacts
    from cockpit.app.session_runs import SessionRuns
    from cockpit.app.session_trail import SessionTrail

T = TypeVar("T")

_DRAFT_S = 0.5
_ERROR_S = 8.0
_NOTICE_S = 4.0
_SWITCH_S = 0.001
_HANDLED_S = 0.25
_STATE_S = 0.2
"""Seconds that the main screen waits for its state; the frames of its panes are shown meanwhile."""


def _command_provider() -> type[Provider]:
    from cockpit.app.actions.palette import Commands

    return Commands


class CockpitApp(TerminalApp[int]):
    """The cockpit of one project; the :class:`~cockpit.app.host.Host` of its actions and screens.

    Follows ``session_id`` and, if it ``resumes``, drives it; or starts a session with ``first_message``.
    With ``open_engine`` in place of an engine, the frames of the panes are drawn first, and the engine is
    opened and all else loaded after that; keys that come before are kept. What it raises ends the program.
    """

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012 -- Textual's way
    COMMANDS = {_command_provider}  # noqa: RUF012 -- Textual's way
    ENABLE_COMMAND_PALETTE = False  # its key and its palette are our own
    TITLE = "cockpit"

    engine: Engine
    actions: tuple[Action[Host], ...]
    prompt_commands: tuple[tuple[str, str], ...]
    trail: SessionTrail
    welcome: WelcomeFacts
    board_filter: Looking
    feed: JournalFeed
    runs: SessionRuns
    completions: CompletionCache
    draft: Draft
    words_folder = ""
    """Where it is kept which words were explained to the user; empty explains none."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        open_engine: Callable[[Callable[[str], object]], Awaitable[Engine]] | None = None,
        project: str = "",
        session_id: str | None = None,
        first_message: str | None = None,
        resumes: bool = True,
        theme: str = themes.DEFAULT,
        keys: Keys | None = None,
        after_first_frame: Callable[[], Coroutine[Any, Any, None]] | None = None,
        on_theme: Callable[[str], object] | None = None,
        on_draft: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self.session_id = session_id or ""
        self.is_starting = False
        """True while a new session is being created."""
        self.interrupted_at = self.escaped_at = float("-inf")
        self.knows_offline_limits = False
        self._project = project
        self._open_engine = open_engine
        self._first_message = first_message
        self._resumed_session = (session_id or "") if resumes else ""
        self.jump: Jump | None = None
        self.notifier: Notifier | None = None
        self._requested_theme = theme
        if (own_theme := themes.find(theme)) is not None:
            self.register_theme(own_theme)
        # Before any stylesheet is read: a later change of the theme would read all of them again.
        exists = theme in self.available_themes
        if not exists:
            self._register_themes()
        self.set_reactive(CockpitApp.theme, theme if exists else themes.DEFAULT)
        self._css_variables_read = self.get_css_variables()
        self.stylesheet.set_variables(self._css_variables_read)
        self._after_first_frame = after_first_frame
        self._on_theme = on_theme
        self._on_draft = on_draft
        self.fatal_error: Exception | None = None
        self._keys = keys or {}
        self._key_errors: list[str] = []
        self._early_keys: list[events.Key | events.Paste] | None = None
        """What the user typed before there was a prompt; None as soon as there is one."""
        self._early_key: events.Key | events.Paste | None = None
        """The one that is typed now."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._draft_due = False
        self._main: CockpitScreen | None = None
        if engine is not None:
            self._take_engine(engine)
        else:
            self._early_keys = []
            self.css_path = []  # of the screens that come later

    def _take_engine(self, engine: Engine) -> None:
        """Build what works with the engine: the actions, the state and the runs."""
        from cockpit.app.actions.registry import remap
        from cockpit.app.commands.agent_command import list_agent_words
        from cockpit.app.commands.prompt_commands import COMMANDS
        from cockpit.app.journal_feed import JournalFeed
        from cockpit.app.projection.kanban import Looking
        from cockpit.app.prompt_completions import CompletionCache
        from cockpit.app.screens.welcome_facts import WelcomeFacts
        from cockpit.app.session_runs import SessionRuns
        from cockpit.app.session_trail import SessionTrail

        self.engine = engine
        self._register_themes()
        self.actions, self._key_errors = remap(self._keys)
        self.prompt_commands = COMMANDS
        self.trail = SessionTrail()
        self.welcome = WelcomeFacts()
        self.board_filter = Looking()
        self.feed = JournalFeed(
            engine.store, self._schedule_paint, self.show_error, lambda: self.session_id
        )
        self.runs = SessionRuns(engine, self.show_error, self._schedule_paint)
        self.completions = CompletionCache(
            engine,
            self._show_completions,
            lambda: list_agent_words(self.session, self.state.agent_of(self.session_id)),
        )

    def _register_themes(self) -> None:
        for each in themes.THEMES:
            if each.name not in self.available_themes:
                self.register_theme(each)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables of the stylesheet that Textual's own themes do not have."""
        return themes.fallbacks(self.current_theme)

    def get_default_screen(self) -> Screen[Any]:
        """Return the main screen, or the frames of its panes until the engine is open."""
        if self._early_keys is not None:
            return StartingScreen(self._project)
        return self._make_main()

    def _make_main(self) -> CockpitScreen:
        from cockpit.app.prompt_draft import Draft
        from cockpit.app.screens.cockpit_screen import CockpitScreen

        self.draft = Draft(self.engine.place)
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

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the stylesheets again. The first time, at the start, they were just read."""
        variables_read, self._css_variables_read = self._css_variables_read, {}
        if variables_read == self.get_css_variables():
            self.stylesheet.update(self, animate=animate)
        else:
            super().refresh_css(animate)

    def _after_frame(self) -> None:
        from cockpit.app.store_watch import watch_store

        self.collect_shortly()
        # A thread that compiles a packet yields to a key five times sooner than by default.
        sys.setswitchinterval(_SWITCH_S)
        self._report_settings()
        if self._open_engine is None:  # else it runs since the engine is open
            self.run_in_background(self.feed.run())
        self.run_in_background(self._read_welcome())
        if self._after_first_frame is not None:
            self.run_in_background(self._start_up(self._after_first_frame()))
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
    def store_warning(self) -> str:
        """The warning of every screen while the store does not match its anchor; empty while it does."""
        return self.engine.store.anchor.warning

    @property
    def pending(self) -> list[str]:
        """The ids of waiting proposals, in the order of the queue."""
        return list(self.state.queue.pending)

    def views(self, since: int, front: str, is_alone: bool = False) -> Views:
        """Return the views of the main screen now."""
        trees = self._main.trees if self._main is not None else None
        views = self.state.views(
            self.engine.store.clock.now(),
            self.session_id,
            since=since,
            front=front,
            is_alone=is_alone,
            project=self.engine.place.home.name,
            model=self.welcome.model,
            new_agent=self.welcome.agent.name if self.welcome.agent is not None else "",
            warning=self.store_warning,
            trees=trees,
        )
        while trees is not None and trees.wanted:
            self.feed.open_chain(trees.wanted.pop())
        views = self.runs.show_stopping(views, self.session_id)
        if self.session_id or self.is_starting:
            return views
        log = self.welcome.log.show(
            self.state.chains, self.engine.store, self.run_in_background, self._schedule_paint
        )
        return self.welcome.add_welcome(views, len(self.pending), log)

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

    async def start_session(self, text: str) -> None:
        """Start a session with a message and follow it; an error is shown, and the text returns."""
        if self.is_starting:
            self.restore_text(text)
            return
        self.is_starting = True
        self._schedule_paint()
        try:
            session_id = await self.engine.start(text, is_typed=True)
        except Exception as error:
            # A model or a program may fail with an error of its own; its text is for the user too.
            self.restore_text(text)
            self.show_error(str(error) or type(error).__name__)
        else:
            self.clear_notifications()  # a message that nothing was started is no longer true
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
            self.run_in_background(self.runs.resume(session_id))

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

    async def edit_in_editor(
        self, text: str, suffix: str, *, is_prompt: bool = False
    ) -> str | None:
        """Return ``text`` as the user saved it in their editor; None when there is no terminal for it."""
        from cockpit.app.external_editor import Editor, editor_command

        editor = Editor(text, argv=editor_command(os.environ), suffix=suffix)

        def keep(edited: str) -> None:
            if is_prompt:
                self.draft.text = edited
                if self.main.prompt.is_attached:
                    self.main.prompt.put(edited)
            elif edited != text:
                self.unsent.append(edited)

        try:
            edited = await self.run_editor(editor, keep)
        except SuspendNotSupported:
            self.show_error("This terminal cannot be handed to an editor.")
            return None
        if self.is_leaving:  # the editor heard of it, too
            keep(edited)
        return edited

    def choose_theme(self, name: str) -> None:
        """Switch to a theme and remember it."""
        self.theme = name
        if self._on_theme is not None:
            self._on_theme(name)

    # Keys, draft, end

    async def on_event(self, event: events.Event) -> None:
        """Show every key to the main screen first: the press decides whether a proposal is armed."""
        if self._early_keys is not None and not event.is_forwarded:
            if isinstance(event, events.Key) and event.key == "ctrl+c" and self._main is None:
                self.exit(return_code=INTERRUPTED)
                return
            if isinstance(event, events.Key | events.Paste) and event is not self._early_key:
                self._early_keys.append(event)
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

    def _show_completions(self) -> None:
        from textual.widgets import TextArea

        if self._main is not None:
            prompt = self._main.prompt
            prompt.post_message(TextArea.Changed(prompt))

    def keep_draft(self, text: str) -> None:
        """Remember the text of the prompt, on disk within half a second."""
        self.draft.text = text
        if text and self._on_draft is not None:
            self._on_draft()
        if not self._draft_due and not self.draft.is_saved:
            self._draft_due = True
            self.set_timer(_DRAFT_S, self._write_draft)

    def _write_draft(self) -> None:
        self._draft_due = False
        try:
            self.draft.save()
        except OSError as error:
            self.show_error(f"The draft cannot be saved: {error.strerror or error}.")

    def save_unsent(self) -> None:
        """Save the prompt, and what was typed into open dialogs."""
        from cockpit.app import prompt_draft

        if self._main is None:
            return
        if self._main.prompt.is_attached:  # else its last text is known, or that of an editor
            self.draft.text = self._main.prompt.full_text
        texts, self.unsent = [*self.unsent, *self.list_dialog_texts()], []
        with contextlib.suppress(OSError):  # there is no screen left to say so
            self.draft.save()
            if texts:
                prompt_draft.save_unsent(self.engine.place, texts)

    async def quit(self) -> None:
        """End the program after every session saved its state, and the draft is saved."""
        await self.runs.stop()
        self._write_draft()
        self.exit(0)

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
    import cockpit.app.projection.current_state
    import cockpit.app.screens.cockpit_screen  # noqa: F401
