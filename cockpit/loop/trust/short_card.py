"""The short card of an action whose shape the user has accepted for it: what it is, in one line, and Enter.

The card approves nothing. It shows less, and a post to GitHub needs one key in place of two. See
``docs/reference/trust.md``, short cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.act.proposed_action import ActionPreview
from cockpit.loop.trust.find_coverage import count_uses, find_card
from cockpit.loop.trust.request_parts import AskedProposal
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.trust.shape import GITHUB

_LONGEST = 200


def add_card(
    tx: Tx,
    context: WaveContext,
    proposal_id: str,
    preview: ActionPreview,
    body: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return the body of an action that is about to be proposed, with its card where it gets one."""
    if preview.type != GITHUB or proposals.find(tx.connection, proposal_id) is not None:
        return body
    session, wave_id = context.session, context.wave.wave_id
    draft = AskedProposal(
        "action", proposal_id, session.session_id, wave_id, preview.title, body, preview.risk
    )
    use = find_card(tx, draft, session)
    if use is None:
        return body
    count_uses(tx, (use,), draft)
    return {**body, "card": {"rule_id": use.rule_id, "line": _first_line(preview.body)}}


def _first_line(text: str) -> str:
    """Return the first line of a text, and how many more there are."""
    lines = text.strip().splitlines()
    if not lines:
        return ""
    line = lines[0].strip()
    shown = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    more = len(lines) - 1
    return f"{shown} (+{more} {'line' if more == 1 else 'lines'})" if more else shown
