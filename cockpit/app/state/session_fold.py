"""One session as the fold of its own rows: its conversation, its bands, and what its agent says of itself.

The followed session is folded while it goes on; from the first row to any other, the same fold is replay.
:meth:`OpenSession.apply` is total (it never raises on any row) and indifferent to how rows are batched.
"""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.app.state import chains, work
from cockpit.app.state.agent_state import AgentState
from cockpit.app.state.band_meter import meter, waves_left, with_reported_cache
from cockpit.app.state.conversation import Conversation
from cockpit.app.state.header import SessionState
from cockpit.store.journal.journal import Row
from widgets.views import MeterView

NOTHING = MeterView()
_AGENTS_OWN = MeterView(
    empty="An external agent chooses its own context: it has no bands.", explains=False
)
NOT_OF_SESSIONS = (*chains.PREFIXES, *work.PREFIXES)
"""What begins rows that may name a session and do not change it."""


class OpenSession:
    """A session with its conversation and its band meter, up to the row ``seq``."""

    def __init__(self, session_id: str, *, in_chain: bool = False) -> None:
        self.seq = 0
        self.session = SessionState(session_id, in_chain=in_chain)
        self.conversation = Conversation()
        self.agent = AgentState()
        self.meter = NOTHING
        self._waves_left: int | None = None

    def apply(self, row: Row) -> None:
        """Fold one row; those of other sessions, and those that were folded before, are passed over."""
        if row.seq <= self.seq or row.session_id != self.session.session_id:
            return
        self.seq = row.seq
        if row.action.startswith(NOT_OF_SESSIONS):
            return
        self.session.apply(row)
        self.conversation.apply(row)
        self.agent.apply(row)
        if row.action == "wave.started":
            self._waves_left = waves_left(row)
        elif row.action == "orientation.packet.compiled":
            self.meter = meter(row, self._waves_left, self.meter.history)
        elif row.action == "model.completed":
            self.meter = with_reported_cache(self.meter, row)

    def fold(self, rows: Iterable[Row]) -> None:
        """Fold many rows."""
        for row in rows:
            self.apply(row)


def meter_of(opened: OpenSession | None, new_agent: str = "") -> MeterView:
    """Return the bands of a session; an external agent has none, also before its first session."""
    if opened is None:
        return _AGENTS_OWN if new_agent else NOTHING
    is_agents = opened.session.agent and opened.meter is NOTHING
    return _AGENTS_OWN if is_agents else opened.meter
