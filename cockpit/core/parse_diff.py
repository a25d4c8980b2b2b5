"""A unified diff as records: files, hunks, numbered lines.

Reviewers get diffs that are cut at 50 KiB, in the middle of a hunk, with names as git quotes them; parsers
that need whole hunks and plain names refuse both. Nothing raises: text that is not a diff has no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Status = Literal["added", "removed", "renamed", "copied", "modified"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_ESCAPE = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Line(Struct, frozen=True):
    """One line of a hunk. ``number`` counts in the new file for ``+`` and `` ``, in the old for
    ``-``; ``text`` has neither sign nor line end. ``near`` is where in the new file it is, or was
    taken out: what a remark about it cites."""

    sign: Literal["+", "-", " "]
    number: int
    text: str
    near: int


class Hunk(Struct, frozen=True):
    """A run of lines. Starts are 1-based; ``heading`` is what git prints after the second ``@@``."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    heading: str
    lines: tuple[Line, ...]


class FileDiff(Struct, frozen=True):
    """What happened to one file. ``path`` is its name now, or its last one when it was removed."""

    path: str
    old_path: str
    status: Status
    hunks: tuple[Hunk, ...] = ()
    binary: bool = False
    mode: tuple[str, str] | None = None
    """Old and new mode where they differ."""

    @property
    def added(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines() if line.sign == "+")

    @property
    def removed(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines() if line.sign == "-")

    @property
    def size(self) -> int:
        """How many lines it adds and removes."""
        return len(self.added) + len(self.removed)

    def lines(self) -> Iterator[Line]:
        for hunk in self.hunks:
            yield from hunk.lines


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """The files of a unified diff as git writes it, in order. Text before the first ``diff --git``
    is passed over; a hunk that the text cuts short keeps the lines that are there."""
    lines = text.split("\n")
    files: list[FileDiff] = []
    position = 0
    while position < len(lines):
        if lines[position].startswith("diff --git "):
            file, position = _file(lines, position)
            if file is not None:
                files.append(file)
        else:
            position += 1
    return tuple(files)


def _file(lines: Sequence[str], position: int) -> tuple[FileDiff | None, int]:
    old, new = _from_heading(lines[position][len("diff --git ") :])
    file = FileDiff(new, old, "modified")
    modes = ["", ""]
    hunks: list[Hunk] = []
    position += 1
    while position < len(lines) and not lines[position].startswith("diff --git "):
        line = lines[position]
        if line.startswith("@@ ") and (match := _HUNK.match(line)):
            hunk, position = _hunk(lines, position + 1, match)
            hunks.append(hunk)
            continue
        file = _header(file, line, modes)
        position += 1
    if not file.path:
        return None, position
    mode = (modes[0], modes[1]) if all(modes) and modes[0] != modes[1] else None
    return replace(file, hunks=tuple(hunks), mode=mode), position


def _header(file: FileDiff, line: str, modes: list[str]) -> FileDiff:
    word, _, rest = line.partition(" ")
    if word == "old" and rest.startswith("mode "):
        modes[0] = rest[5:]
    elif word == "new" and rest.startswith("mode "):
        modes[1] = rest[5:]
    elif word == "new" and rest.startswith("file mode"):
        return replace(file, status="added")
    elif word == "deleted" and rest.startswith("file mode"):
        return replace(file, status="removed", path=file.old_path or file.path)
    elif word in {"rename", "copy"}:
        status: Status = "renamed" if word == "rename" else "copied"
        side, _, name = rest.partition(" ")
        changed = {"old_path": _name(name)} if side == "from" else {"path": _name(name)}
        return replace(file, status=status, **changed)
    elif word == "---" and rest != "/dev/null":
        return replace(file, old_path=_name(rest, "a/"))
    elif word == "+++" and rest != "/dev/null":
        return replace(file, path=_name(rest, "b/"))
    elif line.startswith(("Binary files ", "GIT binary patch")):
        return replace(file, binary=True)
    return file


def _hunk(lines: Sequence[str], position: int, match: re.Match[str]) -> tuple[Hunk, int]:
    old, new = int(match[1]), int(match[3])
    old_left, new_left = int(match[2] or 1), int(match[4] or 1)
    hunk = Hunk(old, old_left, new, new_left, match[5], ())
    hunk_lines: list[Line] = []
    while position < len(lines) and (old_left > 0 or new_left > 0):
        # Some tools strip the lone blank of an empty context line.
        sign, text = (lines[position][0], lines[position][1:]) if lines[position] else (" ", "")
        if sign == "+":
            hunk_lines.append(Line("+", new, text, new))
            new, new_left = new + 1, new_left - 1
        elif sign == "-":
            hunk_lines.append(Line("-", old, text, max(new, 1)))
            old, old_left = old + 1, old_left - 1
        elif sign == " ":
            hunk_lines.append(Line(" ", new, text, new))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif sign != "\\":
            break
        position += 1
    return replace(hunk, lines=tuple(hunk_lines)), position


def _from_heading(rest: str) -> tuple[str, str]:
    """Both names of ``a/X b/X``; only files without hunks (binary, mode, empty) depend on it."""
    if rest.startswith('"'):
        end = re.match(r'"(?:[^"\\]|\\.)*"', rest)
        first = rest[: end.end()] if end else rest
        second = rest[len(first) + 1 :]
        return _name(first, "a/"), _name(second or first, "b/")
    if rest.endswith('"') and ' "' in rest:
        first, _, second = rest.partition(' "')
        return _name(first, "a/"), _name('"' + second, "b/")
    half = (len(rest) - 1) // 2
    if rest[2:half] == rest[half + 3 :]:
        return _name(rest[:half], "a/"), _name(rest[half + 1 :], "b/")
    first, _, second = rest.partition(" b/")
    return _name(first, "a/"), second


def _name(spelled: str, prefix: str = "") -> str:
    """A name without git's quotes, its ``a/`` or ``b/``, and the tab after names with blanks."""
    name = spelled.rstrip("\t\r")
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = _unquoted(name[1:-1])
    return name.removeprefix(prefix)


def _unquoted(text: str) -> str:
    """Undo git's C quoting. Octal escapes are bytes of UTF-8."""
    raw = bytearray()
    end = 0
    for match in _ESCAPE.finditer(text):
        raw += text[end : match.start()].encode()
        code = match[1]
        octal = len(code) == 3
        raw += bytes([int(code, 8) & 0xFF]) if octal else _PLAIN.get(code, code).encode()
        end = match.end()
    return (raw + text[end:].encode()).decode("utf-8", "replace")
