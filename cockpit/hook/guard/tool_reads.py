"""Which lines of files a call of an external agent's tool would return.

See ``docs/reference/guards.md``, the guard as a hook.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat

from cockpit.loop.permissions.tool_names import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cockpit.hook.event_payload import Event

LARGEST_FILE = 4_000_000
"""Bytes of a file whose lines are guarded."""
READ_LINES = 2_000
"""Lines that Claude Code's Read returns where no limit is given."""
LONGEST_LINE = 2_000
"""Characters of a line that it returns whole."""
_NO_TEXT = (".pdf", ".ipynb", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
_PRINTING = ("cat", "nl", "head", "tail", "sed")
"""Programs that print lines of files as they are."""
_PRINTS = re.compile(r"\s*(?:(?:cat|nl|head|tail)\s|sed\s+-n\s).*")
_WORD_ENDS = re.compile(r"[\s'\";|&]+")
_MOST_WORDS = 50


class FileNow:
    """A file of the project as it is now."""

    __slots__ = ("lines", "path", "version")

    def __init__(self, path: str, version: str, lines: list[str]) -> None:
        self.path = path
        self.version = version
        self.lines = lines


class ToolReads:
    """What one call reads. ``parts``: (file, first line, last line) that it returns unchanged."""

    __slots__ = ("parts", "tool")

    def __init__(self, tool: str, parts: list[tuple[FileNow, int, int]]) -> None:
        self.tool = tool
        self.parts = parts


def find_reads(event: Event, root: str) -> ToolReads | None:
    """Return what the event's call reads; None where it is not a read, or one that is not guarded."""
    cwd = event.cwd or root
    if event.tool == "Read":
        return _find_read(event.arguments, root, cwd)
    if event.tool in SHELLS and event.command:
        return _find_command(event, root, cwd)
    return None


def names_any(event: Event, root: str, paths: set[str]) -> bool:
    """Whether a command's text may name one of the files; False only where it is not worth parsing."""
    command = event.command
    if any(os.path.basename(path) in command for path in paths):
        return True
    folder = os.path.realpath(event.cwd or root)
    words = [word for word in _WORD_ENDS.split(command) if "/" in word or "." in word]
    return any(
        os.path.realpath(os.path.join(folder, word)) in paths for word in words[:_MOST_WORDS]
    )


def only_prints(command: str) -> bool:
    """Whether a command looks as if it printed lines of files and nothing else, by its text alone."""
    return _PRINTS.fullmatch(command) is not None


def read_file(path: str, root: str) -> FileNow | None:
    """Return a text file of the project, through links; None for anything else."""
    try:
        real = os.path.realpath(path)
        if not real.startswith(root.rstrip("/") + "/"):
            return None
        file = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with os.fdopen(file, "rb") as opened:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_FILE:
            return None
        data = opened.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE or b"\0" in data:
        return None
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return FileNow(real, hashlib.sha256(data).hexdigest()[:32], lines)


def _find_read(arguments: dict[str, Any], root: str, cwd: str) -> ToolReads | None:
    path = arguments.get("file_path")
    if not isinstance(path, str) or path.lower().endswith(_NO_TEXT) or "pages" in arguments:
        return None
    offset, limit = arguments.get("offset"), arguments.get("limit")
    first = 1 if offset is None else offset
    count = READ_LINES if limit is None else limit
    if not _is_count(first) or not _is_count(count):
        return None
    file = read_file(os.path.join(cwd, path), root)
    if file is None:
        return None
    first = max(first, 1)
    return ToolReads("Read", [(file, first, min(first + count - 1, len(file.lines)))])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _find_command(event: Event, root: str, cwd: str) -> ToolReads | None:
    command = event.command
    # What a look at the text tells needs none of the modules below, which an agent waits for.
    if not only_prints(command) or event.arguments.get("run_in_background"):
        return None
    from cockpit.access.commands.plain_reads import printed_lines, read_line
    from cockpit.access.commands.reading_place import ReadingPlace, why_not_read

    real = os.path.realpath(cwd)
    read = read_line(command)
    if read is None or read.program not in _PRINTING:
        return None
    if why_not_read(command, ReadingPlace(root, real)):
        return None
    parts = []
    for path in read.paths:
        file = read_file(os.path.join(real, path), root)
        if file is None:
            return None
        parts.append((file, *printed_lines(read, len(file.lines))))
    whole = [part for part in parts if part[1] <= part[2]]
    return ToolReads("shell", whole) if whole else None
