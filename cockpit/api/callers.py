"""The caller of a request: the principal of its token, looked up in the transaction that acts.

The principal is the token's, whatever a body claims. See ``docs/reference/http.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from cockpit.access.capability_tokens import TokenRefused, holder
from cockpit.access.principals import Caller
from cockpit.core.clock import format_time
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

T = TypeVar("T")

BEARER = HTTPBearer(auto_error=False, description="A token of `cockpit tokens issue`.")


@dataclass(frozen=True, slots=True)
class Counter:
    """Where one request is served: the store, on which ``secret`` says who calls."""

    store: Store
    settings: RuntimeSettings
    secret: str

    async def read(self, look: Callable[[sqlite3.Connection, Caller], T]) -> T:
        """Read on a reader's thread, as the caller. Raises ``TokenRefused``."""
        now = format_time(self.store.clock.now())
        return await self.store.read(
            lambda connection: look(connection, holder(connection, self.secret, now))
        )

    async def write(self, step: Callable[[Tx, Caller], T]) -> T:
        """Write in one durable transaction, as the caller. Raises ``TokenRefused``."""
        return await self.store.write(
            lambda tx: step(tx, holder(tx.connection, self.secret, tx.now()))
        )


def _counter(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
) -> Counter:
    secret = credentials.credentials.strip() if credentials is not None else ""
    if not secret:
        raise TokenRefused(
            "Send Authorization: Bearer TOKEN; `cockpit tokens issue` makes one.",
            code="token_missing",
        )
    return Counter(request.app.state.store, request.app.state.settings, secret)


At = Annotated[Counter, Depends(_counter)]
"""The counter of a request. Without a token there is none."""
