"""External agents that reported through hooks before their sessions had rows, folded from the journal.

One line each shows what they did; they cannot be followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct, field

from cockpit.loop.views.event_text import hook_text
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.journal.details.agents import AgentReport, AgentSessionEnded
from cockpit.store.journal.journal import Row
from widgets.views import LineView, TurnView, WorkRowView

PREFIX = "agent."
KEY = "agent/"
"""What the key of an agent's row begins with."""

_SHOWN = 12
_KEPT = 24
_CLOCK = slice(11, 16)


class AgentState(Struct):
    """One session of an external agent: its newest events as (time, text), the last at the end."""

    agent_session: str
    agent: str = ""
    task_id: str = ""
    ended: bool = False
    events: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_KEPT))


class Agents:
    """The sessions of external agents, the one that reported last at the end."""

    def __init__(self) -> None:
        self.sessions: dict[str, AgentState] = {}

    def apply(self, row: Row) -> None:
        """Fold one ``agent.*`` row; one that names no session is skipped."""
        report = row.detail
        if row.session_id:
            return  # it is a session of its own, with a row of its own
        if not isinstance(report, AgentReport) or not report.agent_session:
            return
        identity = report.agent_session
        state = self.sessions.pop(identity, None) or AgentState(identity)
        self.sessions[identity] = state
        state.agent = report.agent or state.agent
        state.task_id = report.task_id or state.task_id
        state.ended = isinstance(report, AgentSessionEnded)
        at = report.at or row.at
        state.events.append((at[_CLOCK], hook_text(report, row.action)))

    def rows(self) -> Iterator[WorkRowView]:
        """A line for each, those that run first, then the latest that ended."""
        latest = list(reversed(self.sessions.values()))
        ordered = [each for each in latest if not each.ended]
        ordered += [each for each in latest if each.ended]
        for each in islice(ordered, _SHOWN):
            at, words = each.events[-1]
            look = state_sign("agent", "ended" if each.ended else "running")
            yield WorkRowView(
                key=f"{KEY}{each.agent_session}",
                sign=look.sign,
                tone=look.tone,
                title=f"{each.task_id} {each.agent or 'agent'}".strip(),
                state="ended" if each.ended else words,
                detail=f"external agent · {at}",
            )

    def turns(self, key: str) -> tuple[str, tuple[TurnView, ...]] | None:
        """A title, and what the agent of that row did last; None for any other row."""
        if not key.startswith(KEY):
            return None
        state = self.sessions.get(key.removeprefix(KEY))
        if state is None:
            return None
        lines = tuple(LineView("·", words, right=at) for at, words in state.events)
        name = f"{state.task_id} {state.agent or 'agent'}".strip()
        return name, (TurnView(f"{KEY}{state.agent_session}", "note", lines=lines),)
