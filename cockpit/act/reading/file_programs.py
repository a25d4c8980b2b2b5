"""Programs that print files, as files and lines of the gateway.

What is not a read is not asked here: the judge of reads says so (:mod:`cockpit.access.reads.judge_reads`).
A program that only counts, names or checks (``wc``, ``ls``, ``test``) is not in here, and neither is one that
may do anything (an interpreter). See ``docs/reference/actions.md``, reading commands.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from cockpit.act.reading.scope import Folder, Reading, read_files
from cockpit.act.reading.search_programs import SEARCHING, translate_search

_WHOLE = frozenset("cat tac nl rev od xxd hexdump strings base64".split())  # noqa: SIM905
"""Programs that print whole files: every argument that is not an option is one."""

_TRANSFORMING = frozenset(
    "sort uniq cut paste column fold expand unexpand comm join jq diff cmp".split()  # noqa: SIM905
)
"""Programs that print parts of files; the files are those of their arguments that exist."""

_RANGE = re.compile(r"(\d+)(?:,(\d+|\$|\+\d+))?p")
_AWK_RANGE = re.compile(
    r"(?:NR\s*>=\s*(\d+)\s*&&\s*NR\s*<=\s*(\d+)|NR\s*==\s*(\d+)(?:\s*,\s*NR\s*==\s*(\d+))?)"
    r"\s*(?:\{\s*print(?:\s+\$0)?;?\s*\})?"
)


def translate_program(argv: Sequence[str], folder: Folder) -> Reading | None:
    """Return what one command reads; None when it prints no file."""
    if not argv:
        return None
    program, rest = posixpath.basename(argv[0]), list(argv[1:])
    if program in _TRANSLATORS:
        return _TRANSLATORS[program](rest, folder)
    if program in _WHOLE:
        return _whole_files(_operands(rest), folder)
    if program in _TRANSFORMING:
        return _transformed(program, rest, folder)
    if program in SEARCHING:
        return translate_search(program, rest, folder)
    return None


def _operands(rest: Sequence[str]) -> list[str]:
    """Return the words that are not options; those after ``--`` are none."""
    if "--" in rest:
        place = list(rest).index("--")
        return [*_operands(rest[:place]), *rest[place + 1 :]]
    return [word for word in rest if not word.startswith("-") and not word.startswith("+")]


def _whole_files(words: Sequence[str], folder: Folder) -> Reading | None:
    files = [word for word in words if word not in ("-", "/dev/stdin", "/dev/null")]
    if any(map(folder.is_file, files)):  # the others are values of options
        files = [word for word in files if folder.is_file(word)]
    return read_files([(word, None) for word in files], folder)


def _transformed(program: str, rest: list[str], folder: Folder) -> Reading | None:
    words = _operands(rest)
    if program == "jq" and words:
        words = words[1:]  # the first is the filter
    files = [word for word in words if folder.is_file(word)]
    return read_files([(word, None) for word in files], folder)


def _head(rest: list[str], folder: Folder) -> Reading | None:
    count, files = _count_and_files(rest)
    if count is None:
        return _whole_files(files, folder)
    if not count.startswith("-"):
        return read_files([(word, (1, max(1, int(count)))) for word in files], folder)
    parts: list[tuple[str, tuple[int, int] | None]] = []
    for word in files:
        last = folder.count_lines(word) - int(count[1:])
        parts.append((word, (1, last) if last > 0 else None))
    return read_files(parts, folder)


def _tail(rest: list[str], folder: Folder) -> Reading | None:
    count, files = _count_and_files(rest)
    if count is None:
        return _whole_files(files, folder)
    parts: list[tuple[str, tuple[int, int] | None]] = []
    for word in files:
        total = folder.count_lines(word)
        first = int(count[1:]) if count.startswith("+") else total - int(count.lstrip("-")) + 1
        parts.append((word, (max(1, first), total) if 0 < max(1, first) <= total else None))
    return read_files(parts, folder)


def _count_and_files(rest: list[str]) -> tuple[str | None, list[str]]:
    """Return the number of lines of ``head`` and ``tail`` as written (10 without one), and the files.

    The number is None when they count characters.
    """
    count: str | None = "10"
    files: list[str] = []
    words = iter(rest)
    for word in words:
        value = None
        if word in ("-n", "--lines"):
            value = next(words, "10")
        elif word in ("-c", "--bytes"):
            next(words, None)
            count = None
        elif match := re.fullmatch(r"(?:-n|--lines=)(.+)|-(\d+)|(\+\d+)", word):
            value = match[1] or match[2] or match[3]
        elif re.match(r"-c.|--bytes=", word):
            count = None
        elif word in ("-s", "--sleep-interval", "--pid"):
            next(words, None)
        elif word == "--":
            files += list(words)
        elif not word.startswith("-"):
            files.append(word)
        if value is not None:
            count = value if re.fullmatch(r"[+-]?\d+", value) else None
    return count, [word for word in files if word not in ("/dev/stdin", "/dev/null")]


def _sed(rest: list[str], folder: Folder) -> Reading | None:
    scripts: list[str] = []
    files: list[str] = []
    quiet = False
    words = iter(rest)
    for word in words:
        if word in ("-e", "--expression"):
            scripts.append(next(words, ""))
        elif word in ("-f", "--file", "-l", "--line-length"):
            scripts.append("?")
            next(words, None)
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word.startswith("-") and len(word) > 1:
            quiet = (
                quiet
                or word in ("--quiet", "--silent")
                or re.match(r"-[a-zA-Z]*n", word) is not None
            )
            if re.match(r"-[a-zA-Z]*e$", word):
                scripts.append(next(words, ""))
        elif not scripts:
            scripts.append(word)
        else:
            files.append(word)
    script = ";".join(scripts)
    files = [word for word in files if word not in ("-", "/dev/stdin")]
    if quiet and (match := re.fullmatch(r"/((?:[^/\\]|\\.)*)/p", script)):
        return translate_search("grep", ["-e", match[1], *files], folder) if files else None
    parts: list[tuple[str, tuple[int, int] | None]] = []
    for word in files:
        parts += [(word, lines) for lines in _sed_lines(script, word, folder, quiet=quiet)]
    return read_files(parts, folder)


def _sed_lines(
    script: str, word: str, folder: Folder, *, quiet: bool
) -> Iterator[tuple[int, int] | None]:
    """Yield the lines that a sed script prints; None stands for the whole file."""
    if not quiet and (match := re.fullmatch(r"(\d+)q|1,(\d+)!d", script.strip())):
        yield 1, max(1, int(match[1] or match[2]))
        return
    pieces = [piece.strip() for piece in re.split(r"[;\n]", script) if piece.strip()]
    ranges = [_RANGE.fullmatch(piece) for piece in pieces if not re.fullmatch(r"\d+q", piece)]
    if not quiet or not ranges or not all(ranges):
        yield None
        return
    for match in filter(None, ranges):
        first, end = max(1, int(match[1])), match[2] or match[1]
        if end == "$":
            last = folder.count_lines(word)
        else:
            last = first + int(end[1:]) if end.startswith("+") else int(end)
        yield (first, last) if last >= first else None


def _awk(rest: list[str], folder: Folder) -> Reading | None:
    words = list(rest)
    while words and words[0].startswith("-") and len(words[0]) > 1:
        option = words.pop(0)
        if option in ("-F", "-v", "-f", "-i") and words:
            words.pop(0)
    program, files = (words[0], words[1:]) if words else ("", [])
    files = [word for word in files if folder.is_file(word)]
    lines = None
    if match := _AWK_RANGE.fullmatch(program.strip()):
        first = int(match[1] or match[3])
        last = int(match[2] or match[4] or first)
        lines = (max(1, first), last) if last >= max(1, first) else None
    return read_files([(word, lines) for word in files], folder)


_TRANSLATORS: Mapping[str, Callable[[list[str], Folder], Reading | None]] = {
    "head": _head,
    "tail": _tail,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
}
