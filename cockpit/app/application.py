"""The Textual application: one engine, one journal, one screen."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App
from textual.screen import Screen
from textual.widgets import TextArea

import themes
from cockpit.app import prompt_draft
from cockpit.app.actions import plan_command
from cockpit.app.actions.registry import remapped
from cockpit.app.engine_client import Engine, Keys
from cockpit.app.exit_on_signal import gives_back
from cockpit.app.journal_feed import Feed
from cockpit.app.projection.fold import Views
from cockpit.app.projection.header import SessionState
from cockpit.app.prompt_completions import CompletionCache
from cockpit.app.screens.cockpit_screen import CockpitScreen
from cockpit.app.session_runs import Runs
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.core.errors import CockpitError
from widgets.text.clean import clean

if TYPE_CHECKING:
    from textual.command import Provider

_DRAFT_S = 0.5
_TELL_S = 8.0
_GIVE_WAY_S = 0.001


def _commands() -> type[Provider]:
    from cockpit.app.actions.palette import Commands

    return Commands


class CockpitApp(App[int], inherit_bindings=False):
    """The cockpit of one project. Follows ``session_id``, or begins one with ``first_words``."""

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012 -- Textual's way
    COMMANDS = {_commands}  # noqa: RUF012 -- Textual's way
    ENABLE_COMMAND_PALETTE = False  # its key and its palette are our own
    TITLE = "cockpit"

    def __init__(
        self,
        engine: Engine,
        *,
        session_id: str | None = None,
        first_words: str | None = None,
        theme: str = themes.DEFAULT,
        keys: Keys | None = None,
        after_first_frame: Callable[[], Coroutine[Any, Any, None]] | None = None,
        on_theme: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.followed = session_id or ""
        self.starting = False
        self._first_words = first_words
        self._resumed = session_id or ""
        for each in themes.THEMES:
            self.register_theme(each)
        self._wanted_theme = theme
        # Before any stylesheet is read: with another theme all of them would be read again.
        known = theme in self.available_themes
        self.set_reactive(CockpitApp.theme, theme if known else themes.DEFAULT)
        self._read_with = self.get_css_variables()
        self.stylesheet.set_variables(self._read_with)
        self._after_first_frame = after_first_frame
        self._on_theme = on_theme
        self.failed: CockpitError | None = None
        self._actions, self._wrong_keys = remapped(keys or {})
        self._tasks: set[asyncio.Task[None]] = set()
        self._model = ""
        self._draft = ""
        self._saved = ""
        self._draft_due = False
        self.feed = Feed(engine.store, self._changed, self.tell)
        self.runs = Runs(engine, self.tell, self._changed)
        self.completions = CompletionCache(engine, self._completed)
        self._main: CockpitScreen | None = None

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """What the stylesheet needs and Textual's own themes do not have."""
        return themes.fallbacks(self.current_theme)

    def get_default_screen(self) -> Screen[Any]:
        """The cockpit's screen."""
        self._draft = self._saved = prompt_draft.load(self.engine.place)
        self._main = CockpitScreen(self._actions, self.engine.store.clock.monotonic, self._draft)
        return self._main

    def on_mount(self) -> None:
        if self.theme != self._wanted_theme:
            self.tell(f"There is no theme {self._wanted_theme}; Ctrl+P lists those there are.")
        for wrong in self._wrong_keys:
            self.tell(wrong)
        self.call_after_refresh(self._first_frame)

    def refresh_css(self, animate: bool = True) -> None:
        """Style everything anew. The first time, at the start, the stylesheets were just read."""
        read_with, self._read_with = self._read_with, {}
        if read_with == self.get_css_variables():
            self.stylesheet.update(self, animate=animate)
        else:
            super().refresh_css(animate)

    def _first_frame(self) -> None:
        gc.freeze()  # what the start made stays: no collection looks at it again
        gc.enable()
        # A thread that compiles gives way to a key five times sooner than it would by itself.
        sys.setswitchinterval(_GIVE_WAY_S)
        self.do(self.feed.run())
        self.do(self._name_model())
        if self._after_first_frame is not None:
            self.do(self._behind(self._after_first_frame()))
        if self._first_words:
            self.say(self._first_words)
        elif self._resumed:
            self.do(self.runs.resume(self._resumed))

    async def _name_model(self) -> None:
        """Learn what a new session would think with; the header says it before there is one."""
        try:
            self._model = await self.engine.default_model()
        except CockpitError:
            return  # the first words will say what is wrong with it
        self._changed()

    async def _behind(self, first: Coroutine[Any, Any, None]) -> None:
        """What is done behind the first frame; without it there is no going on."""
        try:
            await first
        except CockpitError as error:
            self.failed = error
            self.exit(1)

    # What the journal says

    @property
    def session(self) -> SessionState | None:
        """The session that is followed."""
        return self.feed.state.sessions.get(self.followed)

    @property
    def oriented(self) -> str:
        """The newest wave of the followed session that has a packet, by its id."""
        return self.session.oriented if self.session is not None else ""

    @property
    def pending(self) -> list[str]:
        """Proposals that wait, in the order of the queue."""
        return self.feed.state.queue.order(self.followed)

    def views(self, since: int, front: str) -> Views:
        """The screen's views now."""
        place = self.engine.place
        return self.feed.state.views(
            self.engine.store.clock.now(),
            self.followed,
            since=since,
            front=front,
            project=place.home.name,
            model=self._model,
            trees=self._main.acts.trees if self._main is not None else None,
        )

    def _changed(self) -> None:
        if self._main is not None and self._main.is_running:
            self._main.changed()

    # What the person says

    def attach(self, session_id: str) -> None:
        """Follow another session; an empty id: none, the next words begin one."""
        self.followed = session_id
        self._changed()

    def say(self, text: str, session_id: str = "") -> None:
        """Words for a session; without any they begin one. Or a plan for the backlog."""
        if (source := plan_command.plan_source(text)) is not None:
            self.do(plan_command.propose(self, text, source))
            return
        to = session_id or self.followed
        self.do(self._say(to, text) if to else self._start(text))

    async def _say(self, session_id: str, text: str) -> None:
        try:
            await self.engine.say(session_id, text)
        except CockpitError as error:
            self.give_back(text)
            self.tell(str(error))
            return
        self.runs.ensure(session_id)

    async def _start(self, text: str) -> None:
        if self.starting:
            self.give_back(text)
            return
        self.starting = True
        self._changed()
        try:
            session_id = await self.engine.start(text)
        except Exception as error:
            # A model or a program that fails here has words for the person too.
            self.give_back(text)
            self.tell(str(error) or type(error).__name__)
        else:
            self.attach(session_id)
            self.runs.ensure(session_id)
        finally:
            self.starting = False
            self._changed()

    def go_on(self, session_id: str) -> None:
        """A decision was made: the session that waits for it goes on. One that is driven here
        notices by itself; of others only the one that is followed is taken up."""
        if session_id and session_id == self.followed and not self.runs.active(session_id):
            self.runs.ensure(session_id)

    def give_back(self, text: str) -> None:
        """Words that could not be sent return to the prompt, unless something was typed since."""
        if text and self._main is not None and not self._main.prompt.text:
            self._main.prompt.put(text)

    def tell(self, text: str) -> None:
        """Tell the person what went wrong."""
        self.notify(clean(text), severity="error", timeout=_TELL_S, markup=False)

    def ask(self, call: Callable[[], Awaitable[object]]) -> None:
        """Ask the engine for something; its error is told."""

        async def asked() -> None:
            try:
                await call()
            except Exception as error:
                # The engine's models have errors of their own; all have words for the person.
                self.tell(str(error) or type(error).__name__)

        self.do(asked())

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the screen, until it ends or the program does."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.tell(f"Something went wrong that should not: {error!r}")

    def choose_theme(self, name: str) -> None:
        """Change the theme and remember it."""
        self.theme = name
        if self._on_theme is not None:
            self._on_theme(name)

    # Keys, draft, end

    async def on_event(self, event: events.Event) -> None:
        """Let the screen see every key first: what is armed is decided at the press."""
        screen = self._main
        if screen is not None and self.screen_stack[-1:] == [screen] and not event.is_forwarded:
            if isinstance(event, events.Key) and screen.before_key(event.key):
                return
            if isinstance(event, events.Paste):
                screen.before_key("paste")
        await super().on_event(event)

    def _completed(self) -> None:
        if self._main is not None:
            prompt = self._main.prompt
            prompt.post_message(TextArea.Changed(prompt))

    def keep_draft(self, text: str) -> None:
        """Remember the prompt's text, on disk within half a second."""
        self._draft = text
        if not self._draft_due and text != self._saved:
            self._draft_due = True
            self.set_timer(_DRAFT_S, self._write_draft)

    def _write_draft(self) -> None:
        self._draft_due = False
        if self._draft != self._saved:
            try:
                prompt_draft.save(self.engine.place, self._draft)
            except OSError as error:
                self.tell(f"The draft cannot be kept: {error.strerror or error}.")
            self._saved = self._draft

    async def quit(self) -> None:
        """End: sessions write down where they stand, the draft is kept."""
        await self.runs.stop()
        self._write_draft()
        self.exit(0)

    async def on_unmount(self) -> None:
        """However it ended, nothing is left running."""
        await self.runs.stop()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_app(
    engine: Engine,
    *,
    session_id: str | None = None,
    first_words: str | None = None,
    theme: str = themes.DEFAULT,
    keys: Keys | None = None,
    after_first_frame: Callable[[], Coroutine[Any, Any, None]] | None = None,
    on_theme: Callable[[str], object] | None = None,
    on_end: Callable[[str], object] | None = None,
) -> int:
    """Show the cockpit until the person leaves; returns the exit code.

    ``after_first_frame`` is run once the screen is seen; what it raises ends the screen and is raised
    here. ``on_end`` gets the id of the session that was followed last ('' for none), so that the command
    line can say how to come back. Prints nothing itself.
    """
    app = CockpitApp(
        engine,
        session_id=session_id,
        first_words=first_words,
        theme=theme,
        keys=keys,
        after_first_frame=after_first_frame,
        on_theme=on_theme,
    )
    with gives_back(app):
        code = await app.run_async()
    if app.failed is not None:
        raise app.failed
    if on_end is not None:
        on_end(app.followed)
    return app.return_code or code or 0
