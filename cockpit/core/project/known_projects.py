"""The registry of this user's projects: one record in the state folder of each.

A project is registered when cockpit first prepares its state folder, for a screen, a run, a hook or any other
use. Each record is a file of its own, replaced in one step: processes that register different projects never
write the same file, and one that is killed leaves the old record or the new one. See
``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from cockpit.core.errors import NotFound
from cockpit.core.project_paths import PROJECT_FILE, list_states, read_project_record
from cockpit.core.state_folder import DATABASE

FORGOTTEN = "forgotten"
"""The file of a state folder that keeps the project off the list until it is used again."""


class KnownProject(Struct, frozen=True):
    """A project that cockpit has a state folder of."""

    state: Path
    """Its state folder."""
    identity: Path
    """The common git directory, or the folder of a project without git."""
    home: Path
    """The main checkout."""
    git: bool
    seen_ns: int
    """When its records changed last, in nanoseconds since the epoch; 0 where that is not known."""
    problem: str = ""
    """Why it is not known whose state this is; ``identity`` and ``home`` are its folder's then."""

    @property
    def key(self) -> str:
        """The name of its state folder, which no other project has."""
        return self.state.name

    @property
    def name(self) -> str:
        """The name of its main checkout, which other projects may have, too."""
        return self.home.name or str(self.home)

    @property
    def database(self) -> Path:
        """The file of its store, which need not exist."""
        return self.state / DATABASE

    @property
    def exists(self) -> bool:
        """Whether the project is still at its place."""
        return self.identity.is_dir()


def list_known(*, forgotten: bool = False) -> list[KnownProject]:
    """List the projects of this user by name; with ``forgotten``, those that were forgotten as well.

    Reads a small file of each, and opens no store.
    """
    projects = []
    for state in list_states():
        record = read_project_record(state)
        if record is not None:
            project = KnownProject(
                state, record.identity, record.home, record.git, _last_change(state)
            )
        elif (state / DATABASE).exists():
            project = _unrecorded(state)
        else:
            continue  # nothing of cockpit's
        if forgotten or not _is_forgotten(project):
            projects.append(project)
    return sorted(projects, key=lambda project: (project.name.casefold(), str(project.home)))


def _unrecorded(state: Path) -> KnownProject:
    """Return a project whose store is there, and whose record is damaged or missing."""
    name = state.name.rpartition("-")[0] or state.name
    problem = (
        f"Its {PROJECT_FILE} is damaged or missing. Start cockpit in its folder once: that writes"
        f" {state / PROJECT_FILE} again."
    )
    return KnownProject(state, state, Path(name), False, _last_change(state), problem)


def find_known(named: str) -> KnownProject:
    """Return the project with this path, name, or name of its state folder. Raises ``NotFound``."""
    projects = list_known(forgotten=True)
    path = os.path.realpath(os.path.expanduser(named))  # noqa: PTH111 - of a text with any characters
    matches = [each for each in projects if named == each.key or path == str(each.home)]
    matches = matches or [each for each in projects if named == each.name]
    if not matches:
        raise NotFound(
            f"cockpit knows no project {named!r}. `cockpit projects` lists those that it knows."
        )
    if len(matches) > 1:
        places = ", ".join(str(each.home) for each in matches)
        raise NotFound(f"Several projects are named {named!r}: {places}. Write the path of one.")
    return matches[0]


def forget(project: KnownProject) -> None:
    """Take the project off the list until cockpit is used in it again; its state stays.

    Raises ``OSError``.
    """
    mark = project.state / FORGOTTEN
    with suppress(FileNotFoundError):
        mark.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(mark, flags, 0o600))
    # No earlier than what it is compared with: clocks of file systems tick coarsely.
    latest = max(mark.stat().st_mtime_ns, _last_change(project.state))
    os.utime(mark, ns=(latest, latest))


def recall(state: Path) -> None:
    """Put a forgotten project back on the list. Raises ``OSError``."""
    with suppress(FileNotFoundError):
        (state / FORGOTTEN).unlink()


def read_branch(project: KnownProject) -> str:
    """Return the branch of the main checkout, from its ``HEAD``; '' for none, or a commit's first letters."""
    try:
        with (project.identity / "HEAD").open("rb") as file:
            text = file.read(1_000).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    if text.startswith("ref:"):
        return text.removeprefix("ref:").strip().removeprefix("refs/heads/")
    return text[:8]


def _is_forgotten(project: KnownProject) -> bool:
    try:
        return project.seen_ns <= (project.state / FORGOTTEN).lstat().st_mtime_ns
    except OSError:
        return False


def _last_change(state: Path) -> int:
    latest = 0
    for name in (PROJECT_FILE, DATABASE, f"{DATABASE}-wal"):
        with suppress(OSError):
            status = (state / name).lstat()
            if status.st_size:  # whoever reads a store may leave an empty log behind
                latest = max(latest, status.st_mtime_ns)
    return latest
