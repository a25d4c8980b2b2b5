"""State of older versions inside a checkout, in ``.cockpit/state``: whose is it?

It is moved once into the user's state folder, with their consent. One that came with the checkout is never
opened. Specified in ``docs/reference/configuration.md``.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msgspec import Struct

from cockpit.core.errors import StoreError
from cockpit.core.project.safe_git import ask_git
from cockpit.core.project_paths import OWN_FOLDER, ProjectPaths, read_project_record
from cockpit.core.state_folder import DATABASE

_STATE = "state"


class StateNotMoved(StoreError):
    """The project's state is still inside its checkout; the user decides whether to move it."""

    code = "state_not_moved"


class OldState(Struct, frozen=True):
    """A folder ``.cockpit/state`` with a store."""

    folder: Path
    foreign: str
    """Why it is not this user's own state and is never opened; '' for their own."""


def find_old_state(place: ProjectPaths) -> OldState | None:
    """Look for a store inside the main checkout; None where there is none. Opens nothing."""
    folder = place.folder / _STATE
    database = folder / DATABASE
    for path, kind in ((place.folder, "folder"), (folder, "folder"), (database, "file")):
        try:
            info = path.lstat()
        except OSError:
            return None
        if stat.S_ISLNK(info.st_mode):
            return OldState(folder, f"{path} is a link")
        if not (stat.S_ISDIR if kind == "folder" else stat.S_ISREG)(info.st_mode):
            return None
        if info.st_uid != os.geteuid():
            return OldState(folder, f"{path} belongs to another user (id {info.st_uid})")
    return OldState(folder, _tracked(place))


def require_moved_state(place: ProjectPaths) -> None:
    """Raise :class:`StateNotMoved` where cockpit would begin an empty store beside the user's old one."""
    if os.path.lexists(place.database):
        return
    old = find_old_state(place)
    if old is None or old.foreign:
        return
    record = read_project_record(place.state)
    if record is not None and record.left:
        return
    raise StateNotMoved(
        f"The state of this project is still in {old.folder}, inside the checkout. Move it to your own state"
        " folder with `cockpit state move`, or begin an empty one with `cockpit state move --leave`."
    )


def _tracked(place: ProjectPaths) -> str:
    """Say why the folder came with the checkout; '' where git does not track any of it."""
    if place.common is None and not (place.home / ".git").exists():
        return ""
    name = f"{OWN_FOLDER}/{_STATE}"
    queries = (("ls-files", "-z", "--cached", "--", name), ("ls-tree", "-rz", "HEAD", "--", name))
    for query in queries:
        listed = ask_git(place.home, *query)
        if listed is None and query[0] == "ls-files":
            return f"git could not say whether it tracks {name}"
        if listed:
            return f"git tracks files in {name}, so it came with the checkout"
    return ""
