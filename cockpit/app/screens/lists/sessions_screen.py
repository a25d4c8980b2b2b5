"""The sessions of the project, of chains and of external agents too: search, look into, follow, rename.

Specified in ``docs/reference/screen.md``, lists.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.app.actions import rewind_actions
from cockpit.app.dialogs.small_dialogs import Ask
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.text import pluralize
from cockpit.loop.rewind.apply_rewind import list_rewound
from cockpit.loop.views.state_signs import count_in_state, state_sign
from cockpit.store.sessions import messages, sessions
from cockpit.store.sessions.messages import Message
from cockpit.store.sessions.session_states import select_asking, state_of
from cockpit.store.sessions.sessions import Session
from widgets.text.detail import DetailRow, fields, quoted, sentence
from widgets.text.numerals import money, tokens
from widgets.text.style_names import DIM, STRONG, WARN, Part
from widgets.work.task_views import QueuedView

MOST = 500
"""Sessions that are listed: those that changed last."""
_PREVIEWED = 6
_PREVIEW_MOST = 1_200
_ON_WAVES = {
    "fork": rewind_actions.fork_from_wave,
    "rewind": rewind_actions.rewind_session,
    "forward": rewind_actions.come_forward,
}
_SPEAKERS = {"person": "you", "agent": "agent", "notice": "cockpit"}


class SessionsScreen(ListScreen[Session]):
    """Sessions, the one that changed last first; the detail has their last messages."""

    NAME = "Sessions"
    PANE = "sessions"
    EMPTY = "No sessions yet. A message in the prompt starts one."
    ENTER = ("follow",)

    _rewound: frozenset[str] = frozenset()
    """The sessions that began by going back."""
    _asking: frozenset[str] = frozenset()
    """The sessions that have a pending proposal."""

    async def read_rows(self) -> tuple[Sequence[Session], Sequence[str]]:
        self._rewound = await asyncio.to_thread(list_rewound, self.host.engine.place)

        def read(connection: sqlite3.Connection) -> list[Session]:
            self._asking = select_asking(connection)
            return sessions.select_recent(connection, MOST)

        return await self.host.engine.store.read(read), ()

    def describe(self) -> Sequence[Part]:
        waiting = sum(1 for row in self.rows if state_of(row, self._asking) == "waiting")
        parts: list[Part] = [(pluralize(len(self.rows), "session"), DIM)]
        if waiting:
            parts.append((f"   {count_in_state('session', 'waiting', waiting)}", STRONG))
        if len(self.rows) == MOST:
            parts.append((f"   the {MOST:,} that changed last are listed", WARN))
        return parts

    def verbs(self, row: Session) -> Mapping[str, str]:
        verbs = {"follow": "follow", "rename": "rename"}
        if not row.agent and not row.role:
            verbs |= {"fork": "fork", "rewind": "go back"}
        if row.session_id in self._rewound:
            verbs["forward"] = "bring files back"
        return {**verbs, "export": "export"}

    async def do(self, verb: str, row: Session) -> None:
        if verb == "rename":
            self._rename(row)
            return
        self.host.pop_screen()
        if verb in _ON_WAVES:
            _ON_WAVES[verb](self.host, row.session_id)
            return
        self.host.trail.clear()
        self.host.attach(row.session_id)
        if verb == "export":
            self.host.send_message("/export")

    def _rename(self, row: Session) -> None:
        def save(title: str | None) -> None:
            if title and title != row.title:
                self.host.request(lambda: self._save_title(row, title))

        self.host.open_screen(Ask("Rename the session", row.session_id, value=row.title), save)

    async def _save_title(self, row: Session, title: str) -> None:
        await self.host.engine.change(row.session_id, title=title)
        self.read_again()

    async def read_detail(self, row: Session) -> tuple[Message, ...]:
        def read(connection: sqlite3.Connection) -> tuple[Message, ...]:
            return tuple(messages.select_latest(connection, row.session_id, _PREVIEWED))

        return await self.host.engine.store.read(read)

    def words(self, row: Session) -> str:
        parts = (row.words, row.task_type, row.agent or row.model, row.role, row.task_id or "")
        return "\n".join((*parts, row.branch, row.session_id))

    def draw_row(self, row: Session) -> QueuedView:
        state = state_sign("session", state_of(row, self._asking))
        parts = (
            "followed" if row.session_id == self.host.session_id else "",
            self.host.state.chains.words_of(row.session_id),
            row.role.replace("_", " "),
            row.task_id or "",
            row.agent or row.task_type,
            row.branch,
            money(row.cost_usd) if row.cost_usd is not None else "",
            row.updated_at[:16].replace("T", " "),
        )
        about = " · ".join(filter(None, parts))
        return QueuedView(
            row.session_id, row.title, state.sign, state.tone, state.word, about, row.session_id
        )

    def draw_detail(self, row: Session, detail: Any) -> Sequence[DetailRow]:
        used = row.input_tokens + row.output_tokens
        facts = [
            ("title", row.title),
            ("state", state_sign("session", state_of(row, self._asking)).word),
            ("summary", str(row.result.get("summary", ""))),
            ("agent", row.agent),
            ("model", sessions.model_for_people(row.model)),
            ("policy", row.policy),
            ("task type", row.task_type),
            ("task", " · ".join(filter(None, (row.task_id, row.role.replace("_", " "))))),
            ("branch", row.branch),
            ("folder", row.cwd),
            ("tokens", tokens(used) if used else ""),
            ("cost", money(row.cost_usd) if row.cost_usd is not None else ""),
            ("began", row.created_at[:16].replace("T", " ")),
            ("changed", row.updated_at[:16].replace("T", " ")),
        ]
        rows: list[DetailRow] = []
        for message in detail or ():
            text = message.text.strip()
            shown = text[:_PREVIEW_MOST] + ("…" if len(text) > _PREVIEW_MOST else "")
            rows += [*quoted(_SPEAKERS.get(message.role, message.role), shown), sentence()]
        return [*rows, *fields(facts)]
