"""The state of the screen as the tables have it: its cost does not grow with the journal.

``docs/reference/screen.md``
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from cockpit.app.projection.current_chains import read_chains
from cockpit.app.projection.current_work import read_preview
from cockpit.app.projection.fold import OpenSession, State
from cockpit.app.projection.header import SessionState
from cockpit.app.projection.proposal_queue import preview
from cockpit.app.projection.work_pane import MOST
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import newest_rows, session_rows
from cockpit.store.sessions import proposals, session_list
from cockpit.store.sessions.session_list import Listed
from cockpit.store.trust import trust_rules
from widgets.views import Phase

_AGENT_ROWS = 600
"""Rows of external agents' hooks that are looked through: what they did last."""
_AGENTS = (Action.AGENT_SESSION_STARTED, Action.AGENT_SESSION_ENDED, Action.AGENT_HOOK)
_PENDING_MOST = 10_000
_PHASES: dict[str, Phase] = {
    "created": "created",
    "observing": "observe",
    "orienting": "orient",
    "deciding": "decide",
    "acting": "act",
    "learning": "learn",
    "completed": "done",
    "failed_retryable": "failed",
    "failed_terminal": "failed",
}


def read_state(connection: sqlite3.Connection, session_id: str) -> State:
    """Return the state now, with the session ``session_id`` open. To be called in one snapshot."""
    state = State(follows_all=False)
    state.seq = journal.last_seq(connection)
    for proposal in proposals.select_pending(connection, _PENDING_MOST):
        waiting = preview(proposal)
        state.queue.pending[proposal.proposal_id] = waiting
        if (card := waiting.body.card.rule_id) and not _is_in_force(connection, card):
            state.queue.ended_rules.add(card)
    state.chains = read_chains(connection)
    live = [chain for chain in state.chains.chains.values() if chain.live]
    runs = [run for chain in live for run in chain.runs.values()]
    scopes = [chain.scope_id for chain in state.chains.chains.values() if chain.scope_id]
    state.work = read_preview(connection, [run.task_id for run in runs], scopes)
    for row in newest_rows(connection, _AGENTS, _AGENT_ROWS):
        state.agents.apply(row)
    shown = [each.session_id for each in state.queue.pending.values() if each.session_id]
    shown += [run.session_id for run in runs if run.session_id and not run.ended]
    _list_sessions(state, session_list.select_listed(connection, MOST, shown))
    state.roster.totals = session_list.read_totals(connection)
    if session_id:
        followed = OpenSession(
            session_id, in_chain=session_list.is_in_chain(connection, session_id)
        )
        after = 0
        while rows := session_rows(connection, session_id, after=after, until=state.seq):
            followed.fold(rows)
            after = rows[-1].seq
        state.open_session(followed)
    return state


def _is_in_force(connection: sqlite3.Connection, rule_id: str) -> bool:
    rule = trust_rules.find(connection, rule_id)
    return rule is not None and rule.status == "active"


def _list_sessions(state: State, listed: Iterable[Listed]) -> None:
    for each in listed:
        session = SessionState(
            each.session_id,
            created_at=each.created_at,
            task_type=each.task_type,
            title=each.title,
            words=each.words,
            model=each.model,
            policy=each.policy,
            role=each.role,
            task_id=each.task_id,
            agent=each.agent,
            branch=each.branch,
            since=each.created_at,
            changed_files=each.changed_files,
            wave=each.wave,
            phase=_PHASES.get(each.phase, "created"),
            in_chain=each.in_chain,
            tokens=each.tokens,
            cost_usd=each.cost_usd,
        )
        if each.entered is not None:
            session.apply(each.entered)
        session.order = each.changed_seq
        state.list_session(session)
