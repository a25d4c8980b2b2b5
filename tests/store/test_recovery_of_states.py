"""Every state of every table either ends its row or has a way on that recovery takes.

The states are read from the schema: a new one fails here until it says where it goes.
"""

from __future__ import annotations

import importlib
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from store_world import open_store

END = "end"
"""The row's work is over."""

_SESSION = "cockpit.store.sessions.sessions:acquire"
_WAVE = "cockpit.store.sessions.waves:reenter"
_PROPOSAL = "cockpit.loop.decisions.await_decision:await_decision"
_CHAIN = "cockpit.chains.close_dead_chains:close_dead_chains"
_TASK = "cockpit.store.chains.task_leases:acquire"
_TREE = "cockpit.tasks.worktree:clean_worktrees"
_PLAN = "cockpit.backlog.service:set_status"
_ACTION = "cockpit.act.dispatch_actions:Dispatcher.run_wave"

WAYS_ON: dict[str, dict[str, str]] = {
    "trust_rules.status": {
        "active": "cockpit.loop.trust.decide_rules:suspend_rule",
        "suspended": "cockpit.loop.trust.decide_rules:accept_rule",
        "revoked": "cockpit.loop.trust.decide_rules:accept_rule",
    },
    "sessions.status": {
        **dict.fromkeys(("running", "waiting", "stopped", "failed"), _SESSION),
        "completed": END,
    },
    "wave_runs.phase": {
        **dict.fromkeys(
            ("created", "observing", "orienting", "deciding", "acting", "learning"),
            "cockpit.loop.session_loop:run_session",
        ),
        "failed_retryable": _WAVE,
        "completed": END,
        "failed_terminal": END,
    },
    "context_requests.status": {
        "pending": _PROPOSAL,
        "approved": "cockpit.loop.phases.run_observation_jobs:list_work",
        **dict.fromkeys(("rejected", "discussed", "expired", "fetched"), END),
    },
    "outbox_actions.phase": {
        "planned": "cockpit.loop.phases.acting:act",
        "queued": _ACTION,
        "failed_retryable": _ACTION,
        "dispatched": "cockpit.act.dispatch_actions:Dispatcher.recover",
        "uncertain": "cockpit.act.dispatch_actions:settle",
        "confirmed": END,
        "failed_terminal": END,
    },
    "action_receipts.status": dict.fromkeys(("success", "failure", "timeout"), END),
    "orientation_profiles.status": dict.fromkeys(("active", "candidate", "retired"), END),
    "profile_change_proposals.status": {
        "pending": "cockpit.loop.decisions.profile_change_decision:reconcile_profile_changes",
        **dict.fromkeys(("approved", "rejected", "expired"), END),
    },
    "observation_jobs.status": {
        "planned": "cockpit.store.context.observation_jobs:select_open",
        **dict.fromkeys(("done", "failed", "timed_out", "refused"), END),
    },
    **{
        f"{table}.status": {
            **dict.fromkeys(("todo", "review", "blocked"), _PLAN),
            "in_progress": _TASK if table == "tasks" else _PLAN,
            "done": END,
            "archived": END,
        }
        for table in ("epics", "stories", "tasks")
    },
    "task_handoffs.status": dict.fromkeys(("PASS", "FAIL", "BLOCKED"), END),
    "worktrees.status": {
        **dict.fromkeys(("active", "merged", "conflict", "kept"), _TREE),
        "removed": END,
    },
    "task_runs.step": {
        **dict.fromkeys(
            ("implement", "test", "fix", "spec_review", "quality_review", "merge"),
            "cockpit.store.chains.task_runs:resume",
        ),
        "done": END,
        "blocked": END,
    },
    "chains.status": {
        "running": _CHAIN,
        "draining": _CHAIN,
        **dict.fromkeys(("completed", "stopped", "failed", "limited"), END),
    },
    "chain_sessions.status": {
        "running": "cockpit.chains.supervisor:mark_dead_workers",
        **dict.fromkeys(("clean", "crashed", "stopped"), END),
    },
    "notes.status": dict.fromkeys(("proposed", "kept", "forgotten"), END),
    "proposals.status": {
        "pending": "cockpit.store.sessions.proposals:expire_due",
        **dict.fromkeys(("approved", "rejected", "discussed", "expired"), END),
    },
}

BY_COLUMNS = {
    "events": "cockpit.store.sessions.events:reclaim",
    "task_leases": "cockpit.store.chains.task_leases:release_all",
    "sessions": _SESSION,
    "outbox_actions": "cockpit.act.dispatch_actions:Dispatcher.recover",
    "hook_absorber": "cockpit.hook.ingest:ingest_all",
}
"""Tables whose rows are held by a lease, which recovery takes from a dead holder."""

_STATES = re.compile(
    r"CHECK\s*\(\s*(status|phase|step)\s+(IN\s*\([^()]*\)|=\s*'\w+'(?:\s+OR\s+\1\s*=\s*'\w+')*)\s*\)"
)
_LEASE = re.compile(r"\b(?:lease_owner|expires_at TEXT NOT NULL|leased_until)\b")


def tables(folder: Path) -> dict[str, str]:
    with open_store(folder) as store:
        path = store.path
    with closing(sqlite3.connect(path)) as connection:
        return dict(
            connection.execute("SELECT name, sql FROM sqlite_master WHERE type='table'").fetchall()
        )


def test_every_state_of_the_schema_has_a_way_on(tmp_path: Path) -> None:
    states = {
        f"{table}.{column}": set(re.findall(r"'(\w+)'", values))
        for table, sql in tables(tmp_path).items()
        for column, values in _STATES.findall(sql)
    }
    assert states == {column: set(ways) for column, ways in WAYS_ON.items()}


def test_every_lease_of_the_schema_has_a_way_on(tmp_path: Path) -> None:
    leased = {table for table, sql in tables(tmp_path).items() if _LEASE.search(sql)}
    assert leased == BY_COLUMNS.keys()


@pytest.mark.parametrize(
    "way", sorted({way for ways in (*WAYS_ON.values(), BY_COLUMNS) for way in ways.values()})
)
def test_what_recovers_is_there(way: str) -> None:
    if way == END:
        return
    module, _, names = way.partition(":")
    place: object = importlib.import_module(module)
    for name in names.split("."):
        place = getattr(place, name)
    assert callable(place)
