"""``cockpit state``: where the state of projects is, and moving it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import is_terminal, say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.core.project.state_in_checkout import find_old_state
from cockpit.core.project_paths import (
    ProjectPaths,
    ProjectRecord,
    list_abandoned_states,
    list_states,
    read_project_record,
    write_project_record,
)
from cockpit.core.state_folder import describe_problem
from cockpit.core.text import pluralize


@click.group(
    short_help="Show and move the state of projects.",
    epilog=examples("cockpit state list", "cockpit state show", "cockpit state move"),
)
def state() -> None:
    """Show and move the state of projects: store, logs, worktrees and archives.

    It is in your own state folder, never in a checkout.
    """


@state.command("list", epilog=examples("cockpit state list --json"))
@AS_JSON
def list_all(as_json: bool) -> None:
    """List the state of all your projects."""
    _require_user()
    rows = [_row(folder) for folder in list_states()]
    show_list(
        as_json,
        rows,
        ("STATE", "PROJECT", "SIZE", "WHERE"),
        [
            (
                row["name"],
                {True: "exists", False: "gone", None: "unknown"}[row["exists"]],
                f"{row['bytes'] / 1e6:.1f} MB",
                row["home"] or "–",
            )
            for row in rows
        ],
        "No state yet. The first session of a project makes it.",
    )


@state.command("show", epilog=examples("cockpit state show"))
@AS_JSON
def show_state(as_json: bool) -> None:
    """Show where the state of this project is."""
    place = find_project(settled=False)
    old = find_old_state(place)
    row = {
        "state": str(place.state),
        "exists": place.database.exists(),
        "identity": str(place.identity),
        "archive": str(place.state / "archive"),
        "problem": describe_problem(str(place.state)),
        "in_checkout": str(old.folder) if old else "",
        "in_checkout_refused": old.foreign if old else "",
    }
    if as_json:
        show_json(row)
        return
    show(f"{place.state}{'' if row['exists'] else ' (not there yet)'}")
    if row["problem"]:
        say(str(row["problem"]))
    if old is not None:
        fate = f"never opened: {old.foreign}" if old.foreign else "`cockpit state move` moves it"
        say(f"{old.folder}: {fate}")


@state.command("move", epilog=examples("cockpit state move", "cockpit state move --leave"))
@click.option(
    "--leave", is_flag=True, help="Leave the old state where it is, and begin an empty one."
)
@AS_JSON
def move(leave: bool, as_json: bool) -> None:
    """Move this state out of the checkout.

    Older versions kept it in .cockpit/state. A state that came with the checkout is never moved.
    """
    from cockpit.tasks.move_state import StateRefused, move_old_state

    _require_user()
    place = find_project(settled=False)
    old = find_old_state(place)
    if old is None:
        raise NotFound(f"{place.folder} contains no state. It is in {place.state}.")
    if leave:
        if place.database.exists():
            raise StateRefused(f"{place.home} already has a state in {place.state}.")
        place.prepare()
        record = ProjectRecord(place.identity, place.home, place.git, left=True)
        write_project_record(place.state, record)
        say(f"{old.folder} stays where it is; the next session begins an empty state.")
        return
    moved = asyncio.run(move_old_state(place, old))
    _report(place, str(old.folder), moved, as_json)


@state.command("adopt", epilog=examples("cockpit state adopt ~/old/place/of/this/project"))
@click.argument("path")
@AS_JSON
def adopt(path: str, as_json: bool) -> None:
    """Take over the state of a moved project.

    PATH is where the project was, or the name of a state in `cockpit state list`. That project must be
    gone.
    """
    from cockpit.tasks.move_state import adopt_state

    _require_user()
    place = find_project(settled=False)
    folder = _find_state(path)
    moved = asyncio.run(adopt_state(place, folder))
    _report(place, str(folder), moved, as_json)


@state.command("clean", epilog=examples("cockpit state clean", "cockpit state clean --yes"))
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--yes", is_flag=True, help="Remove them without asking.")
@AS_JSON
def clean(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove the state of projects that are gone.

    NAME is a state in `cockpit state list`; without one, all states whose project is gone. A project on a
    disk that is not mounted counts as gone, so look at the list before you agree.
    """
    from cockpit.tasks.move_state import StateRefused, remove_state

    _require_user()
    gone = [folder for folder, _ in list_abandoned_states()]
    chosen = [_find_state(name) for name in names] if names else gone
    for folder in chosen:
        if folder not in gone:
            raise StateRefused(
                f"The project of {folder.name} exists, or is not named. Nothing was deleted."
            )
    rows = [_row(folder) for folder in chosen]
    if chosen and not yes:
        for row in rows:
            say(f"{row['name']}  {row['bytes'] / 1e6:.1f} MB  was in {row['home']}")
        if not is_terminal(sys.stdin):
            raise WrongUse("No terminal to confirm on; nothing was deleted. Pass --yes.")
        if not click.confirm(f"Delete {pluralize(len(chosen), 'state')}?", err=True):
            chosen, rows = [], []
    for folder in chosen:
        remove_state(folder)
    if as_json:
        show_json({"deleted": [row["name"] for row in rows]})
    elif chosen:
        say(f"Deleted {pluralize(len(chosen), 'state')}.")
    else:
        say("Nothing was deleted." if gone else "Every state belongs to a project that exists.")


def _report(place: ProjectPaths, before: str, moved: int, as_json: bool) -> None:
    if as_json:
        show_json({"before": before, "after": str(place.state), "worktrees": moved})
    else:
        say(f"moved  {before}\nto     {place.state}")


def _find_state(named: str) -> Path:
    wanted = Path(os.path.realpath(os.path.expanduser(named)))  # noqa: PTH111
    for folder in list_states():
        record = read_project_record(folder)
        if folder.name == named or (record and wanted in (record.home, record.identity, folder)):
            return folder
    raise NotFound(f"No state belongs to {named}. `cockpit state list` lists all.")


def _require_user() -> None:
    from cockpit.access.user_presence import require_no_agent

    require_no_agent("the state of your projects")
    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "Only you can list and move states, not the holder of a token. Run it without"
            " COCKPIT_TOKEN."
        )


def _row(folder: Path) -> dict[str, Any]:
    record = read_project_record(folder)
    try:
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
    except OSError:
        size = 0
    return {
        "name": folder.name,
        "path": str(folder),
        "home": str(record.home) if record else "",
        "identity": str(record.identity) if record else "",
        "git": record.git if record else None,
        "exists": record.exists if record else None,
        "bytes": size,
    }
