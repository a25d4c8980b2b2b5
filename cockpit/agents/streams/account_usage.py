"""What an agent used, added to its session. See ``docs/reference/agents.md``."""

from __future__ import annotations

from msgspec.structs import asdict

from cockpit.agents.streams.stream_events import TokenUsage
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.sessions import sessions


def record_usage(
    tx: Tx, session_id: str, usage: TokenUsage, *, model: str, stop: str, actor: str
) -> None:
    """Add what an agent used to its session's totals, and journal it as a call of ``model``."""
    spent = asdict(usage)
    sessions.add_usage(tx, session_id, **spent)
    tx.journal(ModelCompleted(model=model, stop=stop, **spent), actor=actor, session_id=session_id)
