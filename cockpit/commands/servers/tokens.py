"""``cockpit tokens``: issue, list and revoke capability tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from cockpit.access.capability_tokens import ROOT_FILE, Token, issue, listed, revoke
from cockpit.access.token_scopes import SCOPES, read_scopes
from cockpit.cli_options import AS_JSON, Duration, examples
from cockpit.commands.caller_rights import find_user
from cockpit.commands.collection import Collection, Listed
from cockpit.commands.open_project import ensure_root_token, find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.clock import format_time
from cockpit.core.errors import NotFound


def _read() -> Listed[Token]:
    rows: list[Token] = read_store(listed, empty=[])
    root = find_project().state / ROOT_FILE
    remarks = [f"The root token is in {root}; only you can read it."] if root.exists() else []
    return Listed(rows, remarks)


def _find(name: str) -> Token:
    for token in _read().rows:
        if token.cap_id == name:
            return token
    raise NotFound(f"There is no token {name}.")


def _record(token: Token) -> dict[str, Any]:
    return {
        "cap_id": token.cap_id,
        "namespace": token.namespace,
        "scopes": list(token.scopes),
        "status": token.status(_now()),
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "issued_by": token.issued_by,
        "created_at": token.created_at,
    }


tokens = Collection(
    "tokens",
    short_help="Manage capability tokens.",
    help="""Manage capability tokens, also expired and revoked ones.

    A token makes its holder a principal with some scopes. Only its hash is stored. A command acts for the
    holder of the token in COCKPIT_TOKEN.
    """,
    examples=(
        "cockpit tokens",
        "cockpit tokens issue --namespace ci --scope work.write --expires 1h",
    ),
    row="TOKEN",
    columns={
        "TOKEN": lambda token: token.cap_id,
        "STATUS": lambda token: token.status(_now()),
        "NAMESPACE": lambda token: token.namespace,
        "EXPIRES": lambda token: (
            token.expires_at[:16].replace("T", " ") if token.expires_at else "–"
        ),
        "BY": lambda token: token.issued_by,
        "SCOPES": lambda token: ", ".join(token.scopes),
    },
    read=_read,
    find=_find,
    body=_record,
    none="No tokens yet. The first start makes the root token.",
)


@tokens.command(
    "issue", epilog=examples("cockpit tokens issue --namespace ci --scope work.write --expires 15m")
)
@click.option(
    "--namespace",
    required=True,
    metavar="NAME",
    help="Name its principal, for example ci or agent/s-1.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    metavar="SCOPE",
    help="Allow this scope. Repeat for more.",
)
@click.option(
    "--expires",
    type=Duration(),
    metavar="TIME",
    help="Let it expire after this time, for example 15m or 7d. Default: never.",
)
@AS_JSON
def issue_token(
    namespace: str, scopes: tuple[str, ...], expires: float | None, as_json: bool
) -> None:
    """Issue a token and print it once.

    The caller can only grant scopes that it has.
    """
    place = find_project()
    ensure_root_token(place)
    granted_scopes = read_scopes(scopes)

    def step(tx: Any) -> tuple[Token, str]:
        return issue(
            tx,
            namespace=namespace,
            scopes=granted_scopes,
            by=find_user(tx, "issuing a token"),
            expires_s=expires,
        )

    with open_store(place) as store:
        issued, secret = store.write_now(step)
    if as_json:
        show_json({**_record(issued), "token": secret})
        return
    show(secret)
    say(
        f"{issued.cap_id} makes its holder {issued.namespace}, with {', '.join(issued.scopes)}"
        f"{f', until {issued.expires_at[:19]}Z' if issued.expires_at else ''}. It is not shown again."
    )


@tokens.command("revoke", epilog=examples("cockpit tokens revoke cap-1a2b3c"))
@click.argument("cap_id")
@AS_JSON
def revoke_token(cap_id: str, as_json: bool) -> None:
    """Revoke a token permanently."""
    with open_store(find_project()) as store:
        ended = store.write_now(lambda tx: revoke(tx, cap_id, find_user(tx, "revoking a token")))
    if as_json:
        show_json(_record(ended))
    else:
        say(f"{cap_id} of {ended.namespace} is revoked.")


def _now() -> str:
    return format_time(datetime.now(UTC))
