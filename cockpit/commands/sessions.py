"""``cockpit sessions``: what was worked on in this project."""

from __future__ import annotations

import sqlite3
from typing import Any

import click

from cockpit.commands.project import choose_session, look
from cockpit.commands.terminal import listing, show, show_json
from cockpit.loop.report import session_document, session_text
from cockpit.store.sessions import Session, recent


@click.group(short_help="What was worked on.")
def sessions() -> None:
    """The sessions of this project."""


@sessions.command("list")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def list_sessions(limit: int, as_json: bool) -> None:
    """List sessions, the one that changed last first."""
    found: list[Session] = look(lambda connection: recent(connection, limit), empty=[])
    listing(
        as_json,
        [_record(session) for session in found],
        ("SESSION", "STATUS", "TYPE", "MODEL", "CHANGED", "TITLE"),
        [
            (
                session.session_id,
                session.status,
                session.task_type,
                session.model,
                session.updated_at[:16].replace("T", " "),
                session.title,
            )
            for session in found
        ],
        "There is no session here yet.",
    )


@sessions.command("show")
@click.argument("session", required=False)
@click.option("--json", "as_json", is_flag=True, help="The document of `run --output-format json`.")
def show_session(session: str | None, as_json: bool) -> None:
    """Tell the story of SESSION (the last one without a name)."""

    def read(connection: sqlite3.Connection) -> Any:
        session_id = choose_session(connection, session)
        tell = session_document if as_json else session_text
        return tell(connection, session_id)

    answer = look(read)
    if as_json:
        show_json(answer)
    else:
        show(answer.rstrip("\n"))


def _record(session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "status": session.status,
        "task_type": session.task_type,
        "title": session.title,
        "model": session.model,
        "policy": session.policy,
        "interactive": session.interactive,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "cost_usd": session.cost_usd,
    }
