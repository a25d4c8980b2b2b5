"""What an external agent reads with its own tools, as far as its stream or its hooks tell.

A tool that reads a file, or a command that only reads, becomes the file, its lines and the version that it
had. A task that another agent takes up starts from these. See ``docs/reference/agents.md``, what was read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cockpit.access.commands.plain_reads import read_line
from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.secret_files import is_sensitive
from cockpit.act.reading_commands import translate
from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.loop.permissions.tool_commands import peel_shells
from cockpit.loop.permissions.tool_names import SHELLS, join_words
from cockpit.observe.scope_items import parse_item
from cockpit.store.journal.details.agent_turns import RunnerFileRead
from cockpit.store.sessions.seen_files import VERSION_LENGTH

LARGEST_SEEN = 2 * 1024 * 1024
"""Bytes of a file whose reading is noted."""
_MOST_SEEN = 2_000
_MOST_OF_CALL = 20
_DEFAULT_LINES = 2_000
"""Lines that the agents' own tools read where no number is given."""
_READS = frozenset(
    "read readfile readtextfile view viewfile open openfile notebookread fsreadtextfile".split()  # noqa: SIM905
)
"""Names of tools that read one file, in lower case and without signs."""
_PATHS = ("file_path", "filePath", "absolute_path", "notebook_path", "path", "abs_path", "file")
_FIRST = ("offset", "line", "start_line", "startLine", "start")
_LAST = ("end_line", "endLine", "end")


class SeenReads:
    """The reads of one session in the worktree ``root``; the same part of the same version counts once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: set[tuple[str, str, int, int]] = set()

    def add(self, path: str, version: str, first: int, last: int) -> bool:
        """Note a read; returns whether it is new and there is room for it."""
        key = (path, version, first, last)
        if key in self._seen or len(self._seen) >= _MOST_SEEN:
            return False
        self._seen.add(key)
        return True

    def look(
        self, tool: str, arguments: Mapping[str, Any], places: Iterable[str] = ()
    ) -> list[RunnerFileRead]:
        """Return the reads of one tool call that are new. Blocks: it reads the files.

        ``places`` are the files that the call is about, where its arguments name none. A file outside of the
        worktree, one that usually has secrets, and what is not text are left out.
        """
        try:
            confined = Confined(self._root)
            parts = list(_list_parts(tool, arguments, places, confined))[:_MOST_OF_CALL]
        except (CockpitError, OSError, ValueError, RecursionError):
            return []
        reads = (_look_at(confined, path, lines) for path, lines in parts)
        return [
            read
            for read in reads
            if read is not None and self.add(read.path, read.version, read.first, read.last)
        ]


def version_of(data: bytes) -> str:
    """Return the version of a file with this content."""
    return hashlib.sha256(data).hexdigest()[:VERSION_LENGTH]


def _list_parts(
    tool: str, arguments: Mapping[str, Any], places: Iterable[str], confined: Confined
) -> Iterable[tuple[str, tuple[int, int] | None]]:
    """Yield the files of a call, from the worktree's top, with their lines; None: all."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):
        command = join_words([word for word in command if isinstance(word, str)])
    if isinstance(command, str) and command.strip():
        if tool in SHELLS or tool in ("read", "execute", "search"):
            yield from _parts_of_command(command, arguments, confined)
        return
    plain = "".join(letter for letter in tool.casefold() if letter.isalnum())
    if plain not in _READS:
        return
    values = (arguments.get(name) for name in _PATHS)
    named = next((value for value in values if isinstance(value, str) and value), "")
    for path in [named] if named else list(places):
        yield os.path.relpath(confined.root / path, confined.root), _lines_of(arguments)


def _parts_of_command(
    command: str, arguments: Mapping[str, Any], confined: Confined
) -> Iterable[tuple[str, tuple[int, int] | None]]:
    read = read_line(peel_shells(command)[0].strip())
    if read is None:
        return
    folder = arguments.get("cwd") or arguments.get("workdir") or ""
    inside = (
        os.path.relpath(confined.root / folder, confined.root) if isinstance(folder, str) else ""
    )
    if inside.startswith(os.pardir):
        return
    for text in translate(read, confined, cwd=inside):
        item = parse_item(text)
        if item.kind == "file" and not set(item.ref) & set("*?["):
            yield item.ref, item.lines


def _lines_of(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """Return the lines that a reading tool was asked for."""
    whole = arguments.get("view_range")
    if isinstance(whole, list) and len(whole) == 2:
        first, last = _count(whole[0]), _count(whole[1])
        return max(1, first), last or max(1, first) + _DEFAULT_LINES - 1
    first = max(1, next(filter(None, (_count(arguments.get(name)) for name in _FIRST)), 1))
    last = next(filter(None, (_count(arguments.get(name)) for name in _LAST)), 0)
    number = _count(arguments.get("limit")) or _DEFAULT_LINES
    return first, last if last >= first else first + number - 1


def _count(value: Any) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value < 10**8 else 0


def _look_at(confined: Confined, path: str, lines: tuple[int, int] | None) -> RunnerFileRead | None:
    """Return the read of a file as it is now; None for one that is not noted."""
    if is_sensitive(path):
        return None
    try:
        with confined.open_read(path) as file:
            data = file.read(LARGEST_SEEN + 1)
    except (PathRefused, OSError, ValueError):
        return None
    if len(data) > LARGEST_SEEN or b"\0" in data:
        return None
    total = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    first, last = lines or (1, total)
    if total and first > total:
        return None
    return RunnerFileRead(
        path=mask(path)[:1_000],
        version=version_of(data),
        first=min(first, total) or 1,
        last=min(last, total),
        gated=False,
    )
