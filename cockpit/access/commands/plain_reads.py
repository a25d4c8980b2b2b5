"""A single plain command that reads, of about a dozen programs with listed options: nothing else is one.

Such a command is the context request that it stands for, and for an agent outside the sandbox all that the
policy ``reads`` passes. It is plain if every shell reads it alike: words of ordinary letters or in single
quotes, no redirection, substitution, here-document, variable or glob. An option that is not listed makes it
an ordinary command; none listed here writes, runs a program or reads names of files out of a file.
See ``docs/reference/security.md``, reads.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

LONGEST = 4_000
"""Characters of a command line that may be plain."""

_WORD = (
    r"(?:[A-Za-z0-9_./+,-][A-Za-z0-9_./:@%+,=-]*"
    r"|(?:--[a-z-]+=)?'[^'\\\r\n\0]*'|\"[^\"\\$`!\r\n\0]*\")"
)
_PLAIN = re.compile(rf"[ \t]*[a-z]+(?:[ \t]+{_WORD})*[ \t]*")
_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_REVISION = re.compile(
    r"[A-Za-z0-9_./@-]*(?:[~^][0-9]*)*(?:\.\.\.?[A-Za-z0-9_./@-]*(?:[~^][0-9]*)*)?"
)


class _Row(Struct, frozen=True):
    """What one program takes: short options without and with a value, long ones without and with one."""

    flags: str = ""
    valued: str = ""
    words: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()


def _row(flags: str = "", valued: str = "", words: str = "", named: str = "") -> _Row:
    return _Row(flags, valued, frozenset(words.split()), frozenset(named.split()))


_GIT = _row(
    "pswbuz",
    "nSG",
    "--stat --name-only --name-status --shortstat --numstat --summary --oneline --cached --staged --no-color"
    " --graph --patch --no-patch --no-merges --merges --first-parent --reverse --follow --all",
    "--max-count --author --since --until --grep --format --pretty --date --diff-filter",
)
_TABLE: Mapping[str, _Row] = {
    "cat": _row("AbEensTtv", "", "--number --show-all"),
    "head": _row("qv", "n", "--quiet --verbose", "--lines"),
    "tail": _row("qv", "n", "--quiet --verbose", "--lines"),
    "nl": _row("p", "bdfhilnsvw"),
    "wc": _row("lwmL", "", "--lines --words --chars --max-line-length"),
    "ls": _row(
        "1AaCdFghilnpQRrSstUX", "", "--all --almost-all --recursive --directory --human-readable"
    ),
    "sed": _row("n"),
    "grep": _row(
        "aEFGhHiIlLnPqrsvwx",
        "eABCm",
        "--recursive --ignore-case --line-number --files-with-matches --invert-match --word-regexp"
        " --fixed-strings --extended-regexp --no-messages --text --with-filename --no-filename --color",
        "--include --exclude --exclude-dir --regexp --color --max-count --context"
        " --after-context --before-context",
    ),
    "rg": _row(
        "FHIilNnPqSsUvwx",
        "eABCmgtT",
        "--ignore-case --smart-case --line-number --files-with-matches --invert-match --word-regexp"
        " --fixed-strings --no-heading --heading --multiline --no-line-number --with-filename",
        "--regexp --glob --type --type-not --color --max-count --context --after-context --before-context"
        " --max-depth --max-columns --sort",
    ),
    "find": _row(
        words="-not -a -and -print -print0 -empty -prune -depth ( ) !",
        named="-name -iname -path -ipath -type -maxdepth -mindepth -size -mtime -mmin -regex -iregex"
        " -perm -user",
    ),
    "git diff": _GIT,
    "git show": _GIT,
    "git log": _GIT,
    "git blame": _row("lstwe", "L", "--show-email --porcelain"),
}
SEARCHING = frozenset({"grep", "rg"})
NAMING = frozenset({"ls", "find"})
"""Programs that print names and no content."""


class PlainRead(Struct, frozen=True):
    """A plain reading command: ``program`` (``git show`` for a verb), its options with their values ('' for
    none), and its other words in order."""

    program: str
    options: tuple[tuple[str, str], ...] = ()
    operands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Of git the operands after ``--``; of the others the files and folders that it is given."""

    def has(self, *names: str) -> bool:
        """Whether it has one of these options."""
        return any(name in names for name, _ in self.options)

    def value(self, *names: str) -> str:
        """Return the value of the last of these options; '' without one."""
        return next((value for name, value in reversed(self.options) if name in names), "")

    @property
    def patterns(self) -> tuple[str, ...]:
        """What ``grep`` and ``rg`` look for."""
        given = tuple(value for name, value in self.options if name in ("-e", "--regexp"))
        return given or self.operands[:1]

    @property
    def recursive(self) -> bool:
        """Whether it goes into folders."""
        is_asked = self.program == "grep" and self.has("-r", "--recursive")
        return (
            self.program in ("rg", "find") or is_asked or (self.program == "ls" and self.has("-R"))
        )


def read_line(text: str) -> PlainRead | None:
    """Return the plain reading command that a line of shell text is; None for any other."""
    if len(text) > LONGEST or not _PLAIN.fullmatch(text):
        return None
    return read_words(shlex.split(text))


def read_words(argv: Sequence[str]) -> PlainRead | None:
    """Return the plain reading command that a program and its arguments are; None for any other."""
    if not argv or sum(map(len, argv)) > LONGEST or any("\0" in word for word in argv):
        return None
    program, rest = argv[0], list(argv[1:])
    if program == "git":
        if rest[:1] == ["--no-pager"]:
            rest = rest[1:]
        program, rest = f"git {rest[0] if rest else ''}", rest[1:]
    row = _TABLE.get(program)
    if row is None:
        return None
    if program == "find":
        return _read_find(row, rest)
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    after: list[str] = []
    words = iter(rest)
    for word in words:
        if word == "--":
            after = list(words)
        elif len(word) < 2 or not word.startswith("-"):
            operands.append(word)
        else:
            read = _read_option(word, row, words, program)
            if read is None:
                return None
            options += read
    return _check(PlainRead(program, tuple(options)), operands, after)


def _read_option(
    word: str, row: _Row, words: Iterator[str], program: str
) -> list[tuple[str, str]] | None:
    if program in ("head", "tail", "git log") and re.fullmatch(r"-\d{1,9}", word):
        return [("-n", word[1:])]
    if word.startswith("--"):
        name, sign, value = word.partition("=")
        if sign:
            return [(name, value)] if name in row.named else None
        if name in row.words:
            return [(name, "")]
        # Git takes some values only after "=", and reads the next word as another one.
        is_apart = name in row.named and not program.startswith("git ")
        following = next(words, None) if is_apart else None
        return None if following is None else [(name, following)]
    options: list[tuple[str, str]] = []
    for place, letter in enumerate(word[1:], start=1):
        if letter in row.valued:
            given = word[place + 1 :] or next(words, None)
            return None if given is None else [*options, (f"-{letter}", given)]
        if letter not in row.flags:
            return None
        options.append((f"-{letter}", ""))
    return options


def _check(read: PlainRead, operands: list[str], after: list[str]) -> PlainRead | None:
    """Return ``read`` with its words, where they are those of a read."""
    program = read.program
    options, paths = read.options, [*operands, *after]
    if "-" in paths or (program in ("head", "tail") and not _is_count(read)):
        return None
    if program.startswith("git "):
        if any("%G" in value or "signature" in value for _, value in options):
            return None  # it would run the program that checks signatures
        if not all(map(_REVISION.fullmatch, operands)) and program != "git blame":
            return None
        if program == "git blame":
            operands, after = [], paths
            if len(paths) != 1 or not re.fullmatch(r"(?:\d+,\+?\d+)?", read.value("-L")):
                return None
        return PlainRead(program, options, tuple(operands), tuple(after))
    if program == "sed":
        if not read.has("-n") or not paths or not _LINES.fullmatch(paths[0]):
            return None
        return PlainRead(program, options, tuple(paths), tuple(paths[1:])) if paths[1:] else None
    if program in SEARCHING:
        files = paths if read.has("-e", "--regexp") else paths[1:]
        if not (read.has("-e", "--regexp") or paths):
            return None
        search = PlainRead(program, options, tuple(paths), tuple(files))
        return None if not files and not search.recursive else search
    if not paths and program != "ls":
        return None  # it reads its input
    return PlainRead(program, options, tuple(paths), tuple(paths))


def _is_count(read: PlainRead) -> bool:
    return all(re.fullmatch(r"\d{1,9}", value) for name, value in read.options if value)


def _read_find(row: _Row, rest: list[str]) -> PlainRead | None:
    places = []
    while rest and not rest[0].startswith(("-", "(", "!")):
        places.append(rest.pop(0))
    options: list[tuple[str, str]] = []
    words = iter(rest)
    for word in words:
        if word in row.words:
            options.append((word, ""))
        elif word in row.named:
            value = next(words, None)
            if value is None:
                return None
            options.append((word, value))
        else:
            return None
    return PlainRead("find", tuple(options), tuple(places), tuple(places or ["."]))


def sed_lines(read: PlainRead) -> tuple[int, int]:
    """Return the first and last line that a plain ``sed -n A,Bp`` prints."""
    match = _LINES.fullmatch(read.operands[0])
    assert match is not None  # noqa: S101 - otherwise it is no plain read
    first = int(match[1])
    return first, int(match[2] or first)


def printed_lines(read: PlainRead, total: int) -> tuple[int, int]:
    """Return the first and last line that ``cat``, ``nl``, ``head``, ``tail`` or ``sed`` print of a file of
    ``total`` lines; (1, 0) for none."""
    count = int(read.value("-n", "--lines") or 10)
    match read.program:
        case "head":
            return 1, min(count, total)
        case "tail":
            return max(1, total - count + 1), total
        case "sed":
            first, last = sed_lines(read)
            return (first, min(last, total)) if first <= total else (1, 0)
        case _:
            return 1, total
