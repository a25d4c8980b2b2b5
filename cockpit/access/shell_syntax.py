"""What a shell command line consists of: its simple commands, in order, and where they write.

For reading what an agent ran, never for running it. What cannot be told is left out; nothing raises.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

MOST = 200_000
"""Characters of a script that are looked at."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_KEYWORDS = frozenset(["if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"])
_WRAPPERS = {"env": 0, "sudo": 0, "nohup": 0, "command": 0, "exec": 0, "xvfb-run": 0, "timeout": 1}
"""Programs that run another one, and how many words of their own come before it."""
_RUNNERS = frozenset(["uv", "poetry", "pipenv", "hatch", "pdm", "rye"])
_SHELLS = frozenset(["bash", "sh", "zsh", "dash"])
_REDIRECTION = re.compile(r"(?:&>>?|[0-9]*(?:>>|>\||>&|<<<|<<-?|<>|<&|>|<))")
_DELIMITER = re.compile(r"[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_FD = re.compile(r"&?[0-9-]+$")


@dataclass(frozen=True, slots=True)
class Simple:
    """One program with its arguments, without what wraps it (``env``, ``timeout``, ``uv run``).

    ``writes`` are the files that its output is sent to, ``stdin`` the here-document it reads, ``cwd``
    the folder it runs in as far as ``cd`` tells. ``joined`` is the operator before it: ``;``, ``&&``,
    ``||``, ``|`` or empty for the first.
    """

    argv: tuple[str, ...]
    writes: tuple[str, ...]
    stdin: str
    cwd: str
    joined: str

    @property
    def program(self) -> str:
        return posixpath.basename(self.argv[0]) if self.argv else ""


@dataclass(slots=True)
class _Open:
    """The command that is being read."""

    joined: str = ""
    argv: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    stdin: str = ""
    heredoc: bool = False


def commands(command: str | Sequence[str], cwd: str = "") -> list[Simple]:
    """The simple commands of a script or an argv, a shell's ``-c`` script taken apart too."""
    if not isinstance(command, str):
        return _inner(Simple(_unwrapped(tuple(command)), (), "", cwd, ""))
    found: list[Simple] = []
    here = cwd
    for one in _Reader(command[:MOST]).read():
        argv = _unwrapped(tuple(one.argv))
        if argv[:1] == ("cd",):
            target = next((word for word in argv[1:] if word not in ("--", "-P", "-L")), "")
            here = posixpath.normpath(posixpath.join(here, target)) if target else here
        if argv or one.writes:
            made = Simple(argv, tuple(one.writes), one.stdin, here, one.joined)
            found += _inner(made)
    return found


def _inner(made: Simple) -> list[Simple]:
    """``bash -c SCRIPT`` as the commands of SCRIPT."""
    if made.program not in _SHELLS:
        return [made]
    for place, word in enumerate(made.argv[1:-1], start=1):
        if not word.startswith("-"):
            break
        if word[1:2] != "-" and "c" in word:
            inside = commands(made.argv[place + 1], made.cwd)
            if inside:
                first = inside[0]
                inside[0] = Simple(first.argv, first.writes, first.stdin, first.cwd, made.joined)
            return inside
    return [made]


def _unwrapped(argv: tuple[str, ...]) -> tuple[str, ...]:
    for _ in range(len(argv)):
        if not argv:
            break
        name = posixpath.basename(argv[0])
        if _ASSIGNMENT.match(argv[0]) or name in _KEYWORDS:
            argv = argv[1:]
        elif name in _WRAPPERS:
            argv = _past_options(argv[1:])[_WRAPPERS[name] :]
        elif name in _RUNNERS and argv[1:2] == ("run",):
            argv = _past_options(argv[2:])
        else:
            break
    return argv


def _past_options(argv: tuple[str, ...]) -> tuple[str, ...]:
    place = 0
    while place < len(argv) and argv[place].startswith("-"):
        place += 1
    return argv[place:]


class _Reader:
    """A script, read once from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\\\n", " ")
        self._at = 0
        self._done: list[_Open] = []
        self._now = _Open()
        self._pending: list[tuple[_Open, str, bool]] = []

    def read(self) -> list[_Open]:
        text = self._text
        while self._at < len(text):
            rest = text[self._at : self._at + 3]
            one = rest[0]
            if one == "\n":
                self._at += 1
                self._heredocs()
                self._end(";")
            elif one in " \t\r":
                self._at += 1
            elif one == "#":
                self._at = self._find("\n", self._at)
            elif match := _REDIRECTION.match(text, self._at):
                self._redirected(match)
            elif rest.startswith(("&&", "||")):
                self._operator(rest[:2], 2)
            elif one in ";&()":
                self._operator(";", 1)
            elif one == "|":
                self._operator("|", 2 if rest[1:2] == "&" else 1)
            else:
                self._now.argv.append(self._word())
        self._heredocs()
        self._end("")
        return self._done

    def _operator(self, sign: str, length: int) -> None:
        self._at += length
        self._end(sign)

    def _end(self, joined: str) -> None:
        if self._now.argv or self._now.writes:
            self._done.append(self._now)
            self._now = _Open(joined)
        elif joined != ";" or not self._now.joined:
            self._now.joined = joined if self._done else ""

    def _redirected(self, match: re.Match[str]) -> None:
        sign = match[0].lstrip("0123456789")
        self._at = match.end()
        if sign in ("<<", "<<-"):
            named = _DELIMITER.match(self._text, self._at)
            if named:
                self._at = named.end()
                self._pending.append((self._now, named[2], sign == "<<-"))
            return
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        target = self._word()
        if ">" in sign and target and not (sign == ">&" and _FD.match(target)):
            self._now.writes.append(target)

    def _heredocs(self) -> None:
        for owner, delimiter, tabs in self._pending:
            lines = []
            while self._at < len(self._text):
                end = self._find("\n", self._at)
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                if (line.lstrip("\t") if tabs else line).rstrip("\r") == delimiter:
                    break
                lines.append(line)
            owner.stdin = "\n".join(lines)
        self._pending = []

    def _word(self) -> str:
        text, parts = self._text, []
        while self._at < len(text):
            one = text[self._at]
            if one in " \t\r\n;&|<>()":
                break
            if one == "'":
                end = self._find("'", self._at + 1)
                parts.append(text[self._at + 1 : end])
                self._at = end + 1
            elif one == '"':
                parts.append(self._double())
            elif one == "\\":
                parts.append(text[self._at + 1 : self._at + 2])
                self._at += 2
            elif text.startswith("$(", self._at):
                end = self._closing(self._at + 2)
                parts.append(text[self._at : end])
                self._at = end
            else:
                parts.append(one)
                self._at += 1
        return "".join(parts)

    def _double(self) -> str:
        text, parts, at = self._text, [], self._at + 1
        while at < len(text) and text[at] != '"':
            if text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\", "$", "`"):
                at += 1
            parts.append(text[at : at + 1])
            at += 1
        self._at = at + 1
        return "".join(parts)

    def _closing(self, at: int) -> int:
        depth = 1
        while at < len(self._text) and depth:
            depth += {"(": 1, ")": -1}.get(self._text[at], 0)
            at += 1
        return at

    def _find(self, sign: str, at: int) -> int:
        end = self._text.find(sign, at)
        return len(self._text) if end < 0 else end
