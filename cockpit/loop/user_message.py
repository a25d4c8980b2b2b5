"""The user's message to a session, as the event that begins its next wave.

Specified in ``docs/reference/loop.md``.
"""

from __future__ import annotations

from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events, messages, sessions

USER_MESSAGE_SENT = "person.said"
"""The event that a wave begins for."""
ACP = "acp"
"""The transport of sessions whose external agent cockpit drives."""
EVOLVE = "evolve"
"""The transport of sessions in which a tool grows: no wave runs them."""


def send_message(tx: Tx, session_id: str, text: str) -> str:
    """Store the user's message for a session and return its id; a waiting session wakes up.

    It is pinned in the session's next wave. Raises ``NotFound``.
    """
    session = sessions.load(tx.connection, session_id)
    message_id = messages.complete(tx, session_id=session_id, role="person", text=text)
    if session.transport in (ACP, EVOLVE):
        return message_id  # its driver reads the message itself; no wave takes an event of it
    events.ingest(
        tx,
        source=session.source,
        source_event_id=message_id,
        event_type=USER_MESSAGE_SENT,
        payload={"message_id": message_id},
        trace_id=session.trace_id,
        tier=0,
    )
    return message_id
