"""The draft of a review: findings in the order of the Definition of Done, and what rules cannot judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Literal

from msgspec import Struct

from cockpit.core.parse_diff import FileDiff
from cockpit.core.text import pluralize
from cockpit.decide.offline.rules import line_rules, public_name_rules, python_rules, test_rules
from cockpit.decide.offline.rules.changed_definitions import defined, touched
from cockpit.decide.offline.rules.public_name_rules import changed_signatures, removed_names
from cockpit.decide.offline.rules.review_finding import Finding, cite, quote_names
from cockpit.decide.offline.rules.reviewed_change import Change, Frame, is_docs, is_source, quiet
from cockpit.decide.offline.rules.test_rules import tests_on

Verdict = Literal["approve", "request changes", "comment"]

MOST = 12
"""Remarks of one section, and lines of a remark that are named; the rest are counted."""
SMALL = 200
"""Changed lines up to which a change can be read in one sitting."""
_FILES = 6
_LEFT_OUT = "Left out at the reviewer's wish."
_HONEST = (
    "These are cockpit's offline rules, not a model: they read the diff and syntax trees. They cannot judge"
    " intent, design, performance, concurrency, or whether the tests prove what they should."
)
_WHY = {
    "approve": "No rule found anything that speaks against merging.",
    "comment": "Nothing that was seen blocks.",
    "request changes": "This must change before a merge:",
}


RULES = (
    line_rules.committed_by_mistake,
    python_rules.syntax_errors,
    public_name_rules.dropped_but_used,
    public_name_rules.broken_calls,
    test_rules.lost_tests,
    line_rules.judged_by_itself,
    line_rules.swallowed_errors,
    python_rules.mutable_defaults,
    python_rules.toothless_tests,
    test_rules.missing_tests,
    line_rules.binaries,
    line_rules.prints,
    python_rules.long_functions,
    line_rules.todos,
    public_name_rules.untouched_docs,
    public_name_rules.stale_docs,
)
"""What a change is held against, the gravest first."""

ALIKE = 3
"""Remarks of one rule on one file that are made one by one; the rest are counted."""
_KIND = attrgetter("path", "rule", "grade")


class Wishes(Struct, frozen=True):
    """The user's wishes for the review. ``without`` are words: a remark that contains one is left out.
    ``verdict`` overrules the rules' own; ``notes`` are added as the user wrote them."""

    verdict: Verdict | None = None
    nits: bool = True
    questions: bool = True
    without: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Review(Struct, frozen=True):
    """A review ready to be proposed: Markdown, its verdict, and how many remarks it has, in words."""

    verdict: Verdict
    text: str
    counts: str


def review(change: Change, frame: Frame, wishes: Wishes) -> Review:
    """Write the review of ``change``. Pure: the same input gives the same words."""
    remarks = [each for each in findings(change) if not _is_unwanted(each, wishes)]
    blocking = [each for each in remarks if each.grade == "blocking"]
    questions = [each for each in remarks if each.grade == "question" and wishes.questions]
    nits = [each for each in remarks if each.grade == "nit" and wishes.nits]
    # Text that was not read is never approved.
    own: Verdict = "approve" if change.is_seen and not questions else "comment"
    own = "request changes" if blocking else own
    verdict = wishes.verdict or own
    why = f".** {_WHY[own]}" if verdict == own else "**, at the reviewer's wish."
    sections = {
        "Verdict": [
            f"**{verdict.capitalize()}{why}",
            *(["", *_bullets(blocking)] if blocking else []),
            "",
            " ".join([_HONEST, *_unseen(change)]),
        ],
        "Understanding": _understanding(change, frame),
        "What we like": _bullets(list(_strengths(change))),
        "Questions": [
            *(_bullets(questions) if wishes.questions else [_LEFT_OUT]),
            *(f"- {quiet(note)}" for note in wishes.notes),
        ],
        "Nits": _bullets(nits) if wishes.nits else [_LEFT_OUT],
    }
    parts = {title: "\n".join(lines or ["None."]) for title, lines in sections.items()}
    text = "\n\n".join(f"## {title}\n\n{part}" for title, part in parts.items())
    counted = ((blocking, "blocker"), (questions, "question"), (nits, "nit"))
    counts = ", ".join(pluralize(len(each), noun) for each, noun in counted if each)
    return Review(verdict, text + "\n", counts or "no remarks")


def findings(change: Change) -> tuple[Finding, ...]:
    """Everything the rules have to say about ``change``: by rule, then place, each once."""
    remarks: list[Finding] = []
    for rule in RULES:
        new = sorted(sorted(set(rule(change))), key=_KIND)
        for _, group in groupby(new, key=_KIND):
            alike = list(group)
            remarks += alike[:ALIKE]
            if rest := alike[ALIKE:]:
                lines = ", ".join(str(each.line) for each in rest[:MOST])
                more = f" and {len(rest) - MOST} more" if len(rest) > MOST else ""
                first = rest[0]
                words = f"The same again in line{'s' if len(rest) > 1 else ''} {lines}{more}."
                remarks.append(Finding(first.path, first.line, first.rule, first.grade, words))
    return tuple(remarks)


def size(change: Change) -> str:
    """``3 files, +10 −2``."""
    added, removed = change.counts
    return f"{pluralize(len(change.paths), 'file')}, +{added} −{removed}"


def _unseen(change: Change) -> Iterator[str]:
    unseen = [path for path in change.listed if path not in {file.path for file in change.files}]
    if unseen:
        yield f"The diff was cut: {quote_names(unseen)} not seen."
    if change.partial:
        yield f"The diff was cut: {quote_names(change.partial)} seen in part."
    if not unseen and not change.partial and not change.is_seen:
        (added, removed), (seen_added, seen_removed) = change.counts, change.seen
        shown = f"+{seen_added} −{seen_removed} of +{added} −{removed} lines"
        yield f"The diff shows {shown}; the rest was not seen."
    surface = [*removed_names(change), *(new for _, new in changed_signatures(change))]
    if blind := sorted({each.name for each in surface if each.public} - change.looked_up):
        yield f"Callers of {quote_names(blind)} outside of the diff were not looked up."
    paths = [file.path for file in change.files if is_source(file.path)]
    partly = [path for path in paths if path.endswith(".py") and path not in change.whole]
    if partly:
        yield f"Seen only in part: {quote_names(partly)}."


def _understanding(change: Change, frame: Frame) -> list[str]:
    by = f" by {frame.author}" if frame.author else ""
    lines = [f"{frame.title}{by}: {size(change)}. {frame.about}".rstrip()]
    if frame.linked:
        lines.append(f"It closes {frame.linked}.")
    by_size = sorted(change.files, key=lambda each: (-each.size, each.path))
    ranked = sorted(by_size, key=lambda each: not is_source(each.path))[:_FILES]
    lines += ["", *(f"- {_describe(change, file)}" for file in ranked)]
    rest = len(change.paths) - len(ranked)
    return [*lines, f"- {pluralize(rest, 'more file')}."] if rest else lines


def _describe(change: Change, file: FileDiff) -> str:
    old, new = ({each.name: None for each in defined(file, sign)} for sign in "-+")
    same = [name for name in old if name in new]
    names = {
        "adds": [name for name in new if name not in old],
        "changes": [*same, *(name for name in touched(file) if name not in old)],
        "removes": [name for name in old if name not in new],
    }
    was = f" from `{file.old_path}`" if file.status in ("renamed", "copied") else ""
    parts = [file.status + was] if file.status != "modified" else []
    if file.status != "removed":
        parts += [f"{verb} {quote_names(each)}" for verb, each in names.items() if each]
    sizes = "binary" if file.binary else f"+{len(file.added)} −{len(file.removed)}"
    seen = " seen, in part" if file.path in change.partial else ""
    return f"`{cite(*_start(file))}` ({sizes}{seen}) {'; '.join(parts) or 'changes'}."


def _strengths(change: Change) -> Iterator[Finding]:
    """What works well, as far as rules can see: always true, with a place."""
    tests = False
    for file in change.files:
        earlier = tests_on(file, "-") | tests_on(file, " ")
        fresh = {n: line.number for n, line in tests_on(file, "+").items() if n not in earlier}
        if fresh:
            tests = True
            words = f"Behaviour is under test: {quote_names(list(fresh))}."
            yield Finding(file.path, min(fresh.values()), "tests", "praise", words)
    pages = [file for file in change.files if is_docs(file.path) and file.added]
    count = sum(file.size for file in change.files)
    if pages and any(is_source(file.path) for file in change.files):
        line = pages[0].added[0].number
        yield Finding(pages[0].path, line, "docs", "praise", "The docs change with the code.")
    elif not tests and count <= SMALL and change.files:
        words = f"It is small, {pluralize(count, 'line')}, and can be read in one sitting."
        yield Finding(*_start(change.files[0]), "small", "praise", words)


def _start(file: FileDiff) -> tuple[str, int]:
    """Where the first change of a file is."""
    return file.path, file.hunks[0].new_start if file.hunks and file.status != "removed" else 0


def _bullets(remarks: Sequence[Finding]) -> list[str]:
    lines = [f"- `{each.place}` {each.text}" for each in remarks[:MOST]]
    rest = len(remarks) - MOST
    return [*lines, f"- … and {rest} more."] if rest > 0 else lines


def _is_unwanted(finding: Finding, wishes: Wishes) -> bool:
    text = f"{finding.path} {finding.rule} {finding.text}".lower()
    return any(word.lower() in text for word in wishes.without)
