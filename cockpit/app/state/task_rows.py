"""The memory of a task as rows of names and values: its work in progress and its handoff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.content import Content

from cockpit.app.state.work import TaskState, tests_of
from cockpit.store.journal.details.backlog import WorkInProgress
from cockpit.store.journal.details.detail import read_part
from widgets.text.detail import SheetRow
from widgets.text.style_names import BAD, DIM, STRONG, WARN, Part, block, line, tone
from widgets.work.task_cards import tests

if TYPE_CHECKING:
    from cockpit.store.backlog.handoffs import Handoff

LISTED_MOST = 100
"""Entries of a list that are shown; a line counts the rest."""
READ_MOST = 20_000
"""Characters of a text that are shown; a line counts the rest."""

_FATES = {"PASS": "good", "FAIL": "bad", "BLOCKED": "warn"}
_STATES = {"compacted": "its details are gone", "archived": "archived with its epic"}
_GAP: SheetRow = ("", Content(""))


def wip_rows(
    task: TaskState, stored: Mapping[str, Any] | None, *, brief: bool = False
) -> list[SheetRow]:
    """Return the rows of a task's stored work in progress; ``brief`` leaves out the lists."""
    if not stored:
        empty = "No work in progress yet. It appears when a worker saves a checkpoint."
        return [("", line((empty, DIM)))]
    wip = read_part(WorkInProgress, stored)
    rows: list[SheetRow] = []

    def add(name: str, *parts: Part) -> None:
        if parts:
            rows.append((name, line(*parts)))

    if wip.phase:
        add("phase", (wip.phase, tone("accent")))
    if wip.next_step:
        add("next", wip.next_step)
    rows += _tests(wip.test_results)
    commit: list[Part] = [wip.last_commit] if wip.last_commit else []
    gap = "   " if commit else ""
    if wip.uncommitted_changes is True:
        commit += [gap, ("uncommitted changes", WARN)]
    elif wip.uncommitted_changes is False:
        commit += [gap, ("everything is committed", DIM)]
    add("commit", *commit)
    files = wip.files_modified
    if brief:
        if files:
            add("files", f"{len(files):,} changed")
        return rows
    if wip.context:
        rows.append(("context", block(wip.context)))
    if task.wip_at:
        add("updated", (when(task.wip_at), DIM))
    if files:
        rows += _files(files)
    if wip.decisions:
        rows += [_GAP, (f"Decisions  {len(wip.decisions):,}", None)]
        rows += _more(len(wip.decisions), "earlier")
        for each in wip.decisions[-LISTED_MOST:]:
            reason: list[Part] = [("  because ", DIM), each.reason] if each.reason else []
            rows.append(("", line("  ", each.decision, *reason)))
    if wip.errors:
        rows += [_GAP, (f"Errors  {len(wip.errors):,}", None)]
        rows += _more(len(wip.errors), "earlier")
        for error in wip.errors[-LISTED_MOST:]:
            where: list[Part] = [(f"  {error.file}", STRONG)] if error.file else []
            rows.append(("", line("  ", (error.type or "error", BAD), *where)))
            if error.message:
                rows.append(("", _indented(block(error.message))))
    return rows


def _tests(stored: Mapping[str, Any]) -> list[SheetRow]:
    if not stored:
        return []
    results = tests_of(stored)
    if not results.ran:
        return [("tests", line(("did not run", WARN)))]
    rows: list[SheetRow] = [("tests", line(*(tests(results) or [("ran", DIM)])))]
    if results.first_failing:
        rows.append(("failing", line((results.first_failing, BAD))))
    return rows


def handoff_rows(
    task: TaskState, handoff: Handoff | None, *, brief: bool = False, details: bool = False
) -> list[SheetRow]:
    """Return the rows of what a task handed over; ``brief`` leaves out files, ``details`` shows all of it.

    One that is not stored any more is shown as far as the journal has it.
    """
    summed = task.handoff
    if handoff is not None:
        status, summary, files = handoff.status, handoff.summary, handoff.files_changed
        state = when(handoff.created_at)
        if handoff.archived_at:
            state = f"archived with its epic {when(handoff.archived_at)}"
        elif handoff.compacted_at:
            state = f"its details went with its story {when(handoff.compacted_at)}"
    elif summed is not None:
        status, summary, files = summed.status, summed.summary, summed.files
        state = _STATES.get(summed.state, "")
    else:
        return [("", line(("No handoff yet. It appears when the task ends.", DIM)))]
    note: list[Part] = [("   ", ""), (state, DIM)] if state else []
    rows: list[SheetRow] = [
        ("status", line((status, tone(_FATES.get(status, ""))), *note)),
        ("summary", block(summary)),
    ]
    if brief:
        if files:
            rows.append(("files", line(f"{len(files):,} changed")))
        return rows
    if files:
        rows += _files(files)
    if details and handoff is not None and handoff.full_details is not None:
        text, left = handoff.full_details[:READ_MOST], len(handoff.full_details) - READ_MOST
        rows += [_GAP, ("Details", None), ("", _indented(block(text), "  "))]
        if left > 0:
            more = f"! {left:,} more characters: `cockpit tasks handoff {task.task_id}`"
            rows.append(("", line((more, WARN))))
    return rows


def join_sections(sections: Sequence[Sequence[SheetRow]]) -> list[SheetRow]:
    """Return sections below each other, with an empty row between two."""
    rows: list[SheetRow] = []
    for section in sections:
        rows += [_GAP, *section] if rows else section
    return rows


def when(at: str) -> str:
    """Return a stored moment as it is read: day and minute."""
    return at[5:16].replace("T", " ")


def _indented(content: Content, space: str = "    ") -> Content:
    return Content("\n").join(
        Content.assemble(space, part) for part in content.split("\n", allow_blank=True)
    )


def _files(paths: Sequence[str]) -> list[SheetRow]:
    rows: list[SheetRow] = [_GAP, (f"Files  {len(paths):,}", None)]
    rows += [("", line("  ", path)) for path in paths[:LISTED_MOST]]
    return rows + _more(len(paths), "more")


def _more(count: int, word: str) -> list[SheetRow]:
    left = count - LISTED_MOST
    return [("", line((f"  … {left:,} {word}", DIM)))] if left > 0 else []
