"""The change under review and what the packet holds around it.

Built from facts alone: the opening message, further diffs, and the files, symbols and searches that
were granted. Every text keeps its line numbers, so that whatever a rule says can be cited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from cockpit.decide.model import PacketFact
from cockpit.decide.offline.rules.parse_diff import FileDiff, Line, parse_diff

CUT_NOTICE = "[Diff truncated at 50KB."

_TEST_NAME = re.compile(
    r"(?:^|[._-])(?:tests?|specs?)(?:[._-]|\Z)|(?:Test|Tests|Spec)\Z|\Aconftest\Z", re.ASCII
)
_TEST_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__", "testing"})
_DOC_FOLDERS = frozenset({"doc", "docs", "documentation"})
_DOC_SUFFIXES = frozenset({".md", ".rst", ".adoc", ".txt"})
_CODE_SUFFIXES = re.compile(
    r"\.(?:pyi?|[mc]?jsx?|[mc]?tsx?|go|rs|java|kts?|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|m|lua|sh|"
    r"bash|exs?|clj|hs|ml|dart|vue|svelte|sql|zig)\Z"
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LISTED = re.compile(r"- (?P<path>.+?)(?: \((?:added|removed|binary|renamed|mode|sub|sym)[^)]*\))?")
_REFERENCE = re.compile(r"(?P<path>[^\s:][^:\n]*?):(?P<line>\d+)(?:-\d+)?: ?(?P<text>.*)")
_NAMES = re.compile(r"\\b\(\?:(?P<names>\w+(?:\|\w+)*)\)\\b")


def is_test(path: str) -> bool:
    """True for what naming conventions call a test."""
    pure = PurePosixPath(path)
    return bool(_TEST_FOLDERS & set(pure.parts[:-1]) or _TEST_NAME.search(pure.stem))


def is_docs(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(_DOC_FOLDERS & set(pure.parts[:-1])) or pure.suffix.lower() in _DOC_SUFFIXES


def is_code(path: str) -> bool:
    """True for source that a program is made of, tests included."""
    return _CODE_SUFFIXES.search(path) is not None


def is_source(path: str) -> bool:
    """Code that is neither test nor documentation."""
    return is_code(path) and not is_test(path) and not is_docs(path)


@dataclass(frozen=True, slots=True)
class Reference:
    """A line somewhere that a search or symbol fact showed."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """A diff with its surroundings, all as the change leaves them.

    ``listed`` are the changed paths as the opening lists them, which is more than ``files`` where
    the diff was ``cut``. ``whole`` are complete texts by path; ``lines`` numbered lines by path, from
    the diff and from every fact that shows part of a file. ``references`` and ``looked_up`` come from
    symbol and search facts: what they showed, and the names that somebody looked for.
    """

    files: tuple[FileDiff, ...]
    listed: tuple[str, ...] = ()
    cut: bool = False
    whole: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    looked_up: frozenset[str] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(one.path for one in self.files), *self.listed]))

    def added(self, *, code_only: bool = True) -> Iterator[tuple[FileDiff, Line]]:
        """Every added line with its file."""
        for one in self.files:
            if not one.binary and (is_code(one.path) or not code_only):
                for line in one.added:
                    yield one, line

    def after(self, path: str, line: int, count: int = 1) -> list[str]:
        """Up to ``count`` lines that follow ``path:line``, as far as they are known."""
        known = self.lines.get(path, {})
        found: list[str] = []
        for number in range(line + 1, line + 1 + count):
            if number not in known:
                break
            found.append(known[number])
        return found


def change_of(facts: Sequence[PacketFact]) -> Change:
    """The change that ``facts`` show. Without a diff among them it has no files."""
    opening = "\n".join(fact.text for fact in facts if fact.source_type == "task")
    shown = opening.rpartition("\n**Diff:**\n")[2]
    by_path = {one.path: one for one in _files(shown)}
    for fact in facts:
        if fact.source_type == "diff" and _is_whole(fact):
            for one in _files(fact.text):
                if _size(one) >= _size(by_path.get(one.path)):
                    by_path[one.path] = one
    files = tuple(by_path.values())
    whole: dict[str, str] = {}
    lines: dict[str, dict[int, str]] = {}
    for one in files:
        into = lines.setdefault(one.path, {})
        for line in one.lines():
            if line.sign != "-":
                into[line.number] = _clean(line.text)
        complete = len(one.hunks) == 1 and len(one.added) == one.hunks[0].new_count
        if one.status == "added" and complete:
            whole[one.path] = "\n".join(_clean(line.text) for line in one.added) + "\n"
    for fact in facts:
        if fact.source_type == "file" and _is_whole(fact):
            _take_file(fact, whole, lines)
    for one in files:
        # A file read elsewhere than at the tip of the change tells nothing of the change.
        if one.path in whole and not _agree(one, whole[one.path]):
            del whole[one.path]
    references, looked_up = _lookups(facts)
    listed = _listed(opening)
    missing = bool(listed) and not {one.path for one in files} >= set(listed)
    return Change(
        files=files,
        listed=listed,
        cut=CUT_NOTICE in shown and (missing or _torn(files)),
        whole=whole,
        lines=lines,
        references=references,
        looked_up=looked_up,
    )


def _files(text: str) -> Iterator[FileDiff]:
    for one in parse_diff(text):
        yield replace(one, path=spelled_out(one.path), old_path=spelled_out(one.old_path))


def spelled_out(path: str) -> str:
    """A path with its control characters spelled (``⟦U+000A⟧``), as the list of changed files has
    it: a name with a newline in it would break the review's Markdown."""
    return _CONTROL.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", path)


def _agree(one: FileDiff, text: str) -> bool:
    lines = text.split("\n")
    return all(
        line.number <= len(lines) and _clean(lines[line.number - 1]) == _clean(line.text)
        for line in one.lines()
        if line.sign != "-"
    )


def _is_whole(fact: PacketFact) -> bool:
    """True for a fact in its full words: neither shortened in the packet nor asked for shorter."""
    return fact.level == "full" and fact.provenance.get("level", "full") == "full"


def _torn(files: Iterable[FileDiff]) -> bool:
    """True when a hunk has fewer lines than its head promises."""
    return any(
        sum(line.sign != "-" for line in hunk.lines) < hunk.new_count
        for one in files
        for hunk in one.hunks
    )


def _size(one: FileDiff | None) -> int:
    return sum(1 for _ in one.lines()) if one else -1


def _clean(text: str) -> str:
    return text.removesuffix("␍").removesuffix("\r")


def _take_file(fact: PacketFact, whole: dict[str, str], lines: dict[str, dict[int, str]]) -> None:
    path = spelled_out(str(fact.provenance.get("path") or ""))
    if not path:
        return
    held = fact.provenance.get("lines")
    first, last = held if isinstance(held, list | tuple) and len(held) == 2 else (1, None)
    into = lines.setdefault(path, {})
    for number, text in enumerate(fact.text.removesuffix("\n").split("\n"), first):
        into.setdefault(number, _clean(text))
    if first <= 1 and last in (None, fact.provenance.get("total_lines")):
        whole[path] = fact.text


def _lookups(facts: Sequence[PacketFact]) -> tuple[tuple[Reference, ...], frozenset[str]]:
    found: dict[tuple[str, int], Reference] = {}
    names: set[str] = set()
    for fact in facts:
        shown = fact.text
        if fact.source_type == "symbol":
            names.add(str(fact.provenance.get("name", "")))
            shown = shown.rpartition("\nused at\n")[2]
        elif fact.source_type == "search" and not fact.provenance.get("glob"):
            names.update(searched_names(str(fact.provenance.get("regex", ""))))
        elif fact.source_type != "search":
            continue
        for line in shown.split("\n"):
            if match := _REFERENCE.match(line):
                at = Reference(match["path"], int(match["line"]), _clean(match["text"]))
                found.setdefault((at.path, at.line), at)
    return tuple(found[key] for key in sorted(found)), frozenset(names)


def search_for(names: Iterable[str]) -> str:
    """The expression that finds any of ``names`` as whole words."""
    return rf"\b(?:{'|'.join(names)})\b"


def searched_names(regex: str) -> list[str]:
    """The names of an expression that :func:`search_for` made; none for any other."""
    match = _NAMES.fullmatch(regex)
    return match["names"].split("|") if match else []


def _listed(opening: str) -> tuple[str, ...]:
    block = opening.partition("\n**Files Changed:**\n")[2].partition("\n\n**Diff:**\n")[0]
    matches = (_LISTED.fullmatch(line) for line in block.split("\n")[1:])
    return tuple(match["path"] for match in matches if match and not match["path"].startswith("… "))
