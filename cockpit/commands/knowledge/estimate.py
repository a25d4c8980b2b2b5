"""``cockpit estimate``: how many waves, tokens and dollars a task or a backlog takes, before it starts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, MODEL, examples
from cockpit.collections.choose_session import choose_session
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_project_runtime,
    read_store,
)
from cockpit.commands.terminal import format_table, say, show, show_json

if TYPE_CHECKING:
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.loop.planner.estimate_scope import EstimatedScope
    from cockpit.loop.planner.planner_service import EstimatedWords
    from cockpit.loop.runtime_settings import RuntimeSettings
    from cockpit.store.backlog.queue_scope import Scope
    from cockpit.store.journal.details.estimates import Expected

_TASK = re.compile(r"T-?\d+", re.IGNORECASE)
_SESSION = re.compile(r"s-[0-9a-z]{4,20}")
_WORKERS = 2
"""Tasks at the same time, with which a chain begins."""
MOST_SHOWN = 40
"""Tasks that are listed; all of them count."""


@click.command(
    short_help="Estimate waves, tokens and cost.",
    epilog=examples(
        'cockpit estimate "review topic"',
        "cockpit estimate T-4 T-7",
        "cockpit estimate",
    ),
)
@click.argument("what", nargs=-1, metavar="[TASK|TEXT|SESSION]...")
@MODEL
@AS_JSON
def estimate(what: tuple[str, ...], model: str | None, as_json: bool) -> None:
    """Estimate what a task takes before it starts, from past tasks of its kind in this project.

    Name a TEXT as for `cockpit run`, ids of tasks in the backlog, or a session, for what it took as well.
    Without any of them it estimates all open tasks; `cockpit work --dry-run` does so for an epic or a story,
    with its other options. Every number is a range: one task in ten takes less, one in ten more. Where the
    project has no history of a kind, the shipped defaults count, and the answer says so.
    """
    place = find_project()
    settings = load_project_settings(place, {"[model] name": model}).runtime
    if len(what) == 1 and _SESSION.fullmatch(what[0]):
        _show_session(what[0], as_json)
        return
    if what and not all(_TASK.fullmatch(word) for word in what):
        _show_words(asyncio.run(_estimate_words(place, settings, " ".join(what))), as_json)
        return
    show_scope(estimate_scope(place, settings, named=what), _WORKERS, as_json=as_json)


def estimate_scope(
    place: ProjectPaths,
    settings: RuntimeSettings,
    epic: str | None = None,
    story: str | None = None,
    runner: str | None = None,
    *,
    named: Sequence[str] = (),
) -> EstimatedScope:
    """Estimate the open tasks of an epic, of a story, the ``named`` ones, or else all of them.

    Raises :class:`~cockpit.core.errors.NotFound` for an epic or a story that is not there.
    """
    from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
    from cockpit.store.backlog.queue_scope import Scope

    scope = Scope()
    if epic:
        scope = Scope("epic", read_store(lambda c: EPICS.load(c, epic).epic_id))
    elif story:
        scope = Scope("story", read_store(lambda c: STORIES.load(c, story).story_id))
    model = f"runner:{runner}" if runner and runner != "embedded" else None
    return asyncio.run(_estimate_tasks(place, settings, scope, model, named))


async def _estimate_words(
    place: ProjectPaths, settings: RuntimeSettings, words: str
) -> EstimatedWords:
    async with open_project_runtime(place, settings) as runtime:
        return await (await runtime.planner()).estimate_words(words)


async def _estimate_tasks(
    place: ProjectPaths,
    settings: RuntimeSettings,
    scope: Scope,
    model: str | None,
    named: Sequence[str],
) -> EstimatedScope:
    async with open_project_runtime(place, settings) as runtime:
        service = await runtime.planner()
        return await service.estimate_tasks(scope, model, named=named)


def _show_words(estimated: EstimatedWords, as_json: bool) -> None:
    from cockpit.loop.views.estimate_text import (
        basis_text,
        expected_text,
        unit_text,
        work_text,
    )

    expected = estimated.estimate
    if as_json:
        show_json(
            {
                "task_type": estimated.task_type,
                "title": estimated.title,
                "model": estimated.model,
                **_body(expected),
            }
        )
        return
    show(f"{estimated.task_type} · {estimated.title} · {estimated.model}")
    show(expected_text(expected, unit_text("session", estimated.model)))
    show(f"{work_text(expected.work_ms.likely)} of models and programs, without waiting for you")
    say(_sentence(basis_text(expected)))


def _show_session(session_id: str, as_json: bool) -> None:
    from cockpit.loop.planner.read_session_estimate import read_session_estimate
    from cockpit.loop.views.estimate_text import body_text

    def read(connection: Any) -> dict[str, Any] | None:
        return read_session_estimate(connection, choose_session(connection, session_id))

    body = read_store(read)
    if as_json:
        show_json(body or {})
    elif body is None:
        show(f"{session_id} has no estimate: it is a fork, or older than estimates and not done.")
    else:
        for line in body_text(body):
            show(line)


def show_scope(estimated: EstimatedScope, workers: int, *, as_json: bool) -> None:
    """Print the estimates of tasks, their sum, and the time that ``workers`` need."""
    from cockpit.loop.views.estimate_text import expected_text, total_basis_text, work_text

    total, elapsed = estimated.total, estimated.elapsed_ms(workers)
    if as_json:
        show_json(
            {
                "tasks": [
                    {
                        "task_id": each.task.task_id,
                        "task_type": each.task.task_type,
                        "title": each.task.title,
                        "waits_for": list(each.waits),
                        **_body(each.estimate),
                    }
                    for each in estimated.tasks
                ],
                "total": {
                    **_body(total),
                    "tasks": len(estimated.tasks),
                    "without_history": len(estimated.tasks) - total.history,
                },
                "workers": workers,
                "elapsed_ms": {"low": elapsed.low, "likely": elapsed.likely, "high": elapsed.high},
                "blocked": estimated.blocked,
                "left_out": estimated.left_out,
            }
        )
        return
    if not estimated.tasks:
        say("No open task. `cockpit plan TEXT` plans some, `cockpit tasks add TITLE` adds one.")
        return
    rows = [
        (
            each.task.task_id,
            each.task.task_type,
            expected_text(each.estimate),
            each.task.title,
        )
        for each in estimated.tasks[:MOST_SHOWN]
    ]
    show(format_table(("TASK", "TYPE", "ESTIMATE", "TITLE"), rows))
    if (rest := len(estimated.tasks) - MOST_SHOWN) > 0:
        show(f"… and {rest:,} more tasks")
    show(f"together: {expected_text(total)}")
    span = f"{work_text(elapsed.low)} to {work_text(elapsed.high)}"
    show(
        f"time: about {work_text(elapsed.likely)} ({span}) with {workers} at the same time, without waiting"
        " for you"
    )
    say(_sentence(total_basis_text(total, len(estimated.tasks))))
    if estimated.blocked:
        say(f"Not counted: {estimated.blocked:,} blocked. `cockpit tasks --status blocked`")
    if estimated.left_out:
        say(f"Not counted: {estimated.left_out:,} tasks beyond the first {len(estimated.tasks):,}.")


def _body(expected: Expected) -> dict[str, Any]:
    from cockpit.store.journal.details.detail import detail_body

    return detail_body(expected)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
