"""The caller of a request: the principal of its token, looked up in the transaction that acts.

The principal is the token's, whatever a body claims. See ``docs/reference/http.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request

from cockpit.access.capability_tokens import TokenRefused, holder
from cockpit.access.http.guarded_protocol import PEER
from cockpit.access.http.socket_peer import explain_peer_absence
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import PROPOSALS_DECIDE, NotAllowed
from cockpit.access.user_presence import explain_absence_of
from cockpit.api.served_project import ServedProject
from cockpit.core.canonical_json import digest, text_digest
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db import idempotent_answers
from cockpit.store.db.database import Store
from cockpit.store.db.idempotent_answers import KeptAnswer
from cockpit.store.db.transaction import Tx

T = TypeVar("T")

KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 200


class KeyReused(CockpitError):
    """The idempotency key was used for another request; nothing was done."""

    code = "key_reused"


class KeyInvalid(CockpitError):
    """The idempotency key is too long."""

    code = "usage"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request that writes is answered: status, body, and what only the first answer has."""

    status: int
    body: Mapping[str, Any]
    once: Mapping[str, Any] = field(default_factory=dict)
    """Members that are not kept for a repeat, such as a token's secret."""
    failure: CockpitError | None = None
    """Raised after the commit: what was stored stays, and the answer is not kept."""
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Counter:
    """Where one request is served: the store, on which ``secret`` says who calls."""

    project: ServedProject
    request: Request
    secret: str

    @property
    def store(self) -> Store:
        return self.project.store

    @property
    def settings(self) -> RuntimeSettings:
        return self.project.settings

    @property
    def key(self) -> str:
        """The request's idempotency key; empty without one. Raises :class:`KeyInvalid`."""
        key = self.request.headers.get(KEY_HEADER, "").strip()
        if len(key) > LONGEST_KEY:
            raise KeyInvalid(f"{KEY_HEADER} may have {LONGEST_KEY} characters at most.")
        return key

    async def read(self, look: Callable[[sqlite3.Connection, Caller], T]) -> T:
        """Read on a reader's thread, as the caller. Raises ``TokenRefused``."""
        now = format_time(self.store.clock.now())
        return await self.store.read(
            lambda connection: look(connection, holder(connection, self.secret, now))
        )

    async def write(self, step: Callable[[Tx, Caller], T]) -> T:
        """Write in one durable transaction, as the caller. Raises ``TokenRefused``."""
        return await self.store.write(lambda tx: step(tx, self.caller_in(tx)))

    def caller_in(self, tx: Tx) -> Caller:
        """Look the caller up in a transaction. Raises ``TokenRefused``."""
        return holder(tx.connection, self.secret, tx.now())

    async def write_once(
        self, scope: str, activity: str, step: Callable[[Tx, Caller], Answer]
    ) -> Answer:
        """Write as :meth:`write` does; a repeat with the same idempotency key gets the first answer.

        ``step`` runs for a caller with ``scope``; ``activity`` completes the refusal of others. An empty
        ``scope`` leaves the check to ``step``. Raises :class:`KeyReused` for a key that was used for
        another request.
        """
        key, requested = self.key, await self.request_digest()

        def run(tx: Tx, caller: Caller) -> Answer:
            if scope:
                caller.require(scope, activity)
            kept = idempotent_answers.find_in(tx, caller.namespace, key) if key else None
            if kept is not None:
                return repeat(kept, requested)
            answer = step(tx, caller)
            if key and answer.failure is None:
                idempotent_answers.keep(
                    tx, caller.namespace, key, KeptAnswer(requested, answer.status, answer.body)
                )
            return answer

        answer = await self.write(run)
        if answer.failure is not None:
            raise answer.failure
        return answer

    async def begin_once(
        self,
        turn: asyncio.Lock,
        begin: Callable[[str, Caller], Awaitable[str]],
        show: Callable[[sqlite3.Connection, str], Mapping[str, Any]],
        scope: str,
        activity: str,
        *,
        status: int = 201,
    ) -> Answer:
        """Begin something that no transaction holds, such as a process; a repeat gets the first answer.

        ``begin`` is called with a text that is the same for a repeat whose first answer was never kept,
        because the server died between the two; it returns the id of what began, or began before. ``turn``:
        one begins at a time. Raises as :meth:`write_once` does.
        """
        key, requested = self.key, await self.request_digest()

        def find(tx: Tx, caller: Caller) -> tuple[Caller, str, KeptAnswer | None]:
            caller.require(scope, activity)
            kept = idempotent_answers.find_in(tx, caller.namespace, key) if key else None
            own = text_digest(f"{caller.namespace} {key} {requested}")[:16]
            return caller, own if key else tx.ids.new("r"), kept

        async with turn:
            caller, request, kept = await self.write(find)
            if kept is not None:
                return repeat(kept, requested)
            identity = await begin(request, caller)
        return await self.write_once(
            scope, activity, lambda tx, caller: Answer(status, show(tx.connection, identity))
        )

    async def request_digest(self) -> str:
        """Return the digest of the request: method, address and body."""
        url = self.request.url
        body = await self.request.body()
        return digest([self.request.method, url.path, url.query, body.hex()])

    async def explain_absence(self) -> str:
        """Say why the process that asks does not act for a user at a terminal; empty where it does."""
        peer = self.request.scope.get("state", {}).get(PEER)
        if isinstance(peer, int):
            return await asyncio.to_thread(explain_absence_of, peer)
        client, server = self.request.scope.get("client"), self.request.scope.get("server")
        return await asyncio.to_thread(explain_peer_absence, client, server)


def repeat(kept: KeptAnswer, requested: str) -> Answer:
    """Return a kept answer for a repeat of its request. Raises :class:`KeyReused`."""
    if kept.request_digest != requested:
        raise KeyReused(
            f"This {KEY_HEADER} was used for another request. Nothing was done; use a new key."
        )
    return Answer(kept.status, kept.body, is_repeat=True)


def require_presence(caller: Caller, absence: str, activity: str) -> None:
    """Raise ``NotAllowed`` for the user's own token when no user at a terminal sent it.

    The token is a file that any process of the user can read, so who sends it counts as well.
    """
    if caller.kind == "person" and absence:
        raise NotAllowed(
            f"Nothing was done: {activity} with the token of {caller.namespace} is for you alone, and"
            f" {absence}. Do it in a terminal of your own, or issue a service a token for it."
        )


def require_policy(caller: Caller, absence: str, policy: str, verb: str, activity: str) -> None:
    """Refuse a policy wider than ``reads`` to whoever may not decide proposals.

    ``verb`` is that of ``activity``: "start" of "starting a session".
    """
    if POLICY_WIDTH[policy] > POLICY_WIDTH["reads"]:
        _, _, what = activity.partition(" ")
        caller.require(PROPOSALS_DECIDE, f"{verb} {what} with the policy {policy}")
        require_presence(caller, absence, f"{activity} with the policy {policy}")


def open_counter(request: Request) -> Counter:
    """Return the counter of a request. Raises ``TokenRefused`` for one without a token."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise TokenRefused(
            "Send Authorization: Bearer TOKEN; `cockpit tokens issue` makes one.",
            code="token_missing",
        )
    return Counter(request.app.state.project, request, secret.strip())
