"""The commands of a command line: in order, unwrapped, with their folders and files.

Capture reads the commands that an agent ran, and the guards those that it wants to run. Nothing raises: what
cannot be read is left out. See ``docs/reference/work-in-progress.md`` and ``docs/reference/actions.md``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.commands.command_table import RUNNERS, SHELLS
from cockpit.access.parse_shell import parse_shell
from cockpit.access.shell_syntax import Group, Item, Redirection, Script, SimpleCommand

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_KEYWORDS = frozenset(["!", "time", "coproc"])
_WRAPPERS: dict[str, tuple[int, frozenset[str]]] = {
    "env": (0, frozenset({"-u", "--unset", "-C", "--chdir"})),
    "sudo": (0, frozenset({"-u", "-g"})),
    "nohup": (0, frozenset()),
    "command": (0, frozenset()),
    "builtin": (0, frozenset()),
    "busybox": (0, frozenset()),
    "exec": (0, frozenset({"-a"})),
    "setsid": (0, frozenset()),
    "xvfb-run": (0, frozenset()),
    "nice": (0, frozenset({"-n", "--adjustment"})),
    "ionice": (0, frozenset({"-c", "-n"})),
    "stdbuf": (0, frozenset({"-i", "-o", "-e"})),
    "timeout": (1, frozenset({"-s", "--signal", "-k", "--kill-after"})),
}
"""Programs that run another one: how many words of their own come before it, and their options that take a
value."""
_CLOSING = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done"}
_CLOSING |= {"case": "esac", "{": "}"}
_OPERATORS = {"&": ";", "|&": "|", ";;": ";", ";&": ";", ";;&": ";", "\n": ";"}
_DEEPEST = 20


class RanCommand(Struct, frozen=True):
    """One program with its arguments, without what wraps it (``env``, ``timeout``, ``uv run``).

    ``writes`` are the files that its output goes to, ``reads`` those that its input comes from, ``stdin`` is
    the here-document it reads, ``cwd`` the
    folder it runs in as far as ``cd`` tells. ``joined`` is the operator before it: ``;``, ``&&``,
    ``||``, ``|`` or empty for the first. The last word of a compound command (``fi``, ``done``, ``}``)
    follows its body as a command, because it decides the exit code and carries the redirections.
    """

    argv: tuple[str, ...]
    writes: tuple[str, ...]
    stdin: str
    cwd: str
    joined: str
    reads: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The program's name without its folder; empty without one."""
        return posixpath.basename(self.argv[0]) if self.argv else ""


def list_commands(command: str | Script | Sequence[str], cwd: str = "") -> list[RanCommand]:
    """List the commands of a script (its text, or parsed) or of an argv.

    ``bash -c SCRIPT`` gives those of SCRIPT. ``cwd`` is the folder in which it began.
    """
    return _list_commands(command, cwd, 0)


def _list_commands(command: str | Script | Sequence[str], cwd: str, depth: int) -> list[RanCommand]:
    if not isinstance(command, str | Script):
        return _expand_shell(RanCommand(unwrap(tuple(command)), (), "", cwd, ""), depth)
    listing = _Listing(depth)
    script = command if isinstance(command, Script) else parse_shell(command)
    listing.add(script.items, cwd)
    return listing.commands


class _Listing:
    """Collects the commands of one script."""

    def __init__(self, depth: int) -> None:
        self.commands: list[RanCommand] = []
        self._depth = depth

    def add(self, items: Sequence[Item], cwd: str, operator: str = "") -> str:
        """Add ``items``, begun in ``cwd`` after ``operator``; returns the folder at their end."""
        for place, item in enumerate(items):
            sign = operator if place == 0 else item.operator
            sign = _OPERATORS.get(sign, sign) if self.commands else ""
            cwd = (
                self._add_group(item, sign, cwd)
                if isinstance(item, Group)
                else self._add_simple(item, sign, cwd)
            )
        return cwd

    def _add_simple(self, command: SimpleCommand, sign: str, cwd: str) -> str:
        argv = unwrap(tuple(word.text for word in command.words))
        if argv[:1] == ("cd",):
            target = next((word for word in argv[1:] if word not in ("--", "-P", "-L")), "")
            cwd = posixpath.normpath(posixpath.join(cwd, target)) if target else cwd
        writes, reads, stdin = _files(command.redirections)
        if argv or writes or reads:
            ran = RanCommand(argv, writes, stdin, cwd, sign, reads)
            self.commands += _expand_shell(ran, self._depth)
        return cwd

    def _add_group(self, group: Group, sign: str, cwd: str) -> str:
        inner = self.add(group.items, cwd, sign)
        writes, reads, stdin = _files(group.redirections)
        closing = _CLOSING.get(group.kind, "")
        if closing or writes or reads:
            argv = (closing,) if closing else ()
            self.commands.append(
                RanCommand(argv, writes, stdin, inner, ";" if self.commands else "", reads)
            )
        return cwd if group.kind == "(" else inner


def _files(
    redirections: Sequence[Redirection],
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the files that are written, those that are read, and the text of the here-document."""
    writes = tuple(
        each.target.text for each in redirections if each.writes_file and each.target.text
    )
    reads = tuple(each.target.text for each in redirections if each.operator == "<")
    bodies = [each.body.text for each in redirections if each.body is not None]
    return writes, reads, bodies[-1] if bodies else ""


def _expand_shell(command: RanCommand, depth: int) -> list[RanCommand]:
    """Replace ``bash -c SCRIPT`` by the commands of SCRIPT."""
    if command.program not in SHELLS or depth >= _DEEPEST:
        return [command]
    for place, word in enumerate(command.argv[1:-1], start=1):
        if not word.startswith("-"):
            break
        if word[1:2] != "-" and "c" in word:
            inner = _list_commands(command.argv[place + 1], command.cwd, depth + 1)
            if inner:
                inner[0] = replace(inner[0], joined=command.joined)
            return inner
    return [command]


def unwrap(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command without the programs that only start it (``env X=1 timeout 5 pytest``)."""
    for _ in range(len(argv)):
        if not argv:
            break
        name = posixpath.basename(argv[0])
        if _ASSIGNMENT.match(argv[0]) or name in _KEYWORDS:
            argv = argv[1:]
        elif name in _WRAPPERS:
            own, valued = _WRAPPERS[name]
            argv = _past_options(argv[1:], valued)[own:]
        elif name in RUNNERS and argv[1:2] == ("run",):
            argv = _past_options(argv[2:])
        else:
            break
    return argv


def _past_options(argv: tuple[str, ...], valued: frozenset[str] = frozenset()) -> tuple[str, ...]:
    place = 0
    while place < len(argv) and argv[place].startswith("-"):
        place += 2 if argv[place] in valued else 1
    return argv[place:]
