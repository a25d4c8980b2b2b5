"""``cockpit tokens``: the group of the collection, and issuing."""

from __future__ import annotations

from typing import Any

import click

from cockpit.access.capability_tokens import Token, issue
from cockpit.access.token_scopes import SCOPES, read_scopes
from cockpit.cli_options import AS_JSON, Duration, examples
from cockpit.collections.tokens import COLLECTION, describe_token
from cockpit.commands.caller_rights import find_user
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import ensure_root_token, find_project, open_store
from cockpit.commands.terminal import say, show, show_json

tokens = make_group(COLLECTION)


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
        show_json({**describe_token(issued), "token": secret})
        return
    show(secret)
    say(
        f"{issued.cap_id} makes its holder {issued.namespace}, with {', '.join(issued.scopes)}"
        f"{f', until {issued.expires_at[:19]}Z' if issued.expires_at else ''}. It is not shown again."
    )
