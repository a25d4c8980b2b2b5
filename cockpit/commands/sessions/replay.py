"""``cockpit replay``: a past session on the screen, with a scrubber."""

from __future__ import annotations

import click

from cockpit.commands.open_project import choose_session, read_store


@click.command(short_help="Watch a past session again.")
@click.argument("session", default="last")
@click.pass_context
def replay(ctx: click.Context, /, session: str) -> None:
    """Show SESSION (the last one without a name) from its first row on; nothing can be changed."""
    from cockpit.commands.sessions.screen import open_replay

    session_id = read_store(lambda connection: choose_session(connection, session))
    ctx.exit(open_replay(session_id))
