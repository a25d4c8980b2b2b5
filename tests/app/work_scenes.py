"""Backlogs: written through the services, as the command line and agents write them."""

from __future__ import annotations

from cockpit.backlog import service
from cockpit.store.backlog import handoffs, wip
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

DETAILS = """I traced the expiry through `validateToken` and found the clock read twice.

Changed: one read, passed down. The edge case at exactly the expiry second is covered.
Not done: the refresh endpoint still compares in local time; T-49 has it.
"""
EXPIRY = """A token that expires **this second** is accepted by one check and refused by the next.

- read the clock once per request
- `validateToken` gets the moment as an argument
"""


def story(store: Store) -> None:
    """Two epics, three stories, ten tasks in every state."""
    store.write_now(_story)


def _story(tx: Tx) -> None:
    by = "person"
    login = service.create_epic(tx, "Accounts", priority="P0", by=by).epic_id
    docs = service.create_epic(tx, "Documentation", priority="P3", by=by).epic_id
    tokens = service.create_story(tx, "Tokens expire when they say", epic_id=login, by=by).story_id
    limits = service.create_story(tx, "Sign-in is rate limited", epic_id=login, by=by).story_id
    guide = service.create_story(tx, "A guide for operators", epic_id=docs, by=by).story_id
    titles = (
        ("Seed the jitter of retries", tokens, "chore"),
        ("Token expiry edge case", tokens, "bug"),
        ("Read the clock once per request", tokens, "refactor"),
        ("Refresh tokens in UTC", tokens, "bug"),
        ("Count failed sign-ins per address", limits, "feature"),
        ("Answer 429 with Retry-After", limits, "feature"),
        ("Load test of the limiter", limits, "test"),
        ("Say how to rotate the signing key", guide, "docs"),
        ("Say how to read the audit log", guide, "docs"),
        ("Which address counts behind a proxy?", limits, "spike"),
    )
    for title, of, kind in titles:
        service.create_task(tx, title, story_id=of, task_type=kind, by=by)
    service.update_task(
        tx,
        "T-2",
        {
            "description": EXPIRY,
            "acceptance_criteria": "- the same moment is used by every check\n- a test at the second",
            "estimate_hours": 3.0,
            "packages": ("auth",),
        },
        by=by,
    )
    for task, other, how in (
        ("T-4", "T-2", "blocks"),
        ("T-6", "T-5", "blocks"),
        ("T-7", "T-6", "requires"),
        ("T-2", "T-3", "relates_to"),
    ):
        service.add_dependency(tx, task, other, how, by=by)
    service.set_status(tx, "T-1", "in_progress", by="agent")
    handoffs.set_handoff(
        tx, "T-1", "PASS", "The jitter has a seed of its own; two runs wait alike.",
        ["src/http/retry.py", "tests/test_retry.py"], DETAILS, by="agent",
    )  # fmt: skip
    service.set_status(tx, "T-1", "done", by="agent")
    service.set_status(tx, "T-2", "in_progress", by="agent")
    wip.update(
        tx,
        "T-2",
        {
            "phase": "testing",
            "files_modified": ["src/auth.ts", "src/types.ts"],
            "uncommitted_changes": True,
            "last_commit": "a1b2c3d",
            "decisions": [
                {"decision": "JWT over sessions", "reason": "Stateless, scales better"},
                {"decision": "One clock read per request", "reason": "two reads can differ"},
            ],
            "test_results": {
                "ran": True, "passed": 12, "failed": 1,
                "failing_test": "auth.test.ts:validateToken expired",
            },
            "errors": [
                {"type": "type_error", "file": "src/auth.ts:42",
                 "message": "Argument of type 'string' is not assignable to 'Date'."}
            ],
            "context": "Implementing the auth hook for story S-1",
            "next_step": "Fix failing test - token expiry edge case",
        },
        by="agent",
    )  # fmt: skip
    service.set_status(tx, "T-5", "in_progress", by="agent")
    wip.update(tx, "T-5", {"phase": "implementing", "next_step": "store counts by /24"}, by="agent")
    service.set_status(tx, "T-8", "review", by="agent")
    service.block(
        tx, "T-10", "the proxy's headers are not documented; asked operations", by="agent"
    )
    service.add_activity(tx, "T-2", "decision", "JWT over sessions: stateless", by="agent")
    service.add_activity(tx, "T-2", "progress", "12 of 13 tests pass", by="agent")
    service.record_failure(tx, "T-2", "quality", "the clock is read twice", by="reviewer")
