"""Which lines of which files a shell command prints as they are: ``sed -n 10,20p a.py``, ``cat a.py | head``.

Only programs that print lines unchanged count, alone or after each other in a pipe. A command that searches,
sorts or counts prints something else of its files. See ``docs/reference/guards.md``, the guard as a hook.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from cockpit.access.shell_commands import RanCommand, list_commands

Cut = tuple[str, int, int]
"""What a stage leaves of its lines: ``slice`` first to last (0: end), ``last`` n, ``without`` the last n."""

_SILENT = frozenset(("cd", "echo", "printf", "true", ":", "pwd", ""))
_UNKNOWN = re.compile(r"[*?\[\]$`{}~!]")
_SAYS = re.compile(r"\w")
_SLICE = re.compile(r"(\d+)(?:,(\d+|\$|\+\d+))?p")
_AWK = re.compile(
    r"(?:NR\s*>=\s*(\d+)\s*&&\s*NR\s*<=\s*(\d+)|NR\s*==\s*(\d+)(?:\s*,\s*NR\s*==\s*(\d+))?)"
    r"\s*(?:\{\s*print(?:\s+\$0)?;?\s*\})?"
)


class PrintedLines(Struct, frozen=True):
    """Lines of one file that a command prints."""

    path: str
    """Absolute, its links not followed."""
    cuts: tuple[Cut, ...] = ()

    def resolve(self, total: int) -> tuple[int, int]:
        """Return the first and last line of a file of ``total`` lines; (1, 0) for none."""
        first, last = 1, total
        for kind, start, end in self.cuts:
            if kind == "slice":
                last = min(last, first + end - 1) if end else last
                first = first + start - 1
            elif kind == "last":
                first = max(first, last - start + 1)
            else:
                last -= start
            if first > last:
                return 1, 0
        return first, last


class Printing(Struct, frozen=True):
    """What a command prints of files."""

    lines: tuple[PrintedLines, ...]
    does_more: bool = False
    """Whether it also says something of its own."""
    moves: bool = False
    """Whether it leaves the shell in another folder."""


def find_printed_lines(command: str, cwd: str) -> Printing | None:
    """Return the lines that a script prints; None where it prints or does anything else.

    Whether it only reads is for the judge of reads to say, before.
    """
    pipelines: list[list[RanCommand]] = []
    for ran in list_commands(command, cwd):
        if ran.joined == "|" and pipelines:
            pipelines[-1].append(ran)
        else:
            pipelines.append([ran])
    lines: list[PrintedLines] = []
    does_more = moves = False
    for pipeline in pipelines:
        head = pipeline[0]
        if len(pipeline) == 1 and head.program in _SILENT and not (head.writes or head.reads):
            moves = moves or (head.program == "cd" and not stays_in_folder(head, cwd))
            does_more = does_more or says_something(head)
            continue
        printed = _read_pipeline(pipeline)
        if printed is None:
            return None
        lines += printed
    return Printing(tuple(lines), does_more, moves) if lines else None


def says_something(command: RanCommand) -> bool:
    """Return whether a command prints words of its own, which may be why it runs; a rule of signs is none."""
    return command.program in ("echo", "printf") and any(map(_SAYS.search, command.argv[1:]))


def stays_in_folder(command: RanCommand, cwd: str) -> bool:
    """Return whether a ``cd`` leads to the folder where the script began."""
    if len(command.argv) != 2:
        return False
    target = os.path.join(command.cwd or cwd, command.argv[1])  # noqa: PTH118 - a string of a shell
    return os.path.realpath(target) == os.path.realpath(cwd)


def _read_pipeline(pipeline: Sequence[RanCommand]) -> list[PrintedLines] | None:
    stages = [_read_stage(command) for command in pipeline]
    if any(stage is None for stage in stages):
        return None
    (files, all_cuts), *rest = [stage for stage in stages if stage is not None]
    if not files or any(names for names, _ in rest):
        return None
    if len(files) * len(all_cuts) > 1 and any(cuts != [()] for _, cuts in rest):
        return None  # what a later stage cuts off is of several files
    head = pipeline[0]
    printed: list[PrintedLines] = []
    for name in files:
        if _UNKNOWN.search(name) or not (head.cwd or name.startswith("/")):
            return None
        path = posixpath.normpath(posixpath.join(head.cwd, name))
        for cuts in all_cuts:
            later = tuple(cut for _, choices in rest for choice in choices for cut in choice)
            printed.append(PrintedLines(path, (*cuts, *later)))
    return printed


Stage = tuple[list[str], list[tuple[Cut, ...]]]
"""The files of a stage, and the cuts of each range that it prints."""


def _read_stage(command: RanCommand) -> Stage | None:
    if command.writes or command.reads or command.stdin:
        return None
    reader = _STAGES.get(command.program)
    return reader(list(command.argv[1:])) if reader is not None else None


def _cat(words: list[str]) -> Stage | None:
    files = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word.startswith("-")]
    return (files, [()]) if all(word in ("-n", "--number", "--") for word in options) else None


def _nl(words: list[str]) -> Stage | None:
    files = [word for word in words if not word.startswith("-")]
    options = {word for word in words if word.startswith("-")}
    return (files, [()]) if options == {"-ba"} else None


def _head(words: list[str]) -> Stage | None:
    counted = _read_count(words)
    if counted is None:
        return None
    count, files = counted
    number = int(count.lstrip("+-"))
    if count.startswith("-"):
        return files, [(("without", number, 0),)]
    return (files, [(("slice", 1, number),)]) if number else None


def _tail(words: list[str]) -> Stage | None:
    counted = _read_count(words, plus=True)
    if counted is None:
        return None
    count, files = counted
    number = int(count.lstrip("+-"))
    if count.startswith("+"):
        return files, [(("slice", max(number, 1), 0),)]
    return (files, [(("last", number, 0),)]) if number else None


def _read_count(words: list[str], *, plus: bool = False) -> tuple[str, list[str]] | None:
    """Return the number of lines as it is written, and the files; None for any other option."""
    count, files = "10", list[str]()
    queue = iter(words)
    for word in queue:
        if word in ("-n", "--lines"):
            count = next(queue, "?")
        elif match := re.fullmatch(r"(?:-n|--lines=)(.+)|-(\d+)", word):
            count = match[1] or match[2]
        elif plus and re.fullmatch(r"\+\d+", word) and not files:
            count = word
        elif word.startswith("-"):
            return None
        else:
            files.append(word)
    return (count, files) if re.fullmatch(r"[+-]?\d{1,9}", count) else None


def _sed(words: list[str]) -> Stage | None:
    if not words or words[0] not in ("-n", "--quiet", "--silent"):
        return None
    rest = words[1:]
    if rest[:1] == ["-e"]:
        rest = rest[1:]
    if not rest or any(word.startswith("-") for word in rest):
        return None
    cuts: list[tuple[Cut, ...]] = []
    for part in re.split(r"[;\n]", re.sub(r"[ \t]", "", rest[0])):
        match = _SLICE.fullmatch(part)
        if match is None or not int(match[1]):
            return None
        first, end = int(match[1]), match[2] or match[1]
        last = 0 if end == "$" else first + int(end[1:]) if end[0] == "+" else int(end)
        # sed prints the first line of a range that ends before it.
        cuts.append((("slice", first, 0 if end == "$" else max(last, first)),))
    return rest[1:], cuts


def _awk(words: list[str]) -> Stage | None:
    match = _AWK.fullmatch(words[0].strip()) if words else None
    if match is None or any("=" in word or word.startswith("-") for word in words[1:]):
        return None
    first = int(match[1] or match[3])
    last = int(match[2] or match[4] or first)
    if not first or last < first:
        return None
    return words[1:], [(("slice", first, last),)]


_STAGES: Mapping[str, Callable[[list[str]], Stage | None]] = {
    "cat": _cat,
    "nl": _nl,
    "head": _head,
    "tail": _tail,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
}
