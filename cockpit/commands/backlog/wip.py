"""``cockpit wip``: show and change the work in progress of a task."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import examples
from cockpit.commands.backlog.call_work_tools import authorize_writer, write_store
from cockpit.commands.collection import Collection
from cockpit.commands.open_project import WrongUse, read_store
from cockpit.commands.terminal import say, show_json
from cockpit.store.backlog import tasks, wip
from cockpit.store.backlog.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cockpit.store.db.transaction import Tx

_SHOWN = 10
_LISTS = ("files_modified", "decisions", "errors")
_OBJECTS = ("test_results",)
_RESULTS = ("runner", "ran", "outcome", "counted", "passed", "failed", "skipped", "failing_test")


def _find(name: str) -> Task:
    return read_store(lambda connection: tasks.load(connection, name))


def _read() -> Sequence[Task]:
    return read_store(lambda connection: tasks.select(connection, status="in_progress"), empty=[])


def _record(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "status": task.status,
        "updated_at": task.wip_updated_at,
        "wip": task.wip,
    }


def _describe(task: Task) -> str:
    if not task.wip and task.status not in ("done", "archived"):
        say(f"No work in progress recorded for {task.task_id}: {task.title}")
        return ""
    from cockpit.learn.resume_text import resume_line

    heading = f"{task.task_id} · {task.status.replace('_', ' ')} · {task.title}"
    return "\n".join([heading, resume_line(task), *(["", *_lines(task.wip)] if task.wip else [])])


work_in_progress = Collection(
    "wip",
    short_help="Show and change work in progress of tasks.",
    help="""Show and change the work in progress of tasks; without TASK it lists the tasks in progress.

    Agents, hooks and you record it: phase, decisions, errors, changed files, test results, next step.
    """,
    examples=("cockpit wip", "cockpit wip T-42", "cockpit wip set T-42 phase=testing"),
    row="TASK",
    columns={
        "TASK": lambda task: task.task_id,
        "PHASE": lambda task: str((task.wip or {}).get("phase") or "–"),
        "NEXT STEP": lambda task: str((task.wip or {}).get("next_step") or "–"),
        "TITLE": lambda task: task.title,
    },
    read=_read,
    find=_find,
    describe=_describe,
    body=_record,
    none="No task is in progress. Start one with `cockpit tasks move T-42 in_progress`.",
)


@work_in_progress.command(
    "set",
    epilog=examples(
        'cockpit wip set T-42 phase=testing decision="JWT: stateless" next_step="fix the test"',
        "cockpit wip set T-42 --json wip.json",
    ),
)
@click.argument("task")
@click.argument("changes", nargs=-1, metavar="KEY=VALUE…")
@click.option("--json", "source", metavar="FILE|-", help="Merge the JSON object in this file.")
def set_wip(task: str, changes: tuple[str, ...], source: str | None) -> None:
    """Merge changes into the work in progress.

    It prints the merged result as JSON. VALUE is JSON if it parses as JSON, else text. decision=, error=
    and file= add to a list.
    """
    patch = _read_source(source) if source is not None else {}
    for change in changes:
        _add_change(patch, change)
    if not patch:
        raise WrongUse(
            "Nothing to merge. Pass KEY=VALUE, for example phase=testing, or --json FILE."
        )

    def step(tx: Tx) -> dict[str, Any]:
        by = authorize_writer(tx, "change work in progress")
        return wip.update(tx, task, patch, by=by)

    _find(task)
    show_json(write_store(step))


def _read_source(source: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{source} cannot be read: {error}") from error
    try:
        read = json.loads(text)
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
