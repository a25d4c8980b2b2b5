"""``cockpit debug state``: where the state of projects is, and removing that of projects that are gone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct, to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import WrongUse
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.core.project_paths import list_abandoned_states, list_states, read_project_record
from cockpit.core.text import pluralize


class _State(Struct, frozen=True):
    """The state folder of a project."""

    name: str
    path: str
    home: str
    identity: str
    git: bool | None
    exists: bool | None
    """Whether its project exists; None where it is not named."""
    bytes: int


@click.command(
    short_help="Show and clean the state of projects.",
    epilog=examples("cockpit debug state", "cockpit debug state .", "cockpit debug state --clean"),
)
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--clean", is_flag=True, help="Remove the state of projects that are gone.")
@YES
@AS_JSON
def state(names: tuple[str, ...], clean: bool, yes: bool, as_json: bool) -> None:
    """Show the state of projects: store, logs, worktrees and archives; clean it.

    It is in your own state folder, never in a checkout. NAME is that of a state, or the path of its project;
    without one, all. A project on a disk that is not mounted counts as gone, so look at the list before you
    agree to clean.
    """
    _require_user()
    if yes and not clean:
        raise click.UsageError("--yes is for --clean.")
    if clean:
        _clean(names, yes=yes, as_json=as_json)
        return
    rows = [_row(folder) for folder in (map(_find_state, names) if names else list_states())]
    if names:
        for document in map(to_builtins, rows):
            if as_json:
                show_json(document)
            else:
                show("\n".join(f"{name}: {value}" for name, value in document.items()))
        return
    show_list(
        as_json,
        [to_builtins(row) for row in rows],
        ("STATE", "PROJECT", "SIZE", "WHERE"),
        [
            (
                row.name,
                {True: "exists", False: "gone", None: "unknown"}[row.exists],
                f"{row.bytes / 1e6:.1f} MB",
                row.home or "–",
            )
            for row in rows
        ],
        "No state yet. The first session of a project makes it.",
    )


def _clean(names: Sequence[str], *, yes: bool, as_json: bool) -> None:
    from cockpit.tasks.remove_state import StateRefused, remove_state

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
            say(f"{row.name}  {row.bytes / 1e6:.1f} MB  was in {row.home}")
        confirm(f"Delete {pluralize(len(chosen), 'state')}?", yes=yes, undone="nothing was deleted")
    for folder in chosen:
        remove_state(folder)
    if as_json:
        show_json({"deleted": [row.name for row in rows]})
    elif chosen:
        say(f"Deleted {pluralize(len(chosen), 'state')}.")
    else:
        say("Nothing was deleted." if gone else "Every state belongs to a project that exists.")


def _find_state(named: str) -> Path:
    wanted = Path(os.path.realpath(os.path.expanduser(named)))  # noqa: PTH111
    for folder in list_states():
        record = read_project_record(folder)
        if folder.name == named or (record and wanted in (record.home, record.identity, folder)):
            return folder
    raise NotFound(f"No state belongs to {named}.")


def _require_user() -> None:
    from cockpit.access.user_presence import require_no_agent

    require_no_agent("the state of your projects")
    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "Only you can list and remove states, not the holder of a token. Run it without"
            " COCKPIT_TOKEN."
        )


def _row(folder: Path) -> _State:
    record = read_project_record(folder)
    try:
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
    except OSError:
        size = 0
    return _State(
        folder.name,
        str(folder),
        str(record.home) if record else "",
        str(record.identity) if record else "",
        record.git if record else None,
        record.exists if record else None,
        size,
    )
