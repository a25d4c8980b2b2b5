"""What a call of an external agent's tool would read: lines of files, or an answer that may be repeated.

See ``docs/reference/guards.md``, the guard as a hook.
"""

from __future__ import annotations

import hashlib
import json
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
MOST_ENTRIES = 4_000
"""Files below the folders of a search whose times are looked at; a larger search is not guarded."""
READ_LINES = 2_000
"""Lines that Claude Code's Read returns where no limit is given."""
LONGEST_LINE = 2_000
"""Characters of a line that it returns whole."""
SEARCHES = ("Grep", "Glob")
_NO_TEXT = (".pdf", ".ipynb", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
_SEARCHING = frozenset(
    "grep egrep fgrep rg git cat head tail sed awk gawk nl".split()  # noqa: SIM905 - one line of words
)
"""Programs whose operands may be files."""
_ANSWERING = _SEARCHING | frozenset("sort uniq cut wc tr cd echo true column".split())  # noqa: SIM905 - as above
"""Programs whose output follows from the files alone."""
_MAY_READ = re.compile(rf"(?:^|[\s/|;&])(?:{'|'.join(sorted(_SEARCHING))})\s")
_PRINTS = re.compile(
    r"\s*(?:cd\s+\S+|(?:cat|nl|head|tail)\b.*|sed\s+-n\s+['\"]?\d+(?:,(?:\d+|\$|\+\d+))?p['\"]?(?:\s.*)?)\s*"
)
_JOINS = re.compile(r"&&|\|\||[;|\n]")
_WORD_ENDS = re.compile(r"[\s'\";|&]+")
_MOST_WORDS = 50
_SUBSTITUTES = ("`", "$(", "<<", "<(", ">(")
_GIT = frozenset(("diff", "show", "log", "grep", "blame"))
_CLOCK = (
    "--since",
    "--until",
    "--after",
    "--before",
    "--relative-date",
    "relative",
    "ago",
    "yesterday",
)


class FileNow:
    """A file of the project as it is now."""

    __slots__ = ("lines", "path", "version")

    def __init__(self, path: str, version: str, lines: list[str]) -> None:
        self.path = path
        self.version = version
        self.lines = lines


class ToolReads:
    """What one call reads.

    ``parts``: (file, first line, last line) that it returns unchanged. ``key`` and ``mark``: the call as a
    whole, and the state of the files that its answer follows from. ``does_more``: it also says something, or
    takes the agent's shell to another folder, so it is not refused.
    """

    __slots__ = ("does_more", "key", "mark", "parts", "tool")

    def __init__(
        self,
        tool: str,
        parts: list[tuple[FileNow, int, int]],
        key: str = "",
        mark: str = "",
        *,
        does_more: bool = False,
    ) -> None:
        self.tool = tool
        self.parts = parts
        self.key = key
        self.mark = mark
        self.does_more = does_more


def find_reads(event: Event, root: str) -> ToolReads | None:
    """Return what the event's call reads; None where it is not a read, or one that is not guarded."""
    cwd = event.cwd or root
    if event.tool == "Read":
        return _find_read(event.arguments, root, cwd)
    if event.tool in SEARCHES:
        return _find_search(event.tool, event.arguments, root, cwd)
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
    return all(_PRINTS.fullmatch(part) for part in _JOINS.split(command))


def key_command(event: Event, root: str) -> str:
    """Return the key of a command as a whole, in its folder."""
    return _digest("shell", os.path.realpath(event.cwd or root), event.command)


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


def _find_search(tool: str, arguments: dict[str, Any], root: str, cwd: str) -> ToolReads | None:
    place = arguments.get("path", "")
    if not isinstance(place, str):
        return None
    mark = _mark_place(os.path.join(cwd, place), root)
    key = _digest(tool, cwd, json.dumps(arguments, sort_keys=True))
    return ToolReads(tool, [], key, mark) if mark else None


def _find_command(event: Event, root: str, cwd: str) -> ToolReads | None:
    command = event.command
    # What a look at the text tells needs none of the modules below, which an agent waits for.
    if _MAY_READ.search(command) is None or any(sign in command for sign in _SUBSTITUTES):
        return None
    from cockpit.access.reads.judge_reads import why_not_read
    from cockpit.access.reads.reading_place import ReadingPlace

    real = os.path.realpath(cwd)
    if event.arguments.get("run_in_background") or why_not_read(command, ReadingPlace(root, real)):
        return None
    from cockpit.access.shell_commands import list_commands
    from cockpit.act.reading.printed_lines import (
        find_printed_lines,
        says_something,
        stays_in_folder,
    )

    key = key_command(event, root)
    printed = find_printed_lines(command, real)
    if printed is not None:
        parts = []
        for lines in printed.lines:
            file = read_file(lines.path, root)
            if file is None:
                return None
            parts.append((file, *lines.resolve(len(file.lines))))
        whole = [part for part in parts if part[1] <= part[2]]
        # Codex starts each command in the same folder again.
        does_more = printed.does_more or (printed.moves and event.agent != "codex")
        return ToolReads("shell", whole, key, does_more=does_more) if whole else None
    commands = list_commands(command, real)
    if not commands or any(each.program not in _ANSWERING for each in commands):
        return None
    if any(word.startswith(_CLOCK) for each in commands for word in each.argv):
        return None
    if any(each.program == "git" and not _GIT & set(each.argv) for each in commands):
        return None
    moved = any(each.program == "cd" and not stays_in_folder(each, real) for each in commands)
    does_more = any(map(says_something, commands)) or (moved and event.agent != "codex")
    mark = _mark_commands([(each.program, each.argv, each.cwd or real) for each in commands], root)
    return ToolReads("shell", [], key, mark, does_more=does_more) if mark else None


def _mark_commands(commands: list[tuple[str, tuple[str, ...], str]], root: str) -> str:
    """Return the state of the files that the commands read: those that they name, or all of the project."""
    names: set[str] = set()
    for program, argv, cwd in commands:
        if program not in _SEARCHING:
            continue
        words = argv[1:]
        options = [word for word in words if word.startswith("-")]
        letters = "".join(word[1:] for word in options if not word.startswith("--"))
        if _follows_links(program, letters, options):
            return ""  # what a link leads to is not looked at
        is_wide = program in ("rg", "git") or "r" in letters
        places = [os.path.join(cwd, word) for word in words if not word.startswith("-")]
        if is_wide or "--recursive" in options or any(map(os.path.isdir, places)):
            return _mark_project(root, git=program == "git")
        names |= {place for place in places if os.path.lexists(place)}
    if not names:
        return ""
    files = [read_file(name, root) for name in sorted(names)]
    return (
        _digest(*(f"{file.path}:{file.version}" if file else "" for file in files))
        if all(files)
        else ""
    )


def _follows_links(program: str, letters: str, options: list[str]) -> bool:
    """Whether a search follows links in the folders that it searches."""
    if program == "rg":
        return "L" in letters or "--follow" in options
    return "R" in letters or "--dereference-recursive" in options


def _mark_place(place: str, root: str) -> str:
    from cockpit.core.project.disk_marks import VERSION_FOLDERS, mark_folder

    real = os.path.realpath(place)
    top = os.path.realpath(root)
    if os.path.isfile(real):
        file = read_file(real, top)
        return f"{file.path}:{file.version}" if file else ""
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        return ""
    inner = mark_folder(real, leave_out=VERSION_FOLDERS, most=MOST_ENTRIES)
    above = [_mark_ignores(folder) for folder in _list_folders_above(real, top)]
    return f"{real}:{inner}:{_digest(*above)}" if inner and all(above) else ""


def _list_folders_above(folder: str, top: str) -> list[str]:
    """Return the folders from the project's top down to the one that contains ``folder``."""
    above = []
    while folder != top:
        folder = os.path.dirname(folder)
        above.append(folder)
    return above


def _mark_ignores(folder: str) -> str:
    """Return the mark of the files that tell a search in a folder below what to leave out."""
    from cockpit.core.project.disk_marks import mark_file

    marks = [mark_file(f"{folder}/{name}") for name in (".gitignore", ".ignore", ".rgignore")]
    return _digest(*marks) if all(marks) else ""


def _mark_project(root: str, *, git: bool) -> str:
    inner = _mark_place(root, root)
    if not inner or not git:
        return inner
    from pathlib import Path

    from cockpit.access.git_folders import locate_git_folders
    from cockpit.core.project.disk_marks import mark_file, mark_folder

    folders = locate_git_folders(Path(root))
    if folders is None:
        return ""
    files = (
        *(f"{folders.own}/HEAD", f"{folders.own}/index"),
        *(f"{folders.common}/packed-refs", f"{folders.common}/config"),
    )
    marks = [mark_folder(f"{folders.common}/refs", most=MOST_ENTRIES), *map(mark_file, files)]
    return f"{inner}+{_digest(*marks)}" if all(marks) else ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
