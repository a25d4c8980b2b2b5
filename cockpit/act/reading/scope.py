"""What a reading command reads, and the folder that it reads in.

See ``docs/reference/actions.md``, reading commands.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from glob import iglob

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused

MAX_COUNTED_BYTES = 50_000_000
"""The largest file whose lines are counted for ``tail``."""

_GLOB = re.compile(r"[*?\[]")
_UNKNOWN = re.compile(r"[$`]")


class Reading(Struct, frozen=True):
    """What a command would read: the scope ``items`` that read the same, or ``refusal``, which says why none
    does."""

    items: tuple[str, ...] = ()
    refusal: str = ""


class Folder:
    """The folder that a command runs in, below the project's root."""

    def __init__(self, confined: Confined, cwd: str, *, pinned_rev: bool) -> None:
        self._confined = confined
        self._cwd = cwd
        self._pinned_rev = pinned_rev

    def path(self, word: str) -> str:
        """Return the file that ``word`` names, from the project's root where it is below it."""
        joined = posixpath.normpath(posixpath.join(self._cwd, word))
        root = str(self._confined.root)
        return posixpath.relpath(joined, root) if f"{joined}/".startswith(f"{root}/") else joined

    def is_file(self, word: str) -> bool:
        """Whether ``word`` names a file, or is a glob that matches one."""
        path = self.path(word)
        if posixpath.isabs(path) or path.startswith("../"):
            return self._confined.root.joinpath(path).is_file()
        if self._confined.root.joinpath(path).is_file():
            return True
        if not _GLOB.search(path):
            return False
        # Path.glob raises for `***` and for `a**`, which a shell takes.
        return any(iglob(path, root_dir=self._confined.root))  # noqa: PTH207

    def is_folder(self, word: str) -> bool:
        """Whether ``word`` names a folder."""
        return self._confined.root.joinpath(self.path(word)).is_dir()

    def count_lines(self, word: str) -> int:
        """Count the lines of a file; 0 when they cannot be known."""
        if self._pinned_rev:
            return 0
        try:
            with self._confined.open_read(self.path(word)) as file:
                data = file.read(MAX_COUNTED_BYTES + 1)
        except (PathRefused, OSError):
            return 0
        if len(data) > MAX_COUNTED_BYTES:
            return 0
        return data.count(b"\n") + (not data.endswith(b"\n"))


def file_item(path: str, lines: tuple[int, int] | None = None) -> str:
    """Return the scope item of a file, or of some of its lines."""
    is_plain = (
        path.isprintable() and path == path.strip() and not re.search(r'^"|:\d|:-|@\w+$', path)
    )
    end = f":{lines[0]}-{lines[1]}" if lines else ""
    return f"file:{path if is_plain else json.dumps(path)}{end}"


def search_item(expression: str, glob: str, level: str = "") -> str:
    """Return the scope item of a search in the files that ``glob`` matches; ``**`` is all of them."""
    is_plain = glob.isprintable() and " " not in glob and re.search(r"[*?\[/.]", glob)
    spelled = glob if is_plain and not glob.startswith('"') else json.dumps(glob)
    return f"search:{expression} in {spelled}{level}"


def read_files(
    parts: Sequence[tuple[str, tuple[int, int] | None]], folder: Folder
) -> Reading | None:
    if not parts:
        return None
    for word, _ in parts:
        if _UNKNOWN.search(word):
            return Reading(refusal=f"The file {word!r} is only known when the command runs.")
    return Reading(tuple(file_item(folder.path(word), lines) for word, lines in parts))


def is_unknown(word: str) -> bool:
    """Whether ``word`` has a value that only the shell knows."""
    return _UNKNOWN.search(word) is not None
