"""A chain's row, as ``cockpit work --all --headless`` would begin it."""

from __future__ import annotations

from typing import Any

from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx


def create_chain_row(tx: Tx, **changes: Any) -> Chain:
    """Create a chain over the whole backlog, with ``changes``; no process runs it."""
    fields: dict[str, Any] = dict.fromkeys(("model", "runner", "max_cost", "max_wall_s"))
    fields |= {"scope_kind": "all", "headless": True, "batch": "auto", "approve": "all"}
    fields |= {"max_chains": 10, "base_branch": "main", "base_commit": "0" * 40}
    return chains.create(tx, **(fields | changes))
