"""Who runs a command: the user at the terminal, or the holder of a token."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.access.principals import Caller
    from cockpit.store.db.transaction import Tx


def find_caller(tx: Tx, token: str) -> Caller:
    """Return the principal that ``token``, else ``COCKPIT_TOKEN``, belongs to; without both, the user.

    The token is looked up in the transaction that acts on it, so a token that was revoked a moment
    before is refused. Raises ``TokenRefused``. Specified in ``docs/reference/security.md``.
    """
    from cockpit.access.capability_tokens import caller
    from cockpit.loop.decisions.decide_proposal import TOKEN_VARIABLE

    return caller(tx.connection, token or os.environ.get(TOKEN_VARIABLE, ""), tx.now())
