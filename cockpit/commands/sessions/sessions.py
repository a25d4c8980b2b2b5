"""``cockpit sessions``: what was worked on in this project."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import click

from cockpit.commands.open_project import WrongUse, choose_session, read_store
from cockpit.commands.sessions.export import FORMATS
from cockpit.commands.terminal import json_text, say, show, show_json, show_list
from cockpit.loop.views.session_report import session_document, session_text
from cockpit.store.sessions.sessions import Session, select_recent


@click.group(short_help="What was worked on.")
def sessions() -> None:
    """The sessions of this project."""


@sessions.command("list")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def list_sessions(limit: int, as_json: bool) -> None:
    """List sessions, the one that changed last first."""
    found: list[Session] = read_store(lambda connection: select_recent(connection, limit), empty=[])
    show_list(
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

    answer = read_store(read)
    if as_json:
        show_json(answer)
    else:
        show(answer.rstrip("\n"))


@sessions.command("export")
@click.argument("session")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Default: by FILE's name, else md."
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def export_session(session: str, form: str | None, file: Path | None) -> None:
    """Write SESSION (an id, or last) to FILE or standard output, to keep or to pass on.

    What was said, every proposal with its verdict, and what came of it; out of the journal, with
    secrets masked.
    """
    from cockpit.commands.sessions import export
    from cockpit.loop.views.transcript import document

    told = read_store(lambda connection: document(connection, choose_session(connection, session)))
    named = file.suffix.removeprefix(".").lower() if file is not None else ""
    match form or (named if named in FORMATS else "md"):
        case "json":
            text = json_text(told, indent=2) + "\n"
        case "svg":
            text = export.picture(told)
        case _:
            text = export.markdown(told)
    if file is None:
        show(text.rstrip("\n"))
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error.strerror or error}.") from error
    say(f"{told['session_id']} is in {file}")


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
