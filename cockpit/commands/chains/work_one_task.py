"""``cockpit work --task``: doing one task of the backlog by roles, in a working tree of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import (
    WrongUse,
    load_project_settings,
    open_store,
    require_repository,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import tasks
from cockpit.store.chains import task_leases, worktrees

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.store.db.database import Store
    from cockpit.tasks.task_context import TaskOutcome

BRANCH = "cockpit/work"
"""What tasks are merged into that are done one by one."""


def work_on(
    task_id: str, approve: str | None, model: str | None, runner: str | None, as_json: bool
) -> Exit:
    """Do that task in a working tree and on a branch of its own, and merge it into :data:`BRANCH`.

    Ctrl+C stops after the step that is under way, a second one at once; either way the same command
    goes on where it stood.
    """
    from cockpit.tasks.pause import SetAside

    place = require_repository()
    settings = load_project_settings(place, {"[approval] policy": approve, "[model] name": model})
    know(settings, place, runner)
    with open_store(place) as store:
        ended = asyncio.run(_do(store, place, settings, task_id, runner))
        where = store.read_now(lambda found: worktrees.find(found, ended.task_id))
    if as_json:
        show_json(
            {
                "task_id": ended.task_id,
                "status": ended.status,
                "summary": ended.summary,
                "reason": ended.reason,
                "merged_commit": ended.merged_commit,
                "branch": BRANCH,
                "tokens": ended.tokens,
                "cost_usd": ended.cost_usd,
            }
        )
    else:
        show(f"{ended.task_id} is {ended.status}. {ended.summary}")
        if ended.merged_commit:
            show(f"Take it with: git merge {BRANCH}")
        elif where is not None and ended.status == "blocked":
            show(f"Its work is kept in {where.path}, on {where.branch}.")
    codes = {"done": Exit.DONE, "blocked": Exit.REFUSED, "interrupted": Exit.INTERRUPTED}
    if ended.reason == SetAside.code:
        return Exit.REFUSED
    stopped = ended.status == "interrupted" and ended.reason != "drained"
    return Exit.FAILED if stopped else codes[ended.status]


def know(
    settings: Settings, place: ProjectPaths, runner: str | None, *, begins: bool = True
) -> None:
    """Raises ``WrongUse`` for what every task would come to: a runner, a file of a role or a command
    for tests that cannot be used, or no model (``begins``: what is gone on with has one already)."""
    know_runner(settings, runner)
    _know_roles(settings, place)
    _know_tests(settings)
    if begins:
        _know_model(settings, runner)


def know_runner(settings: Settings, name: str | None) -> None:
    """Raises ``WrongUse`` for a runner that nobody configured, or whose program is not here."""
    import shutil

    from cockpit.agents.agent_command import RunnerError
    from cockpit.tasks.external_agent_role import find_runner

    try:
        runner = find_runner(settings.runtime, name)
    except RunnerError as error:
        raise WrongUse(str(error)) from error
    if runner is not None and shutil.which(runner.command[0]) is None:
        raise WrongUse(
            f"The program of runner {runner.name}, {runner.command[0]}, is not installed or not on the"
            f" PATH; install it, or correct [runner.{runner.name}] command in your configuration."
        )


def _know_roles(settings: Settings, place: ProjectPaths) -> None:
    """Raises ``WrongUse`` for a file of a role that cannot be used: every task would come to it."""
    from cockpit.loop.intake.roles import RoleInvalid, load_roles

    try:
        load_roles(place.home, settings.runtime.user_dir)
    except RoleInvalid as error:
        raise WrongUse(str(error)) from error


def _know_tests(settings: Settings) -> None:
    """Raises ``WrongUse`` for a ``[work] test_command`` that is none: every task would come to it."""
    from cockpit.act.command_line import CommandRefused, split_command

    if settings.work.test_command is None:
        return
    try:
        split_command(settings.work.test_command)
    except CommandRefused as error:
        raise WrongUse(
            f"[work] test_command cannot be run: {error} Put what needs a shell into a script."
        ) from error


def _know_model(settings: Settings, runner: str | None) -> None:
    """Raises ``WrongUse`` where only the offline rules would do the roles' work: they cannot."""
    from cockpit.decide.choose_model import OFFLINE, model_named
    from cockpit.tasks.external_agent_role import find_runner
    from cockpit.tasks.model_outage import NOT_OFFLINE

    if find_runner(settings.runtime, runner) is not None:
        return
    environment = {**os.environ, **settings.runtime.environment}
    if model_named(None, settings.runtime.model, environment) == OFFLINE:
        raise WrongUse(NOT_OFFLINE)


async def say_unseen(place: ProjectPaths, whom: str) -> None:
    """Say which changes of the checkout ``whom`` (as in "the task does") not see."""
    from cockpit.tasks.git import uncommitted_files

    unseen = await uncommitted_files(place.root)
    if unseen:
        count = "1 file" if len(unseen) == 1 else f"{len(unseen)} files"
        say(
            f"{count} in your checkout {'is' if len(unseen) == 1 else 'are'} not committed; {whom} not "
            "see these changes, and they are not touched."
        )


async def _do(
    store: Store, place: ProjectPaths, settings: Settings, task_id: str, runner: str | None
) -> TaskOutcome:
    from cockpit.tasks.run_task import run_task
    from cockpit.tasks.task_context import TaskContext

    await say_unseen(place, "the task does")
    context = TaskContext(
        store=store,
        place=place,
        settings=settings.runtime,
        chain_id="",
        ordinal=0,
        chain_branch=BRANCH,
        approve=settings.runtime.policy,
        model=settings.runtime.model.model,
        runner=runner,
        work=settings.work,
    )
    loop = asyncio.get_running_loop()
    task_id = store.read_now(lambda found: tasks.load(found, task_id)).task_id
    token = await store.write(lambda tx: task_leases.acquire(tx, task_id, "cockpit work"))
    running = asyncio.ensure_future(run_task(context, task_id))
    keeping = asyncio.create_task(_keep(store, task_id, token))

    def stop() -> None:
        if context.stop.is_set():
            running.cancel()
        context.stop.set()
        say("It stops after this step; Ctrl+C again stops it now.")

    loop.add_signal_handler(signal.SIGINT, stop)  # the command line turns the others into it
    try:
        return await running
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        keeping.cancel()
        await store.write(lambda tx: task_leases.release(tx, task_id, token))


async def _keep(store: Store, task_id: str, token: str) -> None:
    """Keep the task for this process, so that no chain takes it up meanwhile."""
    while True:
        await store.clock.sleep(task_leases.LEASE_S / 3)
        await store.write(lambda tx: task_leases.renew(tx, task_id, token))
