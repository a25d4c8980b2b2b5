"""The work pane: chains, tasks in progress, and what each session does now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from cockpit.app.state import kanban
from cockpit.app.state.header import SessionState
from cockpit.app.state.work import Work
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


def summary(
    totals: Mapping[str, Totals], sessions: Mapping[str, SessionState], asking: Collection[str] = ()
) -> str:
    """All sessions outside chains in one line; empty while there are none.

    ``totals`` are the sums by status. ``asking`` are the sessions with a pending proposal, those of chains
    included: they wait for the user.
    """
    counts: Counter[str] = Counter()
    for status, each in totals.items():
        counts[session_state(status)] += each.sessions
    total = counts.total()
    for session_id in filter(None, asking):
        if (listed := sessions.get(session_id)) is not None and not listed.in_chain:
            counts[session_state(listed.status)] -= 1
        counts["waiting"] += 1
    parts = [pluralize(total, "session")] if total else []
    parts += [
        count_in_state("session", state, counts[state]) for state in _COUNTED if counts[state] > 0
    ]
    costs = [each.cost_usd for each in totals.values() if each.cost_usd is not None]
    if costs:
        parts.append(money(sum(costs)))
    return "   ".join(parts)


def board(
    sessions: Mapping[str, SessionState],
    totals: Mapping[str, Totals],
    *,
    followed: str,
    waiting: Collection[str],
    work: Work,
    chains: tuple[ChainRowView, ...] = (),
) -> WorkPaneView:
    """Chains first, then other tasks at work; then sessions, those that run before those that ended,
    the latest first. ``waiting`` are the sessions with a pending proposal."""
    beside = {each.line.key for each in chains if isinstance(each, ChainTaskView)}
    alone = [each for each in sessions.values() if not each.in_chain]
    alone.sort(key=lambda each: (each.ended, -each.order))
    conflicts = find_conflicts(alone[:MOST])
    return WorkPaneView(
        work=kanban.summary(work),
        tasks=kanban.lines(work, beside=beside),
        summary=summary(totals, sessions, waiting),
        rows=tuple(
            _row(each, followed, each.session_id in waiting, conflicts.get(each.session_id, ""))
            for each in alone[:MOST]
        ),
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
