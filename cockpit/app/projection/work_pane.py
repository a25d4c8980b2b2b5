"""The work pane: chains, tasks in progress, and what each session does now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from cockpit.app.projection import kanban
from cockpit.app.projection.backlog import Work
from cockpit.app.projection.header import SessionState
from cockpit.app.projection.hook_sessions import Agents
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import count_in_state, state_sign
from cockpit.store.sessions.session_list import Totals
from cockpit.store.sessions.session_states import session_state
from cockpit.store.sessions.sessions import model_for_people
from widgets.text.numerals import money, tokens
from widgets.views import WorkPaneView, WorkRowView
from widgets.work.chain_tree_views import ChainRowView, ChainTaskView

_CLOCK = slice(11, 16)
_NAME = 40
_COUNTED = ("running", "waiting", "blocked", "failed", "paused", "done", "stopped")
"""States in the line of their counts, whose end a narrow pane cuts off."""
MOST = 200
"""Sessions that are listed."""


class Roster:
    """The sessions that stand in no tree, in the order in which they are shown, and their sums.

    Kept as rows come, so that tens of thousands of sessions cost no more to look at than those seen.
    """

    def __init__(self) -> None:
        self._live: dict[str, SessionState] = {}
        self._ended: dict[str, SessionState] = {}
        self._sessions: dict[str, tuple[str, float | None]] = {}
        self._counts: Counter[str] = Counter()
        self._cost: float | None = None
        self.totals: Mapping[str, Totals] | None = None
        """The sums as the tables have them, by status; None while every session is here."""

    def changed(self, session: SessionState) -> None:
        """The session's latest row changed it."""
        name = session.session_id
        self.drop(name)
        (self._ended if session.ended else self._live)[name] = session
        self._sessions[name] = (session.status, session.cost_usd)
        self._counts[session.status] += 1
        if session.cost_usd is not None:
            self._cost = (self._cost or 0.0) + session.cost_usd

    def drop(self, session_id: str) -> None:
        """The session stands somewhere else."""
        status, cost = self._sessions.pop(session_id, ("", None))
        if not status:
            return
        self._counts[status] -= 1
        if cost is not None and self._cost is not None:
            self._cost -= cost
        self._live.pop(session_id, None)
        self._ended.pop(session_id, None)

    def replace(self, session: SessionState) -> None:
        """Show this state of a session in the place of the one before."""
        for sessions in (self._live, self._ended):
            if session.session_id in sessions:
                sessions[session.session_id] = session

    def __iter__(self) -> Iterator[SessionState]:
        """Those that run before those that ended, the latest first."""
        yield from reversed(self._live.values())
        yield from reversed(self._ended.values())

    def summary(self, asking: Collection[str] = ()) -> str:
        """All of them in one line; empty while there are none.

        ``asking`` are the sessions with a pending proposal, those of chains included: they wait for the user.
        """
        statuses, cost = self._sums()
        counts: Counter[str] = Counter()
        for status, number in statuses.items():
            counts[session_state(status)] += number
        total = counts.total()
        for session_id in filter(None, asking):
            if (listed := self._sessions.get(session_id)) is not None:
                counts[session_state(listed[0])] -= 1
            counts["waiting"] += 1
        parts = [pluralize(total, "session")] if total else []
        parts += [
            count_in_state("session", state, counts[state])
            for state in _COUNTED
            if counts[state] > 0
        ]
        if cost is not None:
            parts.append(money(cost))
        return "   ".join(parts)

    def _sums(self) -> tuple[Counter[str], float | None]:
        if self.totals is None:
            return self._counts, self._cost
        costs = [each.cost_usd for each in self.totals.values() if each.cost_usd is not None]
        counts = Counter({name: each.sessions for name, each in self.totals.items()})
        return counts, sum(costs) if costs else None


def board(
    roster: Roster,
    *,
    followed: str,
    waiting: Collection[str],
    work: Work,
    chains: tuple[ChainRowView, ...] = (),
    agents: Agents | None = None,
) -> WorkPaneView:
    """Chains first, then other tasks at work; then sessions, those that run before those that ended,
    the latest first. ``waiting`` are the sessions with a pending proposal."""
    beside = {each.line.key for each in chains if isinstance(each, ChainTaskView)}
    sessions = list(islice(roster, MOST))
    conflicts = find_conflicts(sessions)
    rows = [
        _row(each, followed, each.session_id in waiting, conflicts.get(each.session_id, ""))
        for each in sessions
    ]
    return WorkPaneView(
        work=kanban.summary(work),
        tasks=kanban.lines(work, beside=beside),
        summary=roster.summary(waiting),
        rows=(*(agents.rows() if agents is not None else ()), *rows),
        chains=chains,
    )


def find_conflicts(sessions: Iterable[SessionState]) -> dict[str, str]:
    """Return what to say of sessions at work whose agents changed the same file on the same branch."""
    holders: dict[tuple[str, str], list[SessionState]] = {}
    for each in sessions:
        for path in () if each.ended else each.changed_files:
            holders.setdefault((each.branch, path), []).append(each)
    words: dict[str, str] = {}
    for (_, path), those in holders.items():
        for each in those if len(those) > 1 else ():
            other = next(other for other in those if other is not each)
            words[each.session_id] = f"! {path} is also changed by {other.name[:_NAME]}"
    return words


def _row(session: SessionState, followed: str, waiting: bool, conflict: str) -> WorkRowView:
    status = session.state(asks=waiting)
    look = state_sign("session", status)
    spent = [tokens(session.tokens)] if session.tokens else []
    if session.cost_usd is not None:
        spent.append(money(session.cost_usd))
    state = look.word
    if status == "running" and session.wave and not session.agent:
        state = f"{session.stage} · wave {session.wave}"
    about = []
    if session.agent:
        model = model_for_people(session.model)
        about = [session.agent, session.branch, session.since[_CLOCK], model]
    end = [session.summary] if session.ended and session.summary else []
    detail = " · ".join(part for part in (conflict, *about, *spent, *end) if part)
    return WorkRowView(
        key=session.session_id,
        sign=look.sign,
        tone=look.tone,
        title=session.name,
        state=state,
        detail=detail,
        current=session.session_id == followed,
    )
