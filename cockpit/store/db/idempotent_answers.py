"""Answers to requests with an idempotency key, kept in the transaction that did the work.

A repeat of the request gets the kept answer, also from another process and after a restart. See
``docs/reference/http.md``, versions, pages and repeats.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.clock import format_time
from cockpit.store.db.transaction import Tx

KEPT_S = 86_400.0
"""Seconds that an answer is kept."""
_DROPPED_AT_ONCE = 50


class KeptAnswer(Struct, frozen=True):
    """One row of ``kept_answers``."""

    request_digest: str
    status: int
    body: Mapping[str, Any]


def find(
    connection: sqlite3.Connection, namespace: str, key: str, *, since: str
) -> KeptAnswer | None:
    """Return the answer that was kept after ``since``, or None."""
    row = connection.execute(
        "SELECT request_digest, status, body_json FROM kept_answers"
        " WHERE namespace=? AND key=? AND created_at>?",
        (namespace, key, since),
    ).fetchone()
    return None if row is None else KeptAnswer(row[0], row[1], parse_json(row[2]))


def find_in(tx: Tx, namespace: str, key: str) -> KeptAnswer | None:
    """Return the answer that is still kept, or None."""
    return find(tx.connection, namespace, key, since=_oldest(tx))


def keep(tx: Tx, namespace: str, key: str, answer: KeptAnswer) -> None:
    """Keep an answer; some that are too old are dropped.

    Its body is made of what the store has, which is masked, and of lease tokens, which a repeat needs.
    """
    # A few at a time: each dropped row leaves a seal in the journal's next row.
    old = tx.execute(
        "SELECT namespace, key FROM kept_answers WHERE created_at<=? ORDER BY created_at LIMIT ?",
        (_oldest(tx), _DROPPED_AT_ONCE),
    ).fetchall()
    for row in [*old, (namespace, key)]:
        tx.execute("DELETE FROM kept_answers WHERE namespace=? AND key=?", row)
    tx.execute(
        "INSERT INTO kept_answers VALUES (?,?,?,?,?,?)",
        (
            namespace,
            key,
            answer.request_digest,
            answer.status,
            canonical_json(dict(answer.body)),
            tx.now(),
        ),
    )


def _oldest(tx: Tx) -> str:
    return format_time(tx.clock.now() - timedelta(seconds=KEPT_S))
