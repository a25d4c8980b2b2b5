"""Capability tokens: secrets that make their holder a principal with some scopes.

Only the SHA-256 of a secret is stored; the secret is shown once, when it is issued. The first start
writes the root token to a file that only its owner can read. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from datetime import timedelta
from pathlib import Path

from msgspec import Struct

from cockpit.access.principals import MAIN, PERSON, Caller, ensure_principal, kind_of
from cockpit.access.token_scopes import CAP_ISSUE, CAP_REVOKE, SCOPES, NotAllowed
from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError, IllegalTransition, NotFound
from cockpit.core.project_paths import ROOT_TOKEN
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import record_row
from cockpit.store.journal.details.store import CapabilityChanged

TOKEN_VARIABLE = "COCKPIT_TOKEN"  # noqa: S105 - a variable's name
"""The environment variable with the capability token that a process acts under."""

PREFIX = "ckp_"
ROOT_FILE = ROOT_TOKEN
_FIRST_START = "first start"
_LONGEST = 512


class TokenRefused(CockpitError):
    """The token is not valid: ``token_unknown``, ``token_expired`` or ``token_revoked``."""

    code = "token_unknown"


class Token(Struct, frozen=True):
    """One row of ``capability_tokens``, without the hash."""

    cap_id: str
    namespace: str
    scopes: tuple[str, ...]
    expires_at: str | None
    revoked_at: str | None
    issued_by: str
    created_at: str

    def status(self, now: str) -> str:
        """``valid``, ``expired`` or ``revoked`` at ``now``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


_SELECT = (
    "SELECT cap_id, namespace, scopes_json, expires_at, revoked_at, issued_by, created_at"
    " FROM capability_tokens"
)


def issue(
    tx: Tx,
    *,
    namespace: str,
    scopes: frozenset[str],
    by: Caller,
    expires_s: float | None = None,
) -> tuple[Token, str]:
    """Issue a token and return it with its secret, which is not stored.

    Raises ``NotAllowed`` for a scope that ``by`` lacks and for a namespace above its own kind, and
    ``NamespaceInvalid``.
    """
    by.require(CAP_ISSUE, "issue tokens")
    kind = kind_of(namespace)
    # A token of a service never makes its holder the user, and an agent's never makes it a service.
    if by.kind != "person" and (kind == "person" or (by.kind == "agent" and kind != "agent")):
        raise NotAllowed(f"{by.namespace} may not issue a token for {namespace[:100]!r}.")
    beyond = sorted(scopes - by.scopes)
    if beyond:
        raise NotAllowed(f"{by.namespace} may not grant {beyond[0]}: it does not have it itself.")
    return _insert(tx, namespace, scopes, by.namespace, expires_s)


def revoke(tx: Tx, cap_id: str, by: Caller) -> Token:
    """Revoke a token permanently. Raises ``NotAllowed``, ``NotFound``, ``IllegalTransition``."""
    by.require(CAP_REVOKE, "revoke tokens")
    token = load(tx.connection, cap_id)
    if token.revoked_at is not None:
        raise IllegalTransition(f"Token {cap_id} was revoked already, at {token.revoked_at}.")
    tx.execute("UPDATE capability_tokens SET revoked_at=? WHERE cap_id=?", (tx.now(), cap_id))
    _journal(tx, token, "revoked", by.namespace)
    return load(tx.connection, cap_id)


def load(connection: sqlite3.Connection, cap_id: str) -> Token:
    """Return the token with that id. Raises :class:`NotFound`."""
    row = connection.execute(f"{_SELECT} WHERE cap_id=?", (cap_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no token {cap_id}; `cockpit tokens` names them.")
    return _read(row)


def listed(connection: sqlite3.Connection) -> list[Token]:
    """List all tokens, revoked ones included, oldest first."""
    return [_read(row) for row in connection.execute(f"{_SELECT} ORDER BY created_at, rowid")]


def caller(connection: sqlite3.Connection, secret: str, now: str) -> Caller:
    """Return the caller: the holder of ``secret``, or without a secret the user at the terminal.

    Raises :class:`TokenRefused`.
    """
    named = secret.strip()
    return holder(connection, named, now) if named else PERSON


def holder(connection: sqlite3.Connection, secret: str, now: str) -> Caller:
    """Return the holder of ``secret`` at ``now``.

    Raises :class:`TokenRefused`; no message contains the secret.
    """
    row = None
    if len(secret) <= _LONGEST:
        row = connection.execute(
            f"{_SELECT} WHERE secret_hash=?", (text_digest(secret),)
        ).fetchone()
    if row is None:
        raise TokenRefused("This token does not belong to this project. Nothing was done.")
    token = _read(row)
    status = token.status(now)
    if status != "valid":
        when = token.revoked_at if status == "revoked" else token.expires_at
        raise TokenRefused(
            f"The token {token.cap_id} of {token.namespace} is {status} since {when}."
            " Nothing was done; ask for a new one.",
            code=f"token_{status}",
        )
    return Caller(token.namespace, frozenset(token.scopes), token.cap_id)


def ensure_root(tx: Tx, state: Path) -> Path | None:
    """Issue the root token on the first start; returns the path of its file then, else None.

    The file is written before the row: a crash between the two leaves a file that the next start
    replaces. A token that the user removed is not issued again.
    """
    row = tx.execute(
        "SELECT 1 FROM capability_tokens WHERE issued_by=?", (_FIRST_START,)
    ).fetchone()
    if row is not None:
        return None
    _, secret = _insert(tx, MAIN, frozenset(SCOPES), _FIRST_START, None)
    path = state / ROOT_FILE
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return path


def _insert(
    tx: Tx, namespace: str, scopes: frozenset[str], by: str, expires_s: float | None
) -> tuple[Token, str]:
    ensure_principal(tx, namespace)
    # Not through Ids: a secret that could be replayed would be none.
    secret = PREFIX + secrets.token_urlsafe(32)
    cap_id = tx.ids.new("cap")
    expires = (
        None if expires_s is None else format_time(tx.clock.now() + timedelta(seconds=expires_s))
    )
    ordered = [scope for scope in SCOPES if scope in scopes]
    tx.execute(
        "INSERT INTO capability_tokens(cap_id, namespace, scopes_json, secret_hash, expires_at,"
        " issued_by, created_at) VALUES (?,?,?,?,?,?,?)",
        (
            cap_id,
            namespace,
            canonical_json(ordered),
            text_digest(secret),
            expires,
            by,
            tx.now(),
        ),
    )
    token = load(tx.connection, cap_id)
    _journal(tx, token, "issued", by if by != _FIRST_START else "engine")
    return token, secret


def _journal(tx: Tx, token: Token, status: str, actor: str) -> None:
    tx.journal(record_row(CapabilityChanged, token, status=status), actor=actor)


def _read(row: tuple[str, str, str, str | None, str | None, str, str]) -> Token:
    cap_id, namespace, scopes, expires_at, revoked_at, issued_by, created_at = row
    granted = tuple(json.loads(scopes))
    return Token(cap_id, namespace, granted, expires_at, revoked_at, issued_by, created_at)
