"""Replay: a past session on the screen, at any row of its journal; nothing of it can be changed.

The fold is the same as that of the live screen. Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen

import themes
from cockpit.app.actions.context import Pane
from cockpit.app.dialogs.key_menu import offer_footer
from cockpit.app.screens.panes import Panes, Tab
from cockpit.app.state.replay import Replay
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.app.terminal.terminal_app import TerminalApp, choose_theme, run_at_terminal
from cockpit.core.clock import parse_time
from cockpit.core.errors import CockpitError, NotFound
from cockpit.loop.intake.fork_session import fork_session
from cockpit.store.context import prune
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.details.waves import WaveCompleted, WaveCreated
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row
from cockpit.store.journal.prune_journal import KEPT_ACTIONS
from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.frame.timeline import Timeline
from widgets.text.clean import clean
from widgets.views import KeyHintView

_READ = 1_000
_SLICE = 64
_PLAY_S = 0.1
SPEEDS = (1, 2, 5, 10, 25, 100, 400)
"""Rows a second."""
_SPEED = 2
"""The place of the speed that a replay begins with."""

ForkAfter = Callable[[int], Awaitable[None]]
"""Forks the replayed session after a wave, and says so."""


class ReplayScreen(Screen[None]):
    """The four panes at one row of the journal."""

    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("q,escape,ctrl+c,ctrl+d", "leave", "leave", show=False, priority=True),
        Binding("left_square_bracket", "wave(-1)", "previous wave", show=False, priority=True),
        Binding("right_square_bracket", "wave(1)", "next wave", show=False, priority=True),
        Binding("space", "play", "play", show=False, priority=True),
        Binding("plus,equals_sign", "speed(1)", "faster", show=False, priority=True),
        Binding("minus", "speed(-1)", "slower", show=False, priority=True),
        Binding("f", "fork", "fork", show=False, priority=True),
        Binding("f2", "only('conversation')", show=False),
        Binding("f3", "only('bands')", show=False),
        Binding("f4", "only('proposals')", show=False),
        Binding("f5", "only('work')", show=False),
    ]

    def __init__(
        self, rows: list[Row], session_id: str, fork: ForkAfter, warning: str = ""
    ) -> None:
        super().__init__()
        self._rows = rows
        self._fork = fork
        self._session_id = session_id
        self._warning = warning
        self._replay = Replay(session_id)
        self._folded = 0
        self._target = 0
        self._timeline = Timeline()
        self._panes = Panes()
        self._moving: asyncio.Task[None] | None = None
        self._playing = False
        self._speed = _SPEED
        self._due = 0.0
        """Rows that playing is behind with, part of one included."""
        self._waves = [
            (number, detail.ordinal)
            for number, row in enumerate(rows, 1)
            # Few rows are read here: the others are when their moment is shown.
            if row.action == Action.WAVE_CREATED and isinstance(detail := row.detail, WaveCreated)
        ]
        """Where each wave begins: its row, from 1, and its number."""

    def compose(self) -> ComposeResult:
        yield HeaderBar()
        yield self._panes
        yield self._timeline
        yield KeyBar()

    def on_mount(self) -> None:
        self._timeline.marks = tuple(number for number, _ in self._waves)
        self._update_hints()
        self._panes.set_width(self.size.width)
        self.set_interval(_PLAY_S, self._step)
        self._timeline.focus()
        self._go(len(self._rows))

    def on_resize(self) -> None:
        """Switch between panes and tabs."""
        self._panes.set_width(self.size.width)

    def on_key_bar_more(self) -> None:
        """Show the keys for which the footer has no room."""
        offer_footer(cast("TerminalApp[Any]", self.app), self.query_one(KeyBar).hints)

    @property
    def position(self) -> int:
        """The number of rows that the drawn state contains."""
        return self._folded

    def on_timeline_moved(self, event: Timeline.Moved) -> None:
        """Move to another row."""
        self._go(event.position)

    def on_tab_chosen(self, event: Tab.Chosen) -> None:
        """A tab was clicked."""
        self._panes.turn_to(event.pane)

    def action_only(self, pane: Pane) -> None:
        """Show one pane alone; again: show all panes."""
        self._panes.show_only(pane)
        self._timeline.focus()

    def action_wave(self, step: int) -> None:
        """Move to the start of the previous or the next wave."""
        starts = [number for number, _ in self._waves]
        if step > 0:
            self._go(next((n for n in starts if n > self._target), len(self._rows)))
        else:
            self._go(next((n for n in reversed(starts) if n < self._target), 0))

    def action_play(self) -> None:
        """Play from the current row, or stop."""
        self._playing = not self._playing
        self._due = 0.0
        if self._playing and self._target >= len(self._rows):
            self._go(0)
        self._update_hints()

    def action_speed(self, step: int) -> None:
        """Play faster or slower."""
        self._speed = max(0, min(self._speed + step, len(SPEEDS) - 1))
        self._update_hints()

    async def action_fork(self) -> None:
        """Start a session that knows what this one knew after the last wave that has ended here."""
        shown = self._rows[: self._folded]
        ended = [row.detail.ordinal for row in shown if isinstance(row.detail, WaveCompleted)]
        if not ended:
            self.notify("No wave has ended here. ] goes to the next one.", severity="warning")
            return
        self._playing = False
        self._update_hints()
        try:
            await self._fork(ended[-1])
        except CockpitError as error:
            self.notify(clean(str(error)), severity="error", markup=False)

    def action_leave(self) -> None:
        """Go back to the screen below, or end the program."""
        if len(self.app.screen_stack) > 1:
            self.dismiss(None)
        else:
            self.app.exit(0)

    def _step(self) -> None:
        if self._target >= len(self._rows):
            if self._playing:
                self._playing = False
                self._update_hints()
        elif self._playing and self._folded == self._target:
            self._due += SPEEDS[self._speed] * _PLAY_S
            rows, self._due = int(self._due), self._due % 1
            if rows:
                self._go(self._target + rows)

    def _update_hints(self) -> None:
        """Show what the keys do now."""
        speed = SPEEDS[self._speed]
        self.query_one(KeyBar).show(
            (
                KeyHintView("space", "pause" if self._playing else "play", True, "space"),
                KeyHintView("+", "faster", press="plus"),
                KeyHintView("-", f"slower ({speed} rows/s)", press="minus"),
                KeyHintView("← →", "row", press="right"),
                KeyHintView("[ ]", "wave", True, "right_square_bracket"),
                KeyHintView("f", "fork from here", press="f"),
                KeyHintView("pgup pgdn", "a tenth", press="pagedown"),
                KeyHintView("f2–f5", "panes", press="f2"),
                KeyHintView("q", "leave", press="q"),
            )
        )

    def _go(self, position: int) -> None:
        """Fold to ``position`` in slices; when the user moves meanwhile, the last position wins."""
        self._target = max(0, min(position, len(self._rows)))
        if self._moving is None or self._moving.done():
            self._moving = asyncio.create_task(self._move())

    async def _move(self) -> None:
        while True:
            target = self._target
            if target < self._folded:
                self._replay, self._folded = Replay(self._session_id), 0
                self._panes.forget()
            while self._folded < target == self._target:
                end = min(target, self._folded + _SLICE)
                self._replay.fold(self._rows[self._folded : end])
                self._folded = end
                await asyncio.sleep(0)
            if target == self._target:
                self._paint()
                return

    def _paint(self) -> None:
        now = parse_time(self._replay.at or self._rows[0].at)
        since = self._panes.drawn_revision(self._session_id)
        views = self._replay.views(now, since=since, warning=self._warning)
        self.query_one(HeaderBar).show(views.header)
        with self.app.batch_update():
            self._panes.paint(views, self._session_id, ())
        self._panes.proposals.armed = True
        row = self._rows[self._folded - 1] if self._folded else None
        label = f"{row.action} · seq {row.seq} · {row.at[11:19]}" if row else "before the first row"
        begun = [wave for number, wave in self._waves if number <= self._folded]
        if begun:
            label = f"wave {begun[-1]} of {self._waves[-1][1]} · {label}"
        self._timeline.show(self._folded, len(self._rows), label)


class ReplayApp(TerminalApp[int]):
    """``cockpit replay SESSION``."""

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012 -- Textual's way
    TITLE = "cockpit replay"

    def __init__(
        self,
        rows: list[Row],
        session_id: str,
        store: Store,
        *,
        theme: str = themes.DEFAULT,
        warning: str = "",
    ) -> None:
        super().__init__()
        self._store = store
        self._rows = rows
        self._warning = warning
        self._session_id = session_id
        self.use_theme(theme)

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen of the replay."""
        return ReplayScreen(self._rows, self._session_id, self._fork, self._warning)

    async def _fork(self, wave: int) -> None:
        session_id = self._session_id
        fork = await self._store.write(lambda tx: fork_session(tx, session_id, wave))
        name = fork.session.session_id
        text = f"{name} continues after wave {fork.wave}. Follow it: cockpit -r {name}"
        self.notify(clean(text), timeout=20, markup=False)


async def read_session_rows(store: Store, session_id: str) -> list[Row]:
    """Return every row of a session, in order. Raises the store's typed errors."""
    session_rows: list[Row] = []
    while True:
        after = session_rows[-1].seq if session_rows else 0
        look = partial(journal.rows, after=after, session_id=session_id, limit=_READ)
        batch = await store.read(look)
        session_rows += batch
        if len(batch) < _READ:
            return session_rows


async def run_replay(store: Store, session_id: str, *, theme: str = themes.DEFAULT) -> int:
    """Show a past session until the user leaves; returns the exit code. A fork is all that it can write."""
    rows = await read_session_rows(store, session_id)
    if all(
        row.action in KEPT_ACTIONS for row in rows
    ):  # measures stay, and make no session to show
        if await store.read(lambda connection: prune.was_pruned(connection, session_id)):
            raise NotFound(
                f"The journal's rows of session {session_id} were pruned; they are in the archives in"
                " the archive folder of the project's state (`cockpit debug state .`)."
            )
        raise NotFound(f"No session {session_id}. `cockpit sessions` lists all sessions.")
    theme = choose_theme(theme)
    app = ReplayApp(rows, session_id, store, theme=theme, warning=store.anchor.warning)
    return await run_at_terminal(app)
