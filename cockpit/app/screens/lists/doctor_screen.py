"""The checks of ``cockpit doctor``: what works, what is missing, what is broken, and what to do about it.

Specified in ``docs/reference/screen.md``, lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cockpit.app.command_process import run_cockpit
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.read_record import decode_json
from cockpit.loop.views.state_signs import state_sign
from widgets.text.detail import DetailRow, fields
from widgets.text.style_names import DIM, Part
from widgets.work.task_views import QueuedView


class CheckRow(msgspec.Struct, frozen=True):
    """One check as ``cockpit doctor --json`` prints it."""

    name: str
    state: str
    detail: str = msgspec.field(name="found")
    mend: str = ""


class DoctorScreen(ListScreen[CheckRow]):
    """What is broken first, then what is missing, then what works; ``r`` checks again."""

    NAME = "Doctor"
    PANE = "doctor"

    async def read_rows(self) -> tuple[Sequence[CheckRow], Sequence[str]]:
        printed = await run_cockpit(self.host.engine.place, ("doctor", "--json"), fine_codes=(0, 1))
        rows = decode_json(printed, list[CheckRow])
        order = ("broken", "missing", "ok")
        return sorted(rows, key=lambda row: order.index(row.state)), ()

    def revision(self) -> object:
        return ()  # nothing of the journal changes a check

    def describe(self) -> Sequence[Part]:
        counts = Counter(row.state for row in self.rows)
        words = [
            f"{counts[state]} {'work' if state == 'ok' else state}"
            for state in ("broken", "missing", "ok")
            if counts[state]
        ]
        return [(", ".join(words), DIM)]

    def general_verbs(self) -> Mapping[str, str]:
        return {"refresh": "check again"}

    def start(self, verb: str) -> None:
        """Check again."""
        self.read_again()

    def draw_row(self, row: CheckRow) -> QueuedView:
        sign = state_sign("check", row.state)
        return QueuedView(row.name, row.detail, sign.sign, sign.tone, sign.word, row.mend, row.name)

    def draw_detail(self, row: CheckRow, detail: Any) -> Sequence[DetailRow]:
        word = state_sign("check", row.state).word
        return fields([("check", row.name), ("state", word), ("is", row.detail), ("do", row.mend)])
