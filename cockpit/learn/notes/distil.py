"""Which lessons a session taught, from its decisions and its commands; pure.

- What the user answered where they did not just approve is a **decision**.
- A command that failed, and passed after files were changed, is a **pitfall**.
- A command that ran tests, or that passed where others of its program failed, is a **command** that works.
- What a session that had worked and could not finish ended with is an open **question**.

See ``docs/reference/notes.md``, reflection.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from cockpit.store.notes.notes import NoteDraft

MOST_OF_A_KIND = 3
"""Lessons of one kind that a session may teach: the last ones, which it ended with."""
_SHORTEST_WORDS = 3
_LONGEST_TEXT = 600
_LONGEST_COMMAND = 200
_SPACES = re.compile(r"\s+")


class Decided(Struct, frozen=True):
    """A proposal that the user answered with words."""

    title: str
    status: str
    """``discussed`` or ``rejected``."""
    words: str


class CommandRun(Struct, frozen=True):
    """One end of a command."""

    argv: tuple[str, ...]
    passed: bool
    tests: str
    """The counts of tests that it ran, in words; empty where it ran none."""
    error: str
    """The line of its output that says most, where it failed."""
    changed: tuple[str, ...]
    """Files that were changed since the command before it."""


class SessionEvidence(Struct, frozen=True):
    """What a session's lessons are distilled from, each oldest first."""

    decisions: tuple[Decided, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    status: str = ""
    """What it ended with: ``done``, ``blocked`` or ``needs_answer``."""
    summary: str = ""
    has_worked: bool = True
    """False of a session that got no further than its first answer, or that rules led."""


def distil(evidence: SessionEvidence) -> list[NoteDraft]:
    """Return the lessons of a session, by kind, the same for the same evidence."""
    return [
        *_decisions(evidence.decisions),
        *_pitfalls(evidence.commands),
        *_commands(evidence.commands),
        *_questions(evidence),
    ]


def list_failing(evidence: SessionEvidence) -> dict[str, str]:
    """Return the commands that the session left failing, by their subject, with the line that says why."""
    last: dict[str, CommandRun] = {}
    for run in evidence.commands:
        last[command_subject(run.argv)] = run
    return {subject: run.error for subject, run in last.items() if not run.passed}


def command_subject(argv: Sequence[str]) -> str:
    """Return by what two notes about a command are the same: the command as it is written."""
    return shlex.join(argv)


def _decisions(decisions: Sequence[Decided]) -> list[NoteDraft]:
    drafts: dict[str, NoteDraft] = {}
    for decided in decisions:
        words = _flat(decided.words)
        if len(words.split()) < _SHORTEST_WORDS or words.endswith("?"):
            continue  # "no" says what was meant to nobody but this session, and a question decides nothing
        subject = words.casefold().rstrip(".!")
        verb = "discussed" if decided.status == "discussed" else "rejected"
        drafts.pop(subject, None)
        drafts[subject] = NoteDraft(
            "decision",
            subject,
            words,
            f"the user's words when they {verb} “{_flat(decided.title)}”",
        )
    return list(drafts.values())[-MOST_OF_A_KIND:]


def _pitfalls(commands: Sequence[CommandRun]) -> list[NoteDraft]:
    drafts: dict[str, NoteDraft] = {}
    failed: dict[str, CommandRun] = {}
    changed: dict[str, dict[str, None]] = {}
    for run in commands:
        for files in changed.values():
            files.update(dict.fromkeys(run.changed))
        subject = command_subject(run.argv)
        if not run.passed:
            failed[subject], changed[subject] = run, {}
            continue
        before, files = failed.pop(subject, None), changed.pop(subject, {})
        if before is None or not files or not before.error:
            continue
        named = ", ".join(f"`{path}`" for path in sorted(files)[:4])
        more = f" and {len(files) - 4} more" if len(files) > 4 else ""
        error = _flat(before.error)
        key = f"{subject} · {error}".casefold()
        drafts[key] = NoteDraft(
            "pitfall",
            key,
            f"`{_cut(subject, _LONGEST_COMMAND)}` failed with “{error}” until {named}{more} changed.",
            "a command that failed, and passed after the change",
        )
    return list(drafts.values())[-MOST_OF_A_KIND:]


def _commands(commands: Sequence[CommandRun]) -> list[NoteDraft]:
    drafts: dict[str, NoteDraft] = {}
    failed_programs: set[str] = set()
    for run in commands:
        if not run.passed:
            failed_programs.add(run.argv[0])
            continue
        subject = command_subject(run.argv)
        if len(subject) > _LONGEST_COMMAND:
            continue
        if run.tests:
            text, source = f"`{subject}` runs tests: {run.tests}.", "a command that ran tests"
        elif run.argv[0] in failed_programs:
            text = f"`{subject}` works."
            source = "a command that passed where others of its program had failed"
        else:
            continue
        drafts.pop(subject, None)
        drafts[subject] = NoteDraft("command", subject, text, source)
    failing = {command_subject(run.argv): run.passed for run in commands}
    working = [draft for subject, draft in drafts.items() if failing[subject]]
    return working[-MOST_OF_A_KIND:]


def _questions(evidence: SessionEvidence) -> list[NoteDraft]:
    summary = _flat(evidence.summary)
    is_open = evidence.status in ("blocked", "needs_answer") and evidence.has_worked
    if not is_open or not summary:
        return []
    subject = summary.casefold()[:_LONGEST_TEXT]
    return [NoteDraft("question", subject, summary, f"the end of a session: {evidence.status}")]


def _flat(text: str) -> str:
    return _cut(_SPACES.sub(" ", text).strip(), _LONGEST_TEXT)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
