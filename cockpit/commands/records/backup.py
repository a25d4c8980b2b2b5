"""``cockpit backup``: keep the state of a project in one file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import WrongUse, find_project, open_store, require_records
from cockpit.commands.terminal import say, show_json
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.store.backup.backup_file import Contents
    from cockpit.store.db.database import Store


@click.command(
    short_help="Write or restore this project's state.",
    epilog=examples(
        "cockpit backup ~/parcel.backup", "cockpit backup --restore --replace ~/parcel.backup"
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--restore", is_flag=True, help="Make FILE the state of this project.")
@click.option(
    "--replace",
    is_flag=True,
    help="Replace FILE, or with --restore the state that the project has now; a damaged database is kept as"
    " cockpit.db.damaged.",
)
@AS_JSON
def backup(file: Path, restore: bool, replace: bool, as_json: bool) -> None:
    """Write the state of this project to FILE, while other cockpits may keep running.

    It has the journal and everything else that cockpit keeps, but worktrees and the index of knowledge. It
    names worktrees with changes that no commit has. The journal in the copy is verified before FILE appears.
    Only you can read FILE: it has your root token.

    With --restore FILE is verified before anything changes. End every cockpit of the project first. If the
    command is killed, the state is the old one or the restored one, never a part of each.
    """
    if restore:
        _restore(file, replace, as_json)
        return
    from cockpit.store.backup.write_backup import write_backup

    _require_user("backups of your projects")
    require_records()
    place = find_project()
    with open_store(place) as store:
        contents = write_backup(store, place, _absolute(file), replace=replace)
        unsaved = asyncio.run(_count_unsaved(store))
    if as_json:
        show_json(_body(contents) | {"file": str(_absolute(file)), "unsaved": unsaved})
        return
    say(
        f"Wrote {file}: {pluralize(len(contents.parts), 'file')}, journal verified up to row"
        f" {contents.seq}."
    )
    for name, count in unsaved.items():
        files = pluralize(count, "changed file") if count else "changes that git cannot list"
        say(f"Not in it: {files} of worktree {name}, which no commit has.")


def _restore(file: Path, replace: bool, as_json: bool) -> None:
    from cockpit.store.backup.restore_state import restore_backup

    _require_user("restoring a backup")
    if not _absolute(file).is_file():
        raise NotFound(f"There is no file {file}; nothing was changed.")
    place = find_project()
    contents = restore_backup(_absolute(file), place, replace=replace)
    if as_json:
        show_json(_body(contents))
        return
    say(
        f"Restored the state of {contents.at}: {pluralize(len(contents.parts), 'file')}, journal verified"
        f" up to row {contents.seq}."
    )
    if contents.identity != str(place.identity):
        say(
            f"It was of {contents.home}. Worktrees did not come along: their branches are git's. The index of"
            " knowledge is built when it is next used."
        )


async def _count_unsaved(store: Store) -> dict[str, int]:
    """Count the files of each worktree that no commit has, by its name; 0 where git cannot list them."""
    from cockpit.store.chains import worktrees
    from cockpit.tasks.git import uncommitted_files

    folders = await store.read(
        lambda connection: {
            worktree.name: Path(worktree.path)
            for worktree in worktrees.select(connection)
            if Path(worktree.path).is_dir()
        }
    )
    counts = {}
    for name, folder in folders.items():
        try:
            files = await uncommitted_files(folder)
        except CockpitError:
            counts[name] = 0
        else:
            counts |= {name: len(files)} if files else {}
    return counts


def _absolute(file: Path) -> Path:
    return file.expanduser().absolute()


def _require_user(activity: str) -> None:
    from cockpit.access.user_presence import require_no_agent

    require_no_agent(activity)
    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "Only you can back up and restore states, not the holder of a token. Run it without"
            " COCKPIT_TOKEN."
        )


def _body(contents: Contents) -> dict[str, Any]:
    return {
        "at": contents.at,
        "cockpit": contents.cockpit,
        "home": contents.home,
        "seq": contents.seq,
        "digest": contents.digest,
        "files": len(contents.parts),
        "bytes": sum(part.size for part in contents.parts),
    }
