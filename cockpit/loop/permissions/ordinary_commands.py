"""Commands whose programs are known, for agents outside the sandbox: all others ask, whatever the policy.

A program that is not in the table may run anything that its words say (``tar --to-command``, ``watch``,
``expect -c``), so it fails closed. Scripts of the project are ordinary: they do what the project says. See
``docs/reference/hooks.md``, permissions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile

from cockpit.access.commands.command_table import EFFECTS, INTERPRETERS, SHELLS
from cockpit.access.commands.judge_command import name_of
from cockpit.access.parse_shell import parse_shell
from cockpit.access.shell_commands import unwrap
from cockpit.access.shell_syntax import Group, SimpleCommand, iter_items, iter_words

_ORDINARY = frozenset(
    """
    cat head tail wc nl ls pwd cd pushd popd echo printf test [ true false : mkdir touch cp mv ln stat
    file basename dirname realpath readlink cut tr uniq comm diff cmp paste fold column tac rev seq date
    sleep which type tree du df id uname whoami hostname printenv export unset set shift read return exit
    wait local declare md5sum sha1sum sha256sum sha512sum cksum base64 xxd od hexdump strings jq yq grep
    egrep fgrep rg sort find fd sed xargs pytest unittest doctest compileall py_compile venv build tox
    nox coverage pre-commit ruff mypy black isort flake8 pylint pyright bandit mkdocs sphinx-build tsc
    eslint prettier jest vitest mocha webpack vite npm yarn pnpm make cargo rustfmt go gofmt gcc cc g++
    c++ clang clang++ rustc javac gradle gradlew mvn dotnet phpunit rspec rake rubocop shellcheck shfmt git
    """.split()  # noqa: SIM905 - a hundred quoted words are no easier to read
)
_FIRST_VERBS = frozenset(
    """
    add status diff log show branch stash tag blame grep rev-parse rev-list ls-files ls-tree mv switch init
    describe shortlog cat-file commit merge-base check-ignore apply
    """.split()  # noqa: SIM905 - as above
)
"""Verbs of git that run no program that they name; those that lose work are of high risk already."""
_RUNS: dict[str, re.Pattern[str]] = {
    "git": re.compile(r"--(?:ext-diff|textconv|open-files.*|exec.*|extcmd.*|upload-pack.*)|-[OxcC].*"),
    "sort": re.compile(r"--comp.*"),
    "rg": re.compile(r"--(?:pre|hostname-bin)(?:=.*)?"),
    "fd": re.compile(r"-[a-zA-Z]*[xX].*|--exec.*"),
    "find": re.compile(r"-(?:exec|ok)(?:dir)?"),
    "make": re.compile(
        r"-f-|-|--file=-|--(?:ev|makefile=-).*|\.?(?:SHELL|MAKE|MAKEFLAGS|SHELLFLAGS)[+:?!]?=.*"
    ),
    "cargo": re.compile(r"--config.*"),
    "go": re.compile(r"--?(?:exec|toolexec|vettool|overlay).*"),
    "npm": re.compile(r"-c|--(?:call|script-shell|node-options).*"),
    **dict.fromkeys(
        ("gcc", "cc", "g++", "c++", "clang", "clang++", "rustc"),
        re.compile(r"-(?:wrapper|fplugin|specs|B|X|load|fuse-ld|Wl|C).*|@.*|--config.*"),
    ),
}  # fmt: skip
"""Words by which a program of the table runs another one."""
_STEERS = re.compile(
    r"(?:.*(?:PAGER|EDITOR|VISUAL|BROWSER|SHELL|LESSOPEN|COMMAND|ASKPASS|OPTS|OPTIONS|FLAGS|WRAPPER|PROGRAM)"
    r"|CC|CXX|LD|AR|RUSTC)"
)
"""Variables by which a program runs another one."""
_SYSTEMS = re.compile(r"/(?:usr/(?:local/)?)?s?bin/[^/]+")
_PIECE = re.compile(
    r"\s*(?:(?:\d+|\$|/[^/\n]*/)(?:,(?:\d+|\$|/[^/\n]*/))?)?!?\s*"
    r"(?:[pdq=]|s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1[gIip0-9]*)?\s*"
)
"""One command of sed that neither runs a program nor writes another file."""
_SUBSCRIPT = re.compile(r"\[[^\]]*(?:\$\(|`)")
"""What ``test -v`` and ``read`` run, also out of quotes."""
_XARGS = re.compile(
    r"-[0rtx]+|-[nPL]\d+|-I\S+|--(?:null|no-run-if-empty|max-args=\d+|max-procs=\d+)"
)
_FLAGS = re.compile(r"-[BuOqsE]+")
"""Options of Python's that change nothing of what is run."""
_VERBS_OF_CODE = frozenset(("eval", "repl", "x", "exec"))
_ABOUT = frozenset(("--version", "-V", "-v", "--help"))
_DEEPEST = 4


def why_not_ordinary(line: str) -> str:
    """Say which part of a line of shell text is not known to cockpit; '' where all of it is."""
    return next(_reasons(line, 0), "")


def _reasons(line: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield "it is a script in a script"
        return
    script = parse_shell(line)
    if script.errors:
        yield "a part of it cannot be read"
    for item in iter_items(script):
        if any(_SUBSCRIPT.search(word.text) for word in iter_words((item,))):
            yield "a shell may run what is in brackets"
        if isinstance(item, Group):
            if item.kind == "function":
                yield "it gives a command another meaning"
            continue
        for assignment in item.assignments:
            if _STEERS.fullmatch(assignment.name):
                yield f"{assignment.name} may name a program"
        yield from _of_command(item, depth)


def _of_command(command: SimpleCommand, depth: int) -> Iterator[str]:
    words = tuple(word.text for word in command.words)
    if words:
        yield from _of_words(unwrap(words), depth)


def _of_words(argv: Sequence[str], depth: int) -> Iterator[str]:
    if not argv:
        yield "what it starts is not stated"
        return
    first, rest = argv[0], argv[1:]
    if "/" in first and not first.startswith(("/", "~")) and ".." not in first.split("/"):
        return  # a script of the project, or a program that it has installed
    program = name_of(first)
    if "/" in first and not _SYSTEMS.fullmatch(first):
        yield f"{first[:60]!r} is not a program of the system"
    elif program in SHELLS:
        yield from _of_shell(rest, depth)
    elif INTERPRETERS.fullmatch(program):
        yield from _of_interpreter(program, rest, depth)
    elif program == "xargs":
        place = next((at for at, word in enumerate(rest) if not _XARGS.fullmatch(word)), len(rest))
        yield from _of_words(rest[place:] or ("echo",), depth)
    elif program == "sed" and not _is_plain_sed(rest):
        yield "its script for sed may run a program"
    elif program == "git" and (not rest or rest[0] not in _FIRST_VERBS):
        yield "what this git does is not known"
    elif (sign := _RUNS.get(program)) and any(map(sign.fullmatch, rest)):
        yield f"{program} may run what its words say"
    elif program not in _ORDINARY and program not in EFFECTS:
        yield f"cockpit does not know what {program[:60]!r} runs"


def _of_shell(rest: Sequence[str], depth: int) -> Iterator[str]:
    if len(rest) > 1 and re.fullmatch(r"-[elux]*c", rest[0]) and "{}" not in rest[1]:
        yield from _reasons(rest[1], depth + 1)
    elif not rest or rest[0].startswith(("-", "+")):
        yield "what its shell runs is not stated"


def _of_interpreter(program: str, rest: Sequence[str], depth: int) -> Iterator[str]:
    words = tuple(dropwhile(_FLAGS.fullmatch, rest))
    first = words[0] if words else ""
    if program.startswith("python") and first == "-m":
        yield from _of_words(words[1:], depth)
    elif not first or first in _VERBS_OF_CODE or (first.startswith("-") and first not in _ABOUT):
        yield "the code that it runs is not in a file"


def _is_plain_sed(rest: Sequence[str]) -> bool:
    scripts: list[str] = []
    plain: list[str] = []
    words = iter(rest)
    for word in words:
        if re.fullmatch(r"-[nErsuz]*e", word):
            scripts.append(next(words, ""))
        elif re.fullmatch(r"-[nErsuz]+|-i\S*|--(?:in-place(?:=\S*)?|quiet|regexp-extended)", word):
            continue
        elif word.startswith("-"):
            return False
        else:
            plain.append(word)
    scripts = scripts or plain[:1]
    pieces = [piece for script in scripts for piece in re.split(r"[;\n]", script)]
    return bool(scripts) and all(map(_PIECE.fullmatch, pieces))
