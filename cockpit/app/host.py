"""The application as actions, dialogs and screens use it: what is followed, drawn, running and typed.

Actions are functions over a :class:`Host`. :class:`~cockpit.app.application.CockpitApp` starts one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import SuspendNotSupported
from textual.screen import Screen

from cockpit.app.terminal.terminal_app import TerminalApp

# Everything else is imported after the first frame, or where it is used.
if TYPE_CHECKING:
    from cockpit.access.notices import Notifier
    from cockpit.app.actions.action import Action
    from cockpit.app.all_projects.jump import Jump
    from cockpit.app.journal_feed import JournalFeed
    from cockpit.app.main_screen import MainScreen
    from cockpit.app.prompt_draft import Draft
    from cockpit.app.screens.welcome_facts import WelcomeFacts
    from cockpit.app.session_runs import SessionRuns
    from cockpit.app.session_trail import SessionTrail
    from cockpit.app.state.header import SessionState
    from cockpit.app.state.kanban import Looking
    from cockpit.app.state.screen_state import State, Views
    from cockpit.loop.runtime import Runtime

T = TypeVar("T")
_DRAFT_S = 0.5


class Host(TerminalApp[int]):
    """The application over one project."""

    engine: Runtime
    actions: tuple[Action[Host], ...]
    """All actions, under the user's keys."""
    prompt_commands: tuple[tuple[str, str], ...]
    """The screen's own commands of the prompt, each with its hint."""
    trail: SessionTrail
    """The sessions that the user came from."""
    welcome: WelcomeFacts
    """What the welcome shows; its model is that of new sessions."""
    board_filter: Looking
    """Which tasks the board shows; it lasts as long as the program."""
    feed: JournalFeed
    runs: SessionRuns
    """The sessions that this process drives."""
    draft: Draft
    send_message: Callable[..., None]
    """Sends a message to a session, by default to the followed one; an empty id starts one."""
    words_folder = ""
    """Where it is kept which words were explained to the user; empty explains none."""

    def __init__(
        self,
        session_id: str,
        on_theme: Callable[[str], object] | None,
        on_draft: Callable[[], object] | None,
    ) -> None:
        super().__init__()
        self.session_id = session_id
        """The followed session; empty without one."""
        self.is_starting = False
        """True while a new session is being created."""
        self.interrupted_at = self.escaped_at = float("-inf")
        """When Ctrl+C, and Escape, were pressed last with nothing to leave, in monotonic seconds."""
        self.knows_offline_limits = False
        """Whether this run of the screen said what the offline rules cannot do."""
        self.jump: Jump | None = None
        """The other project that the user goes to when this program's screen ends; None for none."""
        self.notifier: Notifier | None = None
        """Announces proposals outside the terminal; None where the user has no such setting."""
        self._on_theme = on_theme
        self._on_draft = on_draft
        self._tasks: set[asyncio.Task[None]] = set()
        self._draft_due = False
        self._main: MainScreen | None = None

    # State

    @property
    def main(self) -> MainScreen:
        """The main screen."""
        if self._main is None:
            raise RuntimeError("the main screen is not there before the application runs")
        return self._main

    @property
    def state(self) -> State:
        """What the screens show."""
        return self.feed.state

    @property
    def session(self) -> SessionState | None:
        """The state of the followed session."""
        return self.state.session(self.session_id)

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
        return list(self.state.pending)

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

    # The draft and the end

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


class LiveScreen:
    """A screen or dialog over the main screen that is drawn whenever the main screen is."""

    def paint(self) -> None:
        """Draw the current state of the journal."""
        raise NotImplementedError


class TaskCursorScreen(LiveScreen):
    """A live screen with a task under its cursor."""

    @property
    def task_id(self) -> str:
        """The task that keys act on; empty without one."""
        raise NotImplementedError
