"""``cockpit debug state``: where the state of projects is, and removing that of projects that are gone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.collection import CollectionGroup
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import WrongUse
from cockpit.commands.terminal import say, show_json
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


def _read() -> Sequence[_State]:
    _require_user()
    return [_row(folder) for folder in list_states()]


def _find(name: str) -> _State:
    _require_user()
    return _row(_find_state(name))


state = CollectionGroup(
    "state",
    short_help="Show and clean the state of projects.",
    help="""Show and clean the state of projects: store, logs, worktrees and archives.

    It is in your own state folder, never in a checkout. NAME is that of a state, or the path of its project.
    """,
    examples=("cockpit debug state", "cockpit debug state .", "cockpit debug state clean"),
    row="NAME",
    columns={
        "STATE": lambda row: row.name,
        "PROJECT": lambda row: {True: "exists", False: "gone", None: "unknown"}[row.exists],
        "SIZE": lambda row: f"{row.bytes / 1e6:.1f} MB",
        "WHERE": lambda row: row.home or "–",
    },
    read=_read,
    find=_find,
    none="No state yet. The first session of a project makes it.",
)


@state.command(
    "clean", epilog=examples("cockpit debug state clean", "cockpit debug state clean --yes")
)
@click.argument("names", nargs=-1, metavar="[NAME]…")
@YES
@AS_JSON
def clean(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove the state of projects that are gone.

    NAME is a state in `cockpit debug state`; without one, all states whose project is gone. A project on a
    disk that is not mounted counts as gone, so look at the list before you agree.
    """
    from cockpit.tasks.remove_state import StateRefused, remove_state

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
