"""Capability tokens, also expired and revoked ones; only their hashes are stored."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from cockpit.access.capability_tokens import ROOT_FILE, Token, listed, revoke
from cockpit.access.token_scopes import AUDIT_READ
from cockpit.collections.collection import Collection, Doing, Listed, Verb, View
from cockpit.core.clock import SystemClock, format_time


def _read(view: View) -> Listed[Token]:
    rows = () if view.connection is None else listed(view.connection)
    root = view.place.state / ROOT_FILE
    return Listed(
        rows, [f"The root token is in {root}; only you can read it."] if root.exists() else []
    )


def _status(row: Token) -> str:
    return row.status(format_time(SystemClock().now()))


def describe_token(row: Token) -> dict[str, Any]:
    """Return a token as JSON."""
    return {**to_builtins(row), "status": _status(row)}


def _revoke(doing: Doing, row: Token) -> str:
    ended = revoke(doing.tx, row.cap_id, doing.caller)
    return f"{row.cap_id} of {ended.namespace} is revoked."


COLLECTION = Collection[Token](
    name="tokens",
    command="tokens",
    title="Tokens",
    summary="Manage capability tokens.",
    help="""Manage capability tokens, also expired and revoked ones.

    A token makes its holder a principal with some scopes. Only its hash is stored. A command acts for the
    holder of the token in COCKPIT_TOKEN.
    """,
    examples=(
        "cockpit tokens",
        "cockpit tokens issue --namespace ci --scope work.write --expires 1h",
    ),
    row="TOKEN",
    sample="cap-1a2b3c",
    columns={
        "TOKEN": lambda row: row.cap_id,
        "STATUS": _status,
        "NAMESPACE": lambda row: row.namespace,
        "EXPIRES": lambda row: row.expires_at[:16].replace("T", " ") if row.expires_at else "–",
        "BY": lambda row: row.issued_by,
        "SCOPES": lambda row: ", ".join(row.scopes),
    },
    read=_read,
    none="No tokens yet. The first start makes the root token.",
    body=describe_token,
    scope=AUDIT_READ,
    synonyms="capabilities scopes access",
    verbs=(
        Verb(
            "revoke",
            "Revoke a token permanently",
            _revoke,
            key="x",
            activity="revoking a token",
            takes=lambda row: row.revoked_at is None,
            question="revokes it permanently: what its holder does now is refused",
            who="present",
        ),
    ),
)
