"""The draft of a review: findings in the order of the Definition of Done, and what rules cannot judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from cockpit.decide.offline.rules import change_summary
from cockpit.decide.offline.rules.public_name_rules import changed_signatures, removed_names
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.review_header import Frame, quiet
from cockpit.decide.offline.rules.reviewed_change import Change, is_source
from cockpit.decide.offline.rules.rule_table import findings
from cockpit.decide.offline.rules.strengths import strengths

Verdict = Literal["approve", "request changes", "comment"]

MOST = 12
"""Remarks of one section; the rest are counted."""

HONEST = (
    "These are cockpit's offline rules, not a model: they read the diff and syntax trees. They "
    "cannot judge intent, design, performance, concurrency, or whether the tests prove what they "
    "should."
)


class Wishes(Struct, frozen=True):
    """The user's wishes for the review. ``without`` are words: a remark that contains one is left out.
    ``verdict`` overrules the rules' own; ``notes`` are added as the user wrote them."""

    verdict: Verdict | None = None
    nits: bool = True
    questions: bool = True
    softer: bool = False
    shorter: bool = False
    without: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Review(Struct, frozen=True):
    """A review ready to be proposed: Markdown, its verdict, and how many remarks of each grade."""

    verdict: Verdict
    text: str
    blocking: int
    questions: int
    nits: int


def review(change: Change, frame: Frame, wishes: Wishes) -> Review:
    """Write the review of ``change``. Pure: the same input gives the same words."""
    remarks = [finding for finding in findings(change) if not _unwanted(finding, wishes)]
    blocking = [finding for finding in remarks if finding.grade == "blocking"]
    questions = [finding for finding in remarks if finding.grade == "question" and wishes.questions]
    nits = [finding for finding in remarks if finding.grade == "nit" and wishes.nits]
    verdict = wishes.verdict or _verdict(change, blocking, questions)
    sections = (
        ("Verdict", _verdict_lines(change, verdict, blocking, questions, wishes)),
        ("Understanding", _understanding(change, frame, wishes)),
        ("What we like", _bullets(strengths(change), 1 if wishes.shorter else MOST)),
        ("Questions", [*_bullets(questions, 3 if wishes.shorter else MOST), *_notes(wishes)]),
        ("Nits", _bullets(nits, 3 if wishes.shorter else MOST)),
    )
    text = "\n\n".join(
        f"## {title}\n\n" + ("\n".join(lines) if lines else _nothing(title, wishes))
        for title, lines in sections
    )
    return Review(verdict, text + "\n", len(blocking), len(questions), len(nits))


def _verdict(change: Change, blocking: Sequence[Finding], questions: Sequence[Finding]) -> Verdict:
    if blocking:
        return "request changes"
    # Text that was not read is never approved.
    return "comment" if questions or not change.is_seen else "approve"


def _verdict_lines(
    change: Change,
    verdict: Verdict,
    blocking: Sequence[Finding],
    questions: Sequence[Finding],
    wishes: Wishes,
) -> list[str]:
    count = len(blocking)
    things = "one thing" if count == 1 else f"{count} things"
    question_count = "one question" if len(questions) == 1 else f"{len(questions)} questions"
    match verdict:
        case "request changes" if blocking and wishes.softer:
            why = f"**Request changes.** Good work overall; {things} would need another look first:"
        case "request changes" if blocking:
            why = f"**Request changes.** {things.capitalize()} must change before this is merged:"
        case "request changes":
            why = (
                "**Request changes**, at the reviewer's wish; the rules found nothing that blocks."
            )
        case "approve" if blocking:
            why = (
                f"**Approve**, at the reviewer's wish. The rules would have held back for {things}:"
            )
        case "approve" if not change.is_seen:
            why = "**Approve**, at the reviewer's wish; not all of the change was seen."
        case "approve":
            why = "**Approve.** No rule found anything that speaks against merging."
        case _ if blocking:
            why = f"**Comment**, at the reviewer's wish. {things.capitalize()} to look at:"
        case _ if questions:
            why = f"**Comment.** Nothing blocks; {question_count} below."
        case _ if not change.is_seen:
            why = "**Comment.** Nothing that was seen blocks, and not all of the change was seen."
        case _:
            why = "**Comment.** Nothing blocks; a few remarks below."
    lines = [why]
    if blocking:
        lines += ["", *_bullets(blocking, MOST, softer=wishes.softer)]
    return [*lines, "", " ".join([HONEST, *_unseen(change)])]


def _cut(change: Change) -> Iterable[str]:
    paths = {file.path for file in change.files}
    unseen = [path for path in change.listed if path not in paths]
    if unseen:
        names = ", ".join(f"`{path}`" for path in unseen[:5])
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        yield f"The diff was cut: {names}{more} not seen."
    if change.partial:
        names = ", ".join(f"`{path}`" for path in change.partial[:5])
        yield f"The diff was cut: {names} seen in part."
    if not unseen and not change.partial and not change.is_seen:
        (added, removed), (seen_added, seen_removed) = change.counts, change.seen
        yield (
            f"The diff shows +{seen_added} −{seen_removed} of +{added} −{removed} lines; the rest was not"
            " seen."
        )


def _unseen(change: Change) -> Iterable[str]:
    yield from _cut(change)
    surface = [old.name for old in removed_names(change) if old.public]
    surface += [new.name for _, new in changed_signatures(change) if new.public]
    if blind := sorted(set(surface) - change.looked_up):
        listed = ", ".join(f"`{name}`" for name in blind[:4])
        yield f"Callers of {listed} outside of the diff were not looked up."
    partly = [
        file.path for file in change.files if file.path.endswith(".py") and is_source(file.path)
    ]
    partly = [path for path in partly if path not in change.whole]
    if partly and change.files:
        listed = ", ".join(f"`{path}`" for path in partly[:4])
        yield f"Seen only in part: {listed}."


def _understanding(change: Change, frame: Frame, wishes: Wishes) -> list[str]:
    lead = f"“{frame.title}”" if frame.title else frame.subject
    by = f" by {frame.author}" if frame.author else ""
    lines = [
        f"{lead}{by}: {change_summary.size(change)}." + (f" {frame.about}" if frame.about else "")
    ]
    if frame.linked:
        lines.append(
            "It closes " + ", ".join(f"{ref} ({title})" for ref, title in frame.linked) + "."
        )
    if not wishes.shorter:
        lines += ["", *(f"- {line}" for line in change_summary.describe_files(change))]
    return lines


def _bullets(remarks: Sequence[Finding], most: int, *, softer: bool = False) -> list[str]:
    lines = [
        f"- `{finding.place}` {'Could you look at this? ' if softer else ''}{finding.text}"
        for finding in remarks[:most]
    ]
    if len(remarks) > most:
        lines.append(f"- … and {len(remarks) - most} more.")
    return lines


def _notes(wishes: Wishes) -> list[str]:
    return [f"- {quiet(note)}" for note in wishes.notes]


def _nothing(title: str, wishes: Wishes) -> str:
    left_out = (title == "Nits" and not wishes.nits) or (
        title == "Questions" and not wishes.questions
    )
    return "Left out at the reviewer's wish." if left_out else "None."


def _unwanted(finding: Finding, wishes: Wishes) -> bool:
    text = f"{finding.path} {finding.rule} {finding.text}".lower()
    return any(word.lower() in text for word in wishes.without)
