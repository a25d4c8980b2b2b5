"""Task types and roles of the coordinator's project, which go to workers with each run.

They are those that the coordinator's user trusts. On a worker they are trusted for the run alone, with
exactly this content. See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from cockpit.chains.remote.message_types import MessageInvalid
from cockpit.core.project.project_trust import LoadableFile, list_loadable, write_trust
from cockpit.core.project_paths import OWN_FOLDER, ProjectPaths

_CARRIED = re.compile(r"(task-types|roles)/[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.md")
MOST_FILES = 400


def read_carried(home: Path) -> dict[str, str]:
    """Return the trusted task types and roles of the project at ``home``: content by name."""
    carried = {}
    for file in list_loadable(home):
        if not file.trusted or not _CARRIED.fullmatch(file.name):
            continue
        data = (home / OWN_FOLDER / file.name).read_bytes()
        if hashlib.sha256(data).hexdigest() == file.digest:  # else it was changed this moment
            carried[file.name] = data.decode("utf-8", "replace")
    return carried


def write_carried(place: ProjectPaths, files: Mapping[str, str]) -> None:
    """Put the files into a run's clone, and trust them there. Raises :class:`MessageInvalid`, ``OSError``.

    Nothing is written through a link, which the repository may have in their place.
    """
    if not files:
        return
    wrong = [name for name in files if not _CARRIED.fullmatch(name)]
    if wrong or len(files) > MOST_FILES:
        raise MessageInvalid(
            f"A run carries the file {wrong[0][:80]!r}." if wrong else "Too many files."
        )
    trusted = []
    for name, text in files.items():
        path, data = place.home / OWN_FOLDER / name, text.encode()
        for folder in (path.parent.parent, path.parent):
            if folder.is_symlink():
                raise MessageInvalid(f"{folder.name} is a link in the repository.")
            folder.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as out:
            out.write(data)
        digest = hashlib.sha256(data).hexdigest()
        trusted.append(LoadableFile(name, digest, text, None, trusted=True))
    write_trust(place, trusted)
