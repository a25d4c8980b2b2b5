"""The memory of a task as rows: its work in progress and its handoff."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from widgets.forms.key_values import SheetRow
from widgets.text.style_names import BAD, DIM, STRONG, WARN, Part, block, line, tone
from widgets.work.task_cards import tests
from widgets.work.task_views import HandoffView, WipView

LISTED_MOST = 100
"""Entries of a list that are shown; a line counts the rest."""
READ_MOST = 20_000
"""Characters of a text that are shown; a line counts the rest."""

_GAP = SheetRow("", Content(""))


def wip_rows(view: WipView, *, brief: bool = False) -> list[SheetRow]:
    """Return the rows of a task's work in progress; ``brief`` leaves out the lists."""
    if view.empty:
        return [
            SheetRow(
                "",
                line(
                    ("No work in progress yet. It appears when a worker saves a checkpoint.", DIM)
                ),
            )
        ]
    rows: list[SheetRow] = []

    def add(name: str, *parts: Part) -> None:
        if parts:
            rows.append(SheetRow(name, line(*parts)))

    if view.phase:
        add("phase", (view.phase, tone("accent")))
    if view.next_step:
        add("next", view.next_step)
    rows += _tests(view)
    commit: list[Part] = [view.last_commit] if view.last_commit else []
    if view.uncommitted:
        commit += [("   " if commit else ""), ("uncommitted changes", WARN)]
    elif view.uncommitted is False:
        commit += [("   " if commit else ""), ("everything is committed", DIM)]
    add("commit", *commit)
    if brief:
        if view.files:
            add("files", f"{len(view.files):,} changed")
        return rows
    if view.context:
        rows.append(SheetRow("context", block(view.context)))
    if view.updated:
        add("updated", (view.updated, DIM))
    if view.files:
        rows += _files(view.files)
    if view.decisions:
        rows += [_GAP, SheetRow(f"Decisions  {len(view.decisions):,}")]
        rows += _more(len(view.decisions), "earlier")
        for decision, why in view.decisions[-LISTED_MOST:]:
            reason: list[Part] = [("  because ", DIM), why] if why else []
            rows.append(SheetRow("", line("  ", decision, *reason)))
    if view.errors:
        rows += [_GAP, SheetRow(f"Errors  {len(view.errors):,}")]
        rows += _more(len(view.errors), "earlier")
        for error in view.errors[-LISTED_MOST:]:
            where: list[Part] = [(f"  {error.place}", STRONG)] if error.place else []
            head = line("  ", (error.kind or "error", BAD), *where)
            rows.append(SheetRow("", head))
            if error.message:
                rows.append(SheetRow("", _indented(block(error.message))))
    return rows


def _tests(view: WipView) -> list[SheetRow]:
    results = view.tests
    if results is None:
        return []
    if not results.ran:
        return [SheetRow("tests", line(("did not run", WARN)))]
    counts = tests(results) or [("ran", DIM)]
    rows = [SheetRow("tests", line(*counts))]
    if results.first_failing:
        rows.append(SheetRow("failing", line((results.first_failing, BAD))))
    return rows


def _indented(content: Content, space: str = "    ") -> Content:
    return Content("\n").join(
        Content.assemble(space, part) for part in content.split("\n", allow_blank=True)
    )


def handoff_rows(view: HandoffView, *, brief: bool = False) -> list[SheetRow]:
    """Return the rows of a task's handoff; ``brief`` leaves out files and details."""
    if view.empty:
        return [SheetRow("", line(("No handoff yet. It appears when the task ends.", DIM)))]
    state: list[Part] = [("   ", ""), (view.state, DIM)] if view.state else []
    rows = [
        SheetRow("status", line((view.status, tone(view.tone)), *state)),
        SheetRow("summary", block(view.summary)),
    ]
    if brief:
        if view.files:
            rows.append(SheetRow("files", line(f"{len(view.files):,} changed")))
        return rows
    if view.files:
        rows += _files(view.files)
    if view.details is not None:
        shown, left = view.details[:READ_MOST], len(view.details) - READ_MOST
        rows += [_GAP, SheetRow("Details"), SheetRow("", _indented(block(shown), "  "))]
        if left > 0:
            note = f"! {left:,} more characters: `cockpit handoff {view.task} --details`"
            rows.append(SheetRow("", line((note, WARN))))
    return rows


def _files(paths: Sequence[str]) -> list[SheetRow]:
    rows = [_GAP, SheetRow(f"Files  {len(paths):,}")]
    rows += [SheetRow("", line("  ", path)) for path in paths[:LISTED_MOST]]
    return rows + _more(len(paths), "more")


def _more(count: int, word: str) -> list[SheetRow]:
    left = count - LISTED_MOST
    return [SheetRow("", line((f"  … {left:,} {word}", DIM)))] if left > 0 else []
