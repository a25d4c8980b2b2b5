"""The events of the newest chain, which the conversation shows while no session is followed.

They have the words of ``cockpit work``. Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from cockpit.core.errors import CockpitError
from cockpit.store.journal.event_types import Action
from widgets.text.detail import DetailRow, sentence
from widgets.text.style_names import BAD, DIM, GOOD, STRONG, WARN, line

if TYPE_CHECKING:
    from cockpit.app.state.chains import Chains, ShownChain
    from cockpit.store.db.database import Store

MOST = 60
"""Events that are shown."""
_ACTIONS = (
    *(Action.CHAIN_CHANGED, Action.CHAIN_SESSION_CHANGED, Action.BATCH_CHANGED),
    Action.CHAIN_NOTED,
    Action.CHAIN_DELAYED,
    Action.TASK_RUN_STEP,
)
_CLOCK = slice(11, 16)
_PROCESS = re.compile(r" \(process \d+\)")
_TONES = {"✔": GOOD, "✗": BAD, "!": WARN, "■": WARN, "⚠": WARN, "▶": ""}


class ChainLog:
    """Reads the events again when the chain has moved."""

    def __init__(self) -> None:
        self._of: ShownChain | None = None
        """The chain whose events were read, as it was then."""
        self._rows: Sequence[DetailRow] = ()
        self.is_reading = False
        """Whether the events are being read; they are drawn after that."""
        self.is_live = False
        """Whether the chain runs."""

    def show(
        self,
        chains: Chains,
        store: Store,
        run: Callable[[Coroutine[Any, Any, None]], None],
        on_change: Callable[[], None],
    ) -> Sequence[DetailRow]:
        """Return the rows of the newest chain; nothing without one. ``run`` reads them in the background."""
        chain = next(iter(chains.newest(1)), None)
        if chain is None:
            return ()
        self.is_live = chain.live
        if chain is not self._of and not self.is_reading:
            self.is_reading = True
            run(self._read(store, chain, on_change))
        is_read = self._of is not None and self._of.chain_id == chain.chain_id
        return self._rows if is_read else ()

    async def _read(self, store: Store, chain: ShownChain, on_change: Callable[[], None]) -> None:
        try:
            self._rows = await store.read(lambda connection: read_log(connection, chain.chain_id))
        except (CockpitError, sqlite3.Error):
            return  # the feed reports that the store cannot be read
        finally:
            self._of, self.is_reading = chain, False
        on_change()


def read_log(connection: sqlite3.Connection, chain_id: str) -> Sequence[DetailRow]:
    """Read the newest events of a chain, the newest first."""
    from cockpit.chains.progress_lines import ProgressLines  # late: after the first frame
    from cockpit.store.journal.journal import newest_rows

    words = ProgressLines(chain_id)
    shown = [
        _row(row.at[_CLOCK], _PROCESS.sub("", event.line))
        for row in newest_rows(connection, _ACTIONS, MOST)
        if (event := words.line_for(row)) is not None
    ]
    heading = sentence((chain_id, STRONG), ("  f5 shows its tasks · alt+d its branch", DIM))
    return [heading, *reversed(shown[-MOST:])]


def _row(at: str, text: str) -> DetailRow:
    indent = " " * (len(text) - len(text.lstrip()))
    sign = next((each for each in _TONES if f" {each} " in f" {text} "), "")
    lead = line((f"{at}  ", DIM), indent)
    return DetailRow(line((text.strip(), _TONES.get(sign, ""))), lead, line(" " * 9, indent))
