"""``cockpit sessions`` and ``cockpit replay``: list, show, export and replay sessions."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.choose_session import choose_session
from cockpit.collections.work.sessions import COLLECTION
from cockpit.commands.caller_rights import find_user
from cockpit.commands.collection_groups import make_group
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import (
    WrongUse,
    find_project,
    open_store,
    read_store,
    require_records,
)
from cockpit.commands.sessions.export import FORMATS
from cockpit.commands.terminal import json_text, output_width, say, show, show_json
from cockpit.core.text import pluralize
from cockpit.loop.views.session_report import session_text
from cockpit.store.sessions.sessions import Session, change, load

if TYPE_CHECKING:
    from cockpit.loop.rewind.plan_rewind import RewindPlan


sessions = make_group(
    COLLECTION,
    describe=lambda row: read_store(
        lambda connection: session_text(connection, row.session.session_id, width=output_width())
    ).rstrip("\n"),
)


@sessions.command(
    "export",
    epilog=examples(
        "cockpit sessions export last session.md",
        "cockpit sessions export last --format svg > session.svg",
    ),
)
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Write this format. Default: by the ending of FILE, else md.",
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def export_session(session: str, form: str | None, file: Path | None) -> None:
    """Export a session to a file.

    Write SESSION to FILE or standard output: its messages, every proposal with its decision, and the
    results. Secrets are masked. The export contains no HTML and loads no pictures.
    """
    from cockpit.commands.sessions import export
    from cockpit.loop.views.transcript import document

    transcript = read_store(
        lambda connection: document(
            connection, choose_session(connection, session, with_agents=True)
        )
    )
    ending = file.suffix.removeprefix(".").lower() if file is not None else ""
    match form or (ending if ending in FORMATS else "md"):
        case "json":
            text = json_text(transcript, indent=2) + "\n"
        case "svg":
            text = export.picture(transcript)
        case _:
            text = export.markdown(transcript)
    if file is None:
        show(text.rstrip("\n"))
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error.strerror or error}.") from error
    say(f"Wrote {transcript['session_id']} to {file}")


@sessions.command(
    "rename", epilog=examples('cockpit sessions rename last "Round to the even cent"')
)
@click.argument("session")
@click.argument("title")
def rename(session: str, title: str) -> None:
    """Rename a session."""
    from cockpit.loop.intake.intent import make_title

    title = make_title(title)
    require_records()
    with open_store(find_project()) as store:
        session_id = store.read_now(
            lambda connection: choose_session(connection, session, with_agents=True)
        )
        row = store.write_now(lambda tx: change(tx, session_id, title=title))
    say(f"{session_id} is {row.title!r} now")


@sessions.command(
    "fork", epilog=examples("cockpit sessions fork last", "cockpit sessions fork s-3f --wave 4")
)
@click.argument("session")
@click.option(
    "--wave",
    type=click.IntRange(min=1),
    help="Fork after this wave. Default: the last one that ended.",
)
@AS_JSON
def fork(session: str, wave: int | None, as_json: bool) -> None:
    """Fork a session after a wave.

    The fork is a new session with the task, the messages and the facts of SESSION as they were then. It
    waits for your message: `cockpit -r ID`, or `cockpit run --continue ID MESSAGE`. SESSION and the files of
    the project stay as they are.
    """
    from cockpit.loop.intake.fork_session import fork_session

    require_records()
    with open_store(find_project()) as store:
        session_id = store.read_now(lambda connection: choose_session(connection, session))
        forked = store.write_now(lambda tx: fork_session(tx, session_id, wave))
    if as_json:
        show_json(
            {
                "session_id": forked.session.session_id,
                "source": forked.source,
                "wave": forked.wave,
                "messages": forked.messages,
                "facts": forked.facts,
            }
        )
        return
    say(
        f"{forked.session.session_id} continues {forked.source} after wave {forked.wave}, with"
        f" {pluralize(forked.messages, 'message')} and {pluralize(forked.facts, 'fact')}."
    )
    say(f"Write to it: cockpit run --continue {forked.session.session_id} MESSAGE")


@sessions.command(
    "rewind",
    epilog=examples(
        "cockpit sessions rewind last --wave 2", "cockpit sessions rewind s-3f --wave 4"
    ),
)
@click.argument("session")
@click.option(
    "--wave",
    type=click.IntRange(min=1),
    required=True,
    help="Go back to the state after this wave.",
)
@YES
@AS_JSON
def rewind(session: str, wave: int, yes: bool, as_json: bool) -> None:
    """Go back to an earlier wave, with its files.

    cockpit lists the files that get their earlier content, and what stays as it is; then it asks. A new
    session continues after the wave, and SESSION stays in the list. The contents that are replaced are kept:
    u in the list of sessions on the screen brings them back. An agent cannot do this.
    """
    from cockpit.loop.rewind.apply_rewind import rewind as go_back
    from cockpit.loop.rewind.plan_rewind import plan_rewind
    from cockpit.loop.tools.approve_tools import require_person

    require_records()
    place = find_project()
    with open_store(place) as store:
        session_id = store.read_now(lambda connection: choose_session(connection, session))
        store.write_now(lambda tx: require_person(find_user(tx, "going back to a wave")))
        plan = asyncio.run(plan_rewind(store, session_id, wave))
        if not as_json:
            show("\n".join(_describe_rewind(plan)))
        confirm(f"Go back to wave {wave}?", yes=yes, undone="nothing was changed")
        done = asyncio.run(go_back(store, place, plan))
    if as_json:
        show_json(
            {
                "session_id": done.session_id,
                "source": session_id,
                "wave": wave,
                "files": done.files,
                "stays": done.stays,
            }
        )
        return
    for text in done.stays[len(plan.stays) :]:
        say(text)
    say(f"Back at wave {wave}: {pluralize(len(done.files), 'file')} changed.")
    say(f"Write to it: cockpit run --continue {done.session_id} MESSAGE")


def _describe_rewind(plan: RewindPlan) -> list[str]:
    """Return the lines: files that get their earlier content, and what stays."""
    lines = [f"Session {plan.session_id}, back to wave {plan.wave}:"]
    if not plan.files:
        lines.append("  No file changes.")
    for each in plan.files:
        removed = "is removed: it did not exist"
        lines.append(
            f"  {each.path}  {removed if each.content is None else 'gets its earlier content'}"
        )
    if plan.stays:
        lines += ["This stays as it is:", *(f"  {each}" for each in plan.stays)]
    return lines


@sessions.command("jump", epilog=examples("cockpit sessions jump last"))
@click.argument("session")
def jump(session: str) -> None:
    """Show the terminal of a session's agent.

    It brings the window of SESSION to the front: of an agent in your own terminal that has cockpit's hooks,
    in tmux, kitty, WezTerm or iTerm2.
    """
    from cockpit.agents.terminals.jump_to_terminal import jump_to_terminal

    row: Session = read_store(
        lambda connection: load(connection, choose_session(connection, session))
    )
    kind = asyncio.run(jump_to_terminal(row, os.environ))
    say(f"Its window of {kind} is in front.")


@click.command(
    short_help="Replay a past session on the screen.",
    epilog=examples("cockpit replay", "cockpit replay last"),
)
@click.argument("session", default="last")
@click.pass_context
def replay(ctx: click.Context, /, session: str) -> None:
    """Replay SESSION on the screen, with a timeline to scrub through.

    Without SESSION it replays the last one, in which nothing can be changed. f forks it: a new session
    knows what SESSION knew at that moment.
    """
    from cockpit.commands.sessions.screen import open_replay

    session_id = read_store(
        lambda connection: choose_session(connection, session, with_agents=True)
    )
    ctx.exit(open_replay(session_id))
