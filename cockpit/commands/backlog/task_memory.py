"""``cockpit tasks wip`` and ``handoff``: what is known of a task in progress, and what a task left behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.work.handoffs import COLLECTION
from cockpit.commands.backlog.call_work_tools import authorize_writer, read_source, write_store
from cockpit.commands.collection import limit_option
from cockpit.commands.collection_groups import read_view
from cockpit.commands.open_project import WrongUse, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.store.backlog import handoffs, tasks, wip
from cockpit.store.backlog.handoffs import Handoff
from cockpit.store.backlog.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.store.db.transaction import Tx

_SHOWN = 10
_LISTS = ("files_modified", "decisions", "errors")
_OBJECTS = ("test_results",)
_RESULTS = ("runner", "ran", "outcome", "counted", "passed", "failed", "skipped", "failing_test")


@click.command(
    "wip",
    epilog=examples(
        "cockpit tasks wip",
        "cockpit tasks wip T-42",
        'cockpit tasks wip T-42 phase=testing decision="JWT: stateless" next_step="fix the test"',
        "cockpit tasks wip T-42 --from wip.json",
    ),
)
@click.argument("task", required=False)
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--from", "source", metavar="FILE|-", help="Merge the JSON object in this file.")
@AS_JSON
def work_in_progress(
    task: str | None, changes: tuple[str, ...], source: str | None, as_json: bool
) -> None:
    """Show or change work in progress.

    It is that of a task: phase, decisions, errors, changed files, test results, next step. Agents, hooks and
    you record it. Without TASK it lists the tasks in progress. KEY=VALUE is merged into what is recorded:
    VALUE is JSON if it parses as JSON, else text; decision=, error= and file= add to a list.
    """
    if task is None:
        _list_in_progress(as_json)
        return
    patch = _read_object(source) if source is not None else {}
    for change in changes:
        _add_change(patch, change)
    shown: Task = read_store(lambda connection: tasks.load(connection, task))
    if patch:

        def step(tx: Tx) -> Task:
            wip.update(tx, task, patch, by=authorize_writer(tx, "change work in progress"))
            return tasks.load(tx.connection, task)

        shown = write_store(step)
    if as_json:
        show_json(_record(shown))
    elif not shown.wip and shown.status not in ("done", "archived"):
        say(f"No work in progress recorded for {shown.task_id}: {shown.title}")
    else:
        from cockpit.learn.resume_text import resume_line

        show(f"{shown.task_id} · {shown.status.replace('_', ' ')} · {shown.title}")
        show("\n".join([resume_line(shown), *(["", *_lines(shown.wip)] if shown.wip else [])]))


def _list_in_progress(as_json: bool) -> None:
    rows: list[Task] = read_store(
        lambda connection: tasks.select(connection, status="in_progress"), empty=[]
    )
    cells = [
        (
            row.task_id,
            str((row.wip or {}).get("phase") or "–"),
            str((row.wip or {}).get("next_step") or "–"),
            row.title,
        )
        for row in rows
    ]
    nothing = "No task is in progress. Start one with `cockpit tasks move T-42 in_progress`."
    headings = ("TASK", "PHASE", "NEXT STEP", "TITLE")
    show_list(as_json, [_record(row) for row in rows], headings, cells, nothing)


def _record(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "status": task.status,
        "updated_at": task.wip_updated_at,
        "wip": task.wip,
    }


def _read_object(source: str) -> dict[str, Any]:
    try:
        read = json.loads(read_source(source))
    except (ValueError, RecursionError) as error:
        raise WrongUse(
            f"{'Standard input' if source == '-' else source} is not JSON: {error}."
        ) from error
    if not isinstance(read, dict):
        raise WrongUse('Work in progress is a JSON object, such as {"phase": "testing"}.')
    return read


def _add_change(patch: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals:
        raise WrongUse(f"{change!r} is not KEY=VALUE. The keys are {', '.join(wip.KEYS)}.")
    value = _value(text)
    pluralize = {"decision": "decisions", "error": "errors", "file": "files_modified"}.get(key, key)
    holder, dot, member = pluralize.partition(".")
    if dot and holder in _OBJECTS:
        patch.setdefault(holder, {})[member] = value
    elif pluralize != key:
        patch.setdefault(pluralize, []).append(text if not isinstance(value, dict) else value)
    elif key in _LISTS:
        patch.setdefault(key, []).extend(value if isinstance(value, list) else [text])
    else:
        patch[key] = value if isinstance(value, bool | dict) else text


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _lines(values: Mapping[str, Any]) -> list[str]:
    lines = []
    for key in wip.KEYS:
        value = values.get(key)
        if value is None or value == []:
            continue
        if isinstance(value, list):
            left = len(value) - _SHOWN
            lines.append(f"{key} ({len(value)})")
            lines += [f"  {_render(item)}" for item in value[-_SHOWN:]]
            lines += [
                f"  and {left} older" if key != "files_modified" else f"  and {left} more"
            ] * (left > 0)
        else:
            lines.append(f"{key}: {_render(value)}")
    return lines


def _render(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, dict):
        return str(value)
    if "decision" in value:
        return f"{value['decision']}" + (f": {value['reason']}" if value.get("reason") else "")
    if "message" in value:
        where = f"{value['file']}: " if value.get("file") else ""
        return f"{value.get('type', 'error')}: {where}{value['message']}"
    names = [*(name for name in _RESULTS if name in value), *sorted(set(value) - set(_RESULTS))]
    return ", ".join(f"{name} {_render(value[name])}" for name in names if value[name] != "")


@click.command(
    "handoff",
    epilog=examples(
        "cockpit tasks handoff --limit 5",
        "cockpit tasks handoff T-42",
        "cockpit tasks handoff T-42 PASS 'Tokens are refreshed. Two tests added.' --file src/auth.py",
    ),
)
@click.argument("task", required=False)
@click.argument("status", metavar=f"[{'|'.join(handoffs.STATUSES)}]", required=False)
@click.argument("summary", required=False)
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="Name a changed file. Repeat for more."
)
@click.option(
    "--details",
    "source",
    metavar="FILE|-",
    help="Read the full details from this file, or from standard input.",
)
@limit_option(20)
@AS_JSON
def handoff(
    task: str | None,
    status: str | None,
    summary: str | None,
    files: tuple[str, ...],
    source: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List, show or set handoffs.

    A handoff is the status, the summary and the details of a finished task. Without TASK they are listed, the
    newest first. With a status and a SUMMARY of two or three sentences one is set. When a story is
    complete, its details are deleted; when its epic is complete, the rest moves to the journal. Handoffs with
    FAIL or BLOCKED stay complete.
    """
    if task is None:
        rows = read_view(COLLECTION, lambda view: COLLECTION.list_rows(view, limit=limit)).rows
        cells = [[cell(row) for cell in COLLECTION.cells_of(rows).values()] for row in rows]
        bodies = [COLLECTION.body(row) for row in rows]
        show_list(as_json, bodies, list(COLLECTION.cells_of(rows)), cells, str(COLLECTION.none))
    elif status is not None:
        if summary is None:
            raise WrongUse("A handoff needs a SUMMARY: two or three sentences.")
        _set_handoff(task, status, summary, files, source, as_json)
    else:
        stored = read_view(COLLECTION, lambda view: COLLECTION.find_row(view, task))
        if as_json:
            show_json(COLLECTION.show_row(stored))
        else:
            show(_describe(stored))


def _describe(stored: Handoff) -> str:
    lines = [f"{stored.task_id} · {stored.status} · {stored.created_at}", stored.summary]
    lines += [f"  {path}" for path in stored.files_changed]
    if stored.archived_at:
        lines.append(f"Archived when its epic was complete, {stored.archived_at}.")
    elif stored.compacted_at:
        lines.append(
            f"The details were deleted when its story was complete, {stored.compacted_at}."
        )
    elif stored.full_details:
        lines += ["", stored.full_details]
    return "\n".join(lines)


def _set_handoff(
    task: str, status: str, summary: str, files: tuple[str, ...], source: str | None, as_json: bool
) -> None:
    details = None if source is None else read_source(source, errors="replace")

    def step(tx: Tx) -> Handoff:
        by = authorize_writer(tx, "hand a task over")
        return handoffs.set_handoff(tx, task, status.upper(), summary, files, details, by=by)

    read_store(lambda connection: tasks.load(connection, task))
    handed: Handoff = write_store(step)
    if as_json:
        show_json(handed.brief())
    else:
        show(f"{handed.task_id} · {handed.status}")


COMMANDS: tuple[click.Command, ...] = (work_in_progress, handoff)
"""The commands over the memory of tasks."""
