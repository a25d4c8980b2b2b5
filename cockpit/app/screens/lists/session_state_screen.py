"""The state of the followed session: what it read, changed, ran, has loaded and was allowed, and why.

Specified in ``docs/reference/loop.md``, state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cockpit.app.dialogs.file_view import FileView
from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.text import pluralize
from cockpit.loop.session_state.state_overview import (
    StateOverview,
    StateRow,
    read_state_overview,
)
from cockpit.store.sessions import sessions
from widgets.text.detail import DetailRow, entries, fields, sentence
from widgets.text.style_names import DIM, STRONG, Part
from widgets.work.task_card_views import Tone
from widgets.work.task_views import QueuedView

_SIGNS: dict[str, tuple[str, Tone]] = {
    "read": ("◇", "plain"),
    "changed": ("✎", "accent"),
    "tests": ("▶", "plain"),
    "facts": ("·", "dim"),
    "skill": ("✦", "good"),
    "tool": ("◈", "plain"),
    "rule": ("⚖", "accent"),
}
_TONES: dict[str, Tone] = {
    "in packet": "good",
    "loaded": "good",
    "passed": "good",
    "failed": "bad",
    "old version": "warn",
    "partly in packet": "warn",
    "until the next wave": "warn",
}


class SessionStateScreen(ListScreen[StateRow]):
    """Files with version and lines, tests with results, facts, skills, tools and rules of a session."""

    NAME = "Session state"
    PANE = "session_state"
    EMPTY = (
        "Nothing yet. What the session reads, changes and runs appears here from its first wave on."
    )
    ENTER = ("open",)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._overview: StateOverview | None = None
        self._root: Path | None = None

    async def read_rows(self) -> tuple[Sequence[StateRow], Sequence[str]]:
        session_id = self.host.session_id
        if not session_id:
            self._overview = None
            return (), ()
        store = self.host.engine.store
        self._overview = await store.read(partial(read_state_overview, session_id=session_id))
        session = await store.read(partial(sessions.load, session_id=session_id))
        self._root = Path(session.cwd or session.root)
        return self._overview.rows, ()

    def describe(self) -> Sequence[Part]:
        if self._overview is None:
            return [("no session is followed", DIM)]
        stats, earlier = self._overview.state.get_stats(), self._overview.earlier
        counts = [
            f"{pluralize(stats['visited_files'], 'file')} read",
            f"{stats['modified_files']:,} changed",
            f"{pluralize(stats['test_runs'], 'test run')}",
            f"{pluralize(stats['facts_in_packet'], 'fact')} in the packet",
        ]
        parts: list[Part] = [(" · ".join(counts), DIM)]
        if earlier:
            before = pluralize(len(earlier), "session")
            parts.append((f"   and of {before} before it in its task", DIM))
        return parts

    def verbs(self, row: StateRow) -> Mapping[str, str]:
        return {"open": "open the file"} if row.path else {}

    async def do(self, verb: str, row: StateRow) -> None:
        root = self._root or self.host.engine.place.root
        await self.host.open_screen(FileView(root, row.path, row.line or 1))

    def draw_row(self, row: StateRow) -> QueuedView:
        sign, tone = _SIGNS[row.section]
        key = f"{row.section}\0{row.name}\0{row.session_id}\0{row.number}\0{row.state == 'offered'}"
        text = (
            f"{row.text} · session {row.session_id}, before this one"
            if row.session_id
            else row.text
        )
        state_tone = _TONES.get(row.state, tone)
        return QueuedView(key, row.name, sign, state_tone, row.state, text, row.section)

    def draw_detail(self, row: StateRow, detail: Any) -> Sequence[DetailRow]:
        facts = [
            (row.section, row.text),
            ("state", row.state),
            ("session", f"{row.session_id}, before this one" if row.session_id else ""),
        ]
        head = [sentence((row.name, STRONG)), *fields(facts)]
        return [*head, *entries(_HEADINGS.get(row.section, "parts"), row.lines)]


_HEADINGS = {"read": "each look", "rule": "what it let pass"}
