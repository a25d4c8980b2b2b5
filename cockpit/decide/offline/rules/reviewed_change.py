"""The change under review, and what the packet contains around it.

Built from facts alone: the opening message, further diffs, and the files, symbols and searches that were
granted. Every text keeps its line numbers, so that a rule can cite them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.core.fenced_text import unfence_text, unspan
from cockpit.core.test_files import is_test
from cockpit.decide.model import PacketFact
from cockpit.decide.offline.rules.parse_diff import FileDiff, Line, parse_diff

_DOC_FOLDERS = frozenset({"doc", "docs", "documentation"})
_DOC_SUFFIXES = frozenset({".md", ".rst", ".adoc", ".txt"})
_CODE_SUFFIXES = re.compile(
    r"\.(?:pyi?|[mc]?jsx?|[mc]?tsx?|go|rs|java|kts?|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|m|lua|sh|"
    r"bash|exs?|clj|hs|ml|dart|vue|svelte|sql|zig)\Z"
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LISTED = re.compile(r"- (?P<path>.+?)(?: \((?:added|removed|binary|renamed|mode|sub|sym)[^)]*\))?")
_STATED = re.compile(
    r"\A\d+ files? changed, (?P<added>\d+) insertions?, (?P<removed>\d+) deletions?"
)
_REFERENCE = re.compile(r"(?P<path>[^\s:][^:\n]*?):(?P<line>\d+)(?:-\d+)?: ?(?P<text>.*)")
_NAMES = re.compile(r"\\b\(\?:(?P<names>\w+(?:\|\w+)*)\)\\b")


def is_docs(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(_DOC_FOLDERS & set(pure.parts[:-1])) or pure.suffix.lower() in _DOC_SUFFIXES


def is_code(path: str) -> bool:
    """True for source that a program is made of, tests included."""
    return _CODE_SUFFIXES.search(path) is not None


def is_source(path: str) -> bool:
    """Code that is neither test nor documentation."""
    return is_code(path) and not is_test(path) and not is_docs(path)


class Reference(Struct, frozen=True):
    """A line somewhere that a search or symbol fact showed."""

    path: str
    line: int
    text: str


class Change(Struct, frozen=True):
    """A diff with its surroundings, all as the change leaves them.

    ``listed`` are the changed paths as the opening lists them, which is more than ``files`` where the diff
    was cut; ``stated`` are git's own counts of added and removed lines, None where the opening has none.
    ``partial`` are files of which the diff shows a part. ``whole`` are complete texts by path; ``lines``
    numbered lines by path, from the diff and from every fact that shows part of a file. ``references`` and
    ``looked_up`` come from symbol and search facts: what they showed, and the names that were searched for.
    """

    files: tuple[FileDiff, ...]
    listed: tuple[str, ...] = ()
    stated: tuple[int, int] | None = None
    partial: tuple[str, ...] = ()
    whole: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    looked_up: frozenset[str] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(file.path for file in self.files), *self.listed]))

    @property
    def counts(self) -> tuple[int, int]:
        """Added and removed lines: git's own counts, or those of what was seen."""
        return self.stated or self.seen

    @property
    def seen(self) -> tuple[int, int]:
        """Added and removed lines that the diff shows."""
        return (
            sum(len(file.added) for file in self.files),
            sum(len(file.removed) for file in self.files),
        )

    @property
    def is_seen(self) -> bool:
        """Whether every changed line is in the diff."""
        unseen = set(self.listed) - {file.path for file in self.files}
        return not unseen and not self.partial and self.counts == self.seen

    def added(self, *, code_only: bool = True) -> Iterator[tuple[FileDiff, Line]]:
        """Every added line with its file."""
        for file in self.files:
            if not file.binary and (is_code(file.path) or not code_only):
                for line in file.added:
                    yield file, line

    def after(self, path: str, line: int, count: int = 1) -> list[str]:
        """Up to ``count`` lines that follow ``path:line``, as far as they are known."""
        lines = self.lines.get(path, {})
        following: list[str] = []
        for number in range(line + 1, line + 1 + count):
            if number not in lines:
                break
            following.append(lines[number])
        return following


def change_of(facts: Sequence[PacketFact]) -> Change:
    """The change that ``facts`` show. Without a diff among them it has no files."""
    opening = "\n".join(fact.text for fact in facts if fact.source_type == "task")
    diff_text = unfence_text(opening.rpartition("\n**Diff:**\n")[2])
    by_path = {file.path: file for file in _files(diff_text)}
    for fact in facts:
        if fact.source_type == "diff" and _is_whole(fact):
            for file in _files(fact.text):
                if _size(file) >= _size(by_path.get(file.path)):
                    by_path[file.path] = file
    files = tuple(by_path.values())
    whole: dict[str, str] = {}
    lines: dict[str, dict[int, str]] = {}
    for file in files:
        into = lines.setdefault(file.path, {})
        for line in file.lines():
            if line.sign != "-":
                into[line.number] = _clean(line.text)
        complete = len(file.hunks) == 1 and len(file.added) == file.hunks[0].new_count
        if file.status == "added" and complete:
            whole[file.path] = "\n".join(_clean(line.text) for line in file.added) + "\n"
    for fact in facts:
        if fact.source_type == "file" and _is_whole(fact):
            _take_file(fact, whole, lines)
    for file in files:
        # A file read elsewhere than at the tip of the change tells nothing of the change.
        if file.path in whole and not _agree(file, whole[file.path]):
            del whole[file.path]
    references, looked_up = _lookups(facts)
    listed = _listed(opening)
    return Change(
        files=files,
        listed=listed,
        stated=_stated(opening),
        partial=tuple(file.path for file in files if _is_torn(file)),
        whole=whole,
        lines=lines,
        references=references,
        looked_up=looked_up,
    )


def _files(text: str) -> Iterator[FileDiff]:
    for file in parse_diff(text):
        yield replace(file, path=spelled_out(file.path), old_path=spelled_out(file.old_path))


def spelled_out(path: str) -> str:
    """A path with its control characters spelled (``⟦U+000A⟧``), as the list of changed files has
    it: a name with a newline in it would break the review's Markdown."""
    return _CONTROL.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", path)


def _agree(file: FileDiff, text: str) -> bool:
    lines = text.split("\n")
    return all(
        line.number <= len(lines) and _clean(lines[line.number - 1]) == _clean(line.text)
        for line in file.lines()
        if line.sign != "-"
    )


def _is_whole(fact: PacketFact) -> bool:
    """True for a fact in its full words: neither shortened in the packet nor asked for shorter."""
    return fact.level == "full" and fact.provenance.get("level", "full") == "full"


def _is_torn(file: FileDiff) -> bool:
    """True when a hunk has fewer lines than its head promises."""
    return any(
        sum(line.sign != "-" for line in hunk.lines) < hunk.new_count
        or sum(line.sign != "+" for line in hunk.lines) < hunk.old_count
        for hunk in file.hunks
    )


def _stated(opening: str) -> tuple[int, int] | None:
    match = _STATED.search(opening.partition("\n**Files Changed:**\n")[2])
    return (int(match["added"]), int(match["removed"])) if match else None


def _size(file: FileDiff | None) -> int:
    return sum(1 for _ in file.lines()) if file else -1


def _clean(text: str) -> str:
    return text.removesuffix("␍").removesuffix("\r")


def _take_file(fact: PacketFact, whole: dict[str, str], lines: dict[str, dict[int, str]]) -> None:
    path = spelled_out(str(fact.provenance.get("path") or ""))
    if not path:
        return
    line_range = fact.provenance.get("lines")
    first, last = (
        line_range if isinstance(line_range, list | tuple) and len(line_range) == 2 else (1, None)
    )
    into = lines.setdefault(path, {})
    for number, text in enumerate(fact.text.removesuffix("\n").split("\n"), first):
        into.setdefault(number, _clean(text))
    if first <= 1 and last in (None, fact.provenance.get("total_lines")):
        whole[path] = fact.text


def _lookups(facts: Sequence[PacketFact]) -> tuple[tuple[Reference, ...], frozenset[str]]:
    references: dict[tuple[str, int], Reference] = {}
    names: set[str] = set()
    for fact in facts:
        text = fact.text
        if fact.source_type == "symbol":
            names.add(str(fact.provenance.get("name", "")))
            text = text.rpartition("\nused at\n")[2]
        elif fact.source_type == "search" and not fact.provenance.get("glob"):
            names.update(searched_names(str(fact.provenance.get("regex", ""))))
        elif fact.source_type != "search":
            continue
        for line in text.split("\n"):
            if match := _REFERENCE.match(line):
                at = Reference(match["path"], int(match["line"]), _clean(match["text"]))
                references.setdefault((at.path, at.line), at)
    return tuple(references[key] for key in sorted(references)), frozenset(names)


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
    paths = (match["path"] for match in matches if match)
    return tuple(unspan(path) for path in paths if not path.startswith("… "))
