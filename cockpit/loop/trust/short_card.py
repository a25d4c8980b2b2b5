"""The short card of an action whose shape the user has accepted for it: all that would be posted, and Enter.

The card approves nothing and hides nothing: a post to GitHub needs one key in place of two, and only while
it is short enough to be read at a glance. See ``docs/reference/trust.md``, short cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.act.proposed_action import ActionPreview
from cockpit.loop.trust.find_covering_rules import count_uses, find_card
from cockpit.loop.trust.request_parts import AskedProposal
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.trust.shape import GITHUB

MOST_LINES = 20
MOST_CHARACTERS = 1_500
"""A longer post, or one with more lines, is proposed in full and takes both keys."""


def add_card(
    tx: Tx,
    context: WaveContext,
    proposal_id: str,
    preview: ActionPreview,
    body: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return the body of an action that is about to be proposed, with its card where it gets one."""
    if preview.type != GITHUB or not _is_short(preview.body):
        return body
    if proposals.find(tx.connection, proposal_id) is not None:
        return body
    session, wave_id = context.session, context.wave.wave_id
    draft = AskedProposal(
        "action", proposal_id, session.session_id, wave_id, preview.title, body, preview.risk
    )
    use = find_card(tx, draft, session)
    if use is None:
        return body
    count_uses(tx, (use,), draft)
    return {**body, "card": {"rule_id": use.rule_id, "until": use.expires_at}}


def _is_short(text: str) -> bool:
    """Whether a text can be read at a glance: few lines, and nothing in it that a screen does not show."""
    lines = text.split("\n")
    is_plain = all(line.replace("\t", "").removesuffix("\r").isprintable() for line in lines)
    return is_plain and len(text) <= MOST_CHARACTERS and len(lines) <= MOST_LINES
