"""The change under review, and what the packet contains around it.

Built from facts alone: the opening message, further diffs, and the files, symbols and searches that were
granted. Every text keeps its line numbers, so that a rule can cite them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.core.fenced_text import unfence_text, unspan
from cockpit.core.parse_diff import FileDiff, Line, parse_diff
from cockpit.core.test_files import is_test
from cockpit.decide.model import PacketFact

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
_FIELD = re.compile(r"^\*\*(Title|Author):\*\* (.*)$", re.MULTILINE)
_LINKED = re.compile(r"^- (#\d+): (.*) \(\S+\)$", re.MULTILINE)
_MENTION = re.compile(r"(?<![\w`])(@[\w/-]+)")


def is_docs(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(_DOC_FOLDERS & set(pure.parts[:-1])) or pure.suffix.lower() in _DOC_SUFFIXES


def is_code(path: str) -> bool:
    """True for source that a program is made of, tests included."""
    return _CODE_SUFFIXES.search(path) is not None


def is_source(path: str) -> bool:
    """Code that is neither test nor documentation."""
    return is_code(path) and not is_test(path) and not is_docs(path)


class Change(Struct, frozen=True):
    """A diff with its surroundings, all as the change leaves them.

    ``listed`` are the changed paths as the opening lists them, which is more than ``files`` where the diff
    was cut; ``stated`` are git's own counts of added and removed lines, None where the opening has none.
    ``partial`` are files of which the diff shows a part. ``whole`` are complete texts by path; ``lines``
    numbered lines by path, from the diff and from every fact that shows some; ``looked_up`` the names that
    were searched for.
    """

    files: tuple[FileDiff, ...]
    listed: tuple[str, ...] = ()
    stated: tuple[int, int] | None = None
    partial: tuple[str, ...] = ()
    whole: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
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
        files = self.files
        return sum(len(each.added) for each in files), sum(len(each.removed) for each in files)

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
        following = range(line + 1, line + 1 + count)
        return [lines[number] for number in takewhile(lines.__contains__, following)]


def change_of(facts: Sequence[PacketFact]) -> Change:
    """The change that ``facts`` show. Without a diff among them it has no files."""
    opening = "\n".join(fact.text for fact in facts if fact.source_type == "task")
    texts = [unfence_text(opening.rpartition("\n**Diff:**\n")[2])]
    texts += [fact.text for fact in facts if fact.source_type == "diff" and _is_whole(fact)]
    by_path: dict[str, FileDiff] = {}
    for file in (file for text in texts for file in _files(text)):
        earlier = by_path.get(file.path)
        if earlier is None or len(list(file.lines())) >= len(list(earlier.lines())):
            by_path[file.path] = file
    whole: dict[str, str] = {}
    lines: dict[str, dict[int, str]] = {}
    for file in by_path.values():
        after = {line.number: _clean(line.text) for line in file.lines() if line.sign != "-"}
        lines[file.path] = after
        if file.status == "added" and [h.new_count for h in file.hunks] == [len(file.added)]:
            whole[file.path] = "\n".join(after.values()) + "\n"
    for fact in facts:
        path = spelled_out(str(fact.provenance.get("path") or ""))
        if fact.source_type == "file" and path and _is_whole(fact):
            first, last = fact.provenance.get("lines") or (1, None)
            shown = fact.text.removesuffix("\n").split("\n")
            into = lines.setdefault(path, {})
            for number, text in enumerate(shown, first):
                into.setdefault(number, _clean(text))
            # A file read elsewhere than at the tip of the change tells nothing of the change.
            agrees = path not in by_path or _agree(by_path[path], shown)
            if first <= 1 and last in (None, fact.provenance.get("total_lines")) and agrees:
                whole[path] = fact.text
    block = opening.partition("\n**Files Changed:**\n")[2].partition("\n\n**Diff:**\n")[0]
    stated = _STATED.search(block)
    listed = [match["path"] for line in block.split("\n")[1:] if (match := _LISTED.fullmatch(line))]
    return Change(
        files=tuple(by_path.values()),
        listed=tuple(unspan(path) for path in listed if not path.startswith("… ")),
        stated=(int(stated["added"]), int(stated["removed"])) if stated else None,
        partial=tuple(file.path for file in by_path.values() if _is_torn(file)),
        whole=whole,
        lines=lines,
        looked_up=_look_up(facts, lines),
    )


def _files(text: str) -> Iterator[FileDiff]:
    for file in parse_diff(text):
        yield replace(file, path=spelled_out(file.path), old_path=spelled_out(file.old_path))


def spelled_out(path: str) -> str:
    """A path with its control characters spelled (``⟦U+000A⟧``), as the list of changed files has
    it: a name with a newline in it would break the review's Markdown."""
    return _CONTROL.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", path)


def _agree(file: FileDiff, lines: Sequence[str]) -> bool:
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


def _clean(text: str) -> str:
    return text.removesuffix("␍").removesuffix("\r")


def _look_up(facts: Sequence[PacketFact], lines: dict[str, dict[int, str]]) -> frozenset[str]:
    """Add the lines that symbols and searches found; return the names that were searched everywhere."""
    names: set[str] = set()
    for fact in facts:
        text = fact.text if fact.source_type == "search" else ""
        if fact.source_type == "symbol":
            names.add(str(fact.provenance.get("name", "")))
            text = fact.text.rpartition("\nused at\n")[2]
        elif not fact.provenance.get("glob"):
            names.update(searched_names(str(fact.provenance.get("regex", ""))))
        for match in filter(None, map(_REFERENCE.match, text.split("\n"))):
            into = lines.setdefault(match["path"], {})
            into.setdefault(int(match["line"]), _clean(match["text"]))
    return frozenset(names)


def search_for(names: Iterable[str]) -> str:
    """The expression that finds any of ``names`` as whole words."""
    return rf"\b(?:{'|'.join(names)})\b"


def searched_names(regex: str) -> list[str]:
    """The names of an expression that :func:`search_for` made; none for any other."""
    match = _NAMES.fullmatch(regex)
    return match["names"].split("|") if match else []


class Frame(Struct, frozen=True):
    """``subject`` is ``PR #24`` or the range, ``title`` its title or the subject; ``about`` the first
    sentence of the description; ``linked`` the issues that it closes, each with its title."""

    subject: str
    title: str
    author: str
    about: str
    linked: str


def frame_of(facts: Sequence[PacketFact]) -> Frame:
    """Return the frame that the opening message among ``facts`` states; missing fields are empty."""
    opening = "\n".join(fact.text for fact in facts if fact.source_type == "task")
    head = opening.partition("\n**Files Changed:**\n")[0]
    fields = {name: quiet(unspan(value)) for name, value in reversed(_FIELD.findall(head))}
    body, _, linked = head.partition("\n**Body:**\n")[2].rpartition("\n\n**Linked Issues:**\n")
    match = re.match(r"## Task: Review (.+)", opening)
    subject = match[1] if match else "this change"
    return Frame(
        subject=subject,
        title=f"“{fields['Title']}”" if fields.get("Title") else subject,
        author=fields.get("Author", ""),
        about=quiet(_first_sentence(unfence_text(body))),
        linked=", ".join(f"{at} ({quiet(unspan(title))})" for at, title in _LINKED.findall(linked)),
    )


def quiet(text: str) -> str:
    """Quote text of a pull request: its mentions must not notify people."""
    return _MENTION.sub(r"`\1`", text)


def _first_sentence(body: str) -> str:
    for block in body.split("\n\n"):
        line = " ".join(block.split())
        if line and line[0] not in "-*#>|<`[(" and "no description" not in line:
            return re.split(r"(?<=[.!?])\s", line, maxsplit=1)[0][:240]
    return ""
