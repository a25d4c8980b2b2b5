"""A session that is stored as it begins, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session

_FIELDS: dict[str, Any] = {
    "task_type": "bug", "title": "fix the client", "words": "fix it", "target": {}, "model": "offline",
    "policy": "ask", "interactive": True, "rev": None, "profile_id": "default", "limits": {}, "branch": "",
}  # fmt: skip


def store_session(tx: Tx, root: Path, **fields: Any) -> Session:
    """Store a session of the project at ``root``, with ``fields`` in place of the usual ones."""
    return sessions.create(tx, **{**_FIELDS, "root": root, "project": root.name, **fields})
