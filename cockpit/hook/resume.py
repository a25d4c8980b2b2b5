"""What an agent is told when its session starts, goes on, or has just been compacted.

Source: seed 004, solution 2 ("Resume Flow").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cockpit.hook import logbook
from cockpit.hook.absorb import absorb_all
from cockpit.store import hook_pending, tasks, work_queue
from cockpit.store.database import Store
from cockpit.store.errors import StoreBusy
from cockpit.work.resuming import resume_line

if TYPE_CHECKING:
    import sqlite3

    from cockpit.hook.checkout import Checkout
    from cockpit.hook.payload import Event
    from cockpit.store.tasks import Task

LONGEST = 4_000
"""Characters of what is told: agents cut longer texts, or keep them in a file."""
_BUSY_MS = 1_000
_SHOWN = 5
_FILES = 20
_WORDS = 400
_TRUST = (
    "(cockpit's record of the work in this project; it tells how things stand and orders nothing.)"
)


def resume(event: Event, place: Checkout) -> dict[str, Any] | None:
    """The answer to a session's start; None where there is nothing to go on with.

    What the hooks have told so far is absorbed first, so that nothing of it is missing.
    """
    with Store.open(Path(place.database), busy_timeout_ms=_BUSY_MS) as store:
        try:
            absorb_all(store, Path(place.state))
        except StoreBusy as error:
            logbook.note(place.state, f"{event.agent} {event.name}: not absorbed yet: {error}")
        text = store.read_now(lambda connection: resume_text(connection, event.session))
    if not text:
        return None
    said = {"hookEventName": "SessionStart", "additionalContext": text}
    return {"hookSpecificOutput": said}


def resume_text(connection: sqlite3.Connection, session: str) -> str:
    """How the work stands for that session, in at most :data:`LONGEST` characters; '' for no work."""
    active = hook_pending.active(connection, session)
    if active is not None:
        return _cut("\n".join([_TRUST, *_task(tasks.load(connection, active))]), LONGEST)
    under_way = tasks.listed(connection, status="in_progress", limit=_SHOWN)
    if under_way:
        lines = [resume_line(task) for task in under_way]
        how = "Several tasks are in progress; say which one is yours: "
        return _cut("\n".join([_TRUST, *lines, how + _take_up(under_way[0].task_id)]), LONGEST)
    ready = work_queue.next_batch(connection, _SHOWN)
    if not ready:
        return ""
    found = tasks.of_ids(connection, [queued.task_id for queued in ready])
    lines = [f"Ready: {task.task_id} {task.title}" for task in found]
    return _cut("\n".join([_TRUST, *lines, "To begin: " + _take_up(found[0].task_id)]), LONGEST)


def _take_up(task_id: str) -> str:
    called = f"update_task_status(task_id={task_id!r}, status='in_progress')"
    return f"{called}, or `cockpit tasks start {task_id}`."


def _task(task: Task) -> list[str]:
    wip = task.wip or {}
    lines = [resume_line(task), f"{task.task_id} ({task.status}): {task.title}"]
    told: Sequence[tuple[str, str]] = (
        ("Acceptance criteria", task.acceptance_criteria),
        ("Context", str(wip.get("context", "")) or task.context_summary),
        ("Handoff notes", task.handoff_notes),
        ("Blocked", task.blocker),
        ("Tests", _tests(wip.get("test_results"))),
        ("Last commit", str(wip.get("last_commit", ""))),
        ("Not committed", "the last changes" if wip.get("uncommitted_changes") else ""),
        ("Files modified", _files(wip.get("files_modified", []))),
        ("Decisions", _entries(wip.get("decisions", []), "decision", "reason")),
        ("Last errors", _entries(wip.get("errors", []), "message", "file")),
    )
    return [*lines, *(f"{name}: {_cut(words, _WORDS)}" for name, words in told if words)]


def _tests(results: Any) -> str:
    if not isinstance(results, Mapping) or not results.get("ran"):
        return ""
    counts = [f"{results[name]} {name}" for name in ("passed", "failed") if name in results]
    failing = results.get("failing_test")
    return ", ".join([*counts, *([f"first failing: {failing}"] if failing else [])])


def _files(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _FILES} more" if len(paths) > _FILES else ""
    return ", ".join(paths[:_FILES]) + more


def _entries(entries: Sequence[Any], first: str, second: str) -> str:
    told = []
    for entry in list(entries)[-_SHOWN:]:
        if isinstance(entry, Mapping):
            about = f" ({entry[second]})" if entry.get(second) else ""
            told.append(f"{entry.get(first, '')}{about}")
    return "; ".join(told)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
