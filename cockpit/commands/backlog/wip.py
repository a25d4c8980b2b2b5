"""``cockpit wip``: show and change the work in progress of a task."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, TOKEN, examples
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.open_project import WrongUse, find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.errors import NotFound
from cockpit.store.backlog import tasks, wip

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from cockpit.store.backlog.tasks import Task
    from cockpit.store.db.transaction import Tx

_SHOWN = 10
_LISTS = ("files_modified", "decisions", "errors")
_OBJECTS = ("test_results",)
_RESULTS = ("runner", "ran", "outcome", "counted", "passed", "failed", "skipped", "failing_test")


@click.group(
    "wip",
    short_help="Show and change work in progress of tasks.",
    epilog=examples("cockpit wip show", "cockpit wip set T-42 phase=testing"),
)
def work_in_progress() -> None:
    """Show and change the work in progress of tasks.

    Agents, hooks and you record it: phase, decisions, errors, changed files, test results, next step.
    """


@work_in_progress.command(
    "show", epilog=examples("cockpit wip show", "cockpit wip show T-42 --json")
)
@click.argument("task", default="")
@AS_JSON
def show_wip(task: str, as_json: bool) -> None:
    """Show the work in progress of a task.

    Without TASK it shows the task in progress, if there is only one.
    """
    chosen = read_store(lambda connection: _choose_task(connection, task))
    if as_json:
        show_json(
            {
                "task_id": chosen.task_id,
                "status": chosen.status,
                "updated_at": chosen.wip_updated_at,
                "wip": chosen.wip,
            }
        )
        return
    if not chosen.wip and chosen.status not in ("done", "archived"):
        say(f"No work in progress recorded for {chosen.task_id}: {chosen.title}")
        return
    from cockpit.learn.resume_text import resume_line

    show(f"{chosen.task_id} · {chosen.status.replace('_', ' ')} · {chosen.title}")
    show(resume_line(chosen))
    if chosen.wip:
        show("")
        show("\n".join(_lines(chosen.wip)))


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
@TOKEN
def set_wip(task: str, changes: tuple[str, ...], source: str | None, token: str) -> None:
    """Merge changes into the work in progress.

    It prints the merged result as JSON. VALUE is JSON if it parses as JSON, else text. decision=, error=
    and file= add to a list.
    """
    patch = _read(source) if source is not None else {}
    for change in changes:
        _add_change(patch, change)
    if not patch:
        raise WrongUse(
            "Nothing to merge. Pass KEY=VALUE, for example phase=testing, or --json FILE."
        )

    def step(tx: Tx) -> dict[str, Any]:
        from cockpit.access.principals import journal_actor
        from cockpit.access.token_scopes import WORK_WRITE

        caller = find_caller(tx, token)
        caller.require(WORK_WRITE, "change work in progress")
        return wip.update(tx, task, patch, by=journal_actor(caller))

    read_store(lambda connection: tasks.load(connection, task))
    with open_store(find_project()) as store:
        show_json(store.write_now(step))


def _choose_task(connection: sqlite3.Connection, named: str) -> Task:
    if named:
        return tasks.load(connection, named)
    running = tasks.select(connection, status="in_progress", limit=2)
    if len(running) == 1:
        return running[0]
    if running:
        raise WrongUse(
            "Several tasks are in progress. Name one, for example: cockpit wip show T-42."
        )
    raise NotFound("No task is in progress. Start one with `cockpit tasks start T-42`.")


def _read(source: str) -> dict[str, Any]:
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
