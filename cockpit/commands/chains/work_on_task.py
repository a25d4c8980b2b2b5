"""``cockpit work --task``: do one task of the backlog with roles, in a worktree of its own."""

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
from cockpit.commands.unconfined import require_reading_sandbox, settle_unconfined
from cockpit.core.processes import stop_on_interrupt
from cockpit.core.project.own_programs import find_program
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.store.backlog import tasks
from cockpit.store.chains import task_leases, worktrees

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.store.db.database import Store
    from cockpit.tasks.task_context import TaskOutcome


def work_on_task(
    task_id: str,
    approve: str | None,
    model: str | None,
    runner: str | None,
    as_json: bool,
    *,
    no_sandbox: bool = False,
) -> Exit:
    """Do the task in a worktree and on a branch of its own, and merge it into ``cockpit/work``.

    Returns the exit code. Ctrl+C stops after the step in progress, a second one at once; the same
    command resumes the task either way. Specified in ``docs/reference/roles.md``.
    """
    from cockpit.tasks.finish_task import SetAside
    from cockpit.tasks.outage import is_passing
    from cockpit.tasks.worktree import branch_prefix

    place = require_repository()
    settings = load_project_settings(place, {"[approval] policy": approve, "[model] name": model})
    if not no_sandbox:
        asyncio.run(require_reading_sandbox(settings, settings.runtime.policy))
    check_prerequisites(settings, place, runner)
    branch = f"{asyncio.run(branch_prefix(place))}work"
    with open_store(place) as store:
        outcome = asyncio.run(_do(store, place, settings, task_id, runner, branch))
        worktree = store.read_now(lambda connection: worktrees.find(connection, outcome.task_id))
    if as_json:
        show_json(
            {
                "task_id": outcome.task_id,
                "status": outcome.status,
                "summary": outcome.summary,
                "reason": outcome.reason,
                "merged_commit": outcome.merged_commit,
                "branch": branch,
                "tokens": outcome.tokens,
                "cost_usd": outcome.cost_usd,
            }
        )
    else:
        show(f"{outcome.task_id} is {outcome.status}. {outcome.summary}")
        if outcome.merged_commit:
            show(f"Merge it with: git merge {branch}")
        elif worktree is not None and outcome.status == "blocked":
            show(f"Its changes are in {worktree.path}, on branch {worktree.branch}.")
    codes = {"done": Exit.DONE, "blocked": Exit.REFUSED, "interrupted": Exit.INTERRUPTED}
    if outcome.reason == SetAside.code:
        return Exit.REFUSED
    if outcome.status == "interrupted" and is_passing(outcome.reason):
        return Exit.WAITING
    stopped = outcome.status == "interrupted" and outcome.reason != "drained"
    return Exit.FAILED if stopped else codes[outcome.status]


def check_prerequisites(
    settings: Settings,
    place: ProjectPaths,
    runner: str | None,
    *,
    needs_model: bool = True,
    chain_cost: float | None = None,
) -> None:
    """Raise ``WrongUse`` for a problem that every task would have: with the runner, with the test command
    or, if ``needs_model``, with the model. A resumed chain has its model. Raise ``QueueUnreachable`` where
    other machines do the tasks, and what reaches them is not installed.

    Prints the files of roles and task types that are invalid; the work goes on without them."""
    check_runner(settings, runner, chain_cost)
    if settings.scale.backend == "nats":
        from cockpit.chains.remote.jetstream_queue import require_nats

        require_nats()
    _say_unused_files(settings, place)
    _check_commands(settings)
    if needs_model:
        _check_model(settings, runner)


def check_runner(settings: Settings, name: str | None, chain_cost: float | None = None) -> None:
    """Raise ``WrongUse`` for a runner that is not configured, whose program is not installed, or with
    which a limit of cost or tokens cannot be kept; ``chain_cost`` is the chain's, in US dollars."""

    from cockpit.agents.runs.agent_command_line import RunnerError
    from cockpit.agents.runs.spending_limit import refuse_uncounted, refuse_unpriced
    from cockpit.agents.stdio.driven_runners import find_runner
    from cockpit.agents.streams.stream_formats import open_stream

    try:
        runner = find_runner(settings.runtime, name)
    except RunnerError as error:
        raise WrongUse(str(error)) from error
    limits = settings.runtime.limits
    max_cost = min(filter(None, (limits.max_cost, chain_cost)), default=None)
    over_acp = (
        runner is not None and runner.protocol == "acp"
    )  # it tells what it used when it is too late
    is_text = (
        runner is not None
        and not runner.protocol
        and not open_stream(runner.format, runner.command).reports_usage
    )
    if runner is not None and (over_acp or is_text):
        if max_cost is not None:
            raise WrongUse(refuse_unpriced(runner.name, max_cost))
        if limits.max_tokens is not None:
            raise WrongUse(refuse_uncounted(runner.name, limits.max_tokens))
    if runner is not None and find_program(runner.command[0]) is None:
        what_to_do = (
            "`cockpit agents` says how to install it."
            if over_acp
            else f"Install it, or correct [runner.{runner.name}] command in your configuration."
        )
        raise WrongUse(
            f"{runner.command[0]}, the program of runner {runner.name}, is not installed or not on the"
            f" PATH. {what_to_do}"
        )


def _say_unused_files(settings: Settings, place: ProjectPaths) -> None:
    """Print each invalid file of a role or a task type, and what applies instead."""
    from cockpit.loop.intake.roles import load_roles
    from cockpit.loop.intake.task_types import load_task_types

    user_dir = settings.runtime.user_dir
    problems = [
        *load_roles(place.home, user_dir).problems,
        *load_task_types(place.home, user_dir).problems,
    ]
    for problem in problems:
        say(f"Not used: {problem}")
    if problems:
        say("These files have no effect until you correct them.")


def _check_commands(settings: Settings) -> None:
    """Raise ``WrongUse`` for an invalid command in ``[work]``."""
    from cockpit.act.command_line import CommandRefused, split_command

    commands = [("setup", command) for command in settings.work.setup]
    if settings.work.test_command is not None:
        commands.append(("test_command", settings.work.test_command))
    for name, command in commands:
        try:
            split_command(command)
        except CommandRefused as error:
            raise WrongUse(
                f"[work] {name} cannot run: {error} Put shell syntax into a script and name the script."
            ) from error


def _check_model(settings: Settings, runner: str | None) -> None:
    """Raise ``WrongUse`` where only the offline rules are available, which cannot work as roles."""
    from cockpit.agents.stdio.driven_runners import find_runner
    from cockpit.decide.choose_model import OFFLINE, model_named
    from cockpit.tasks.outage import NOT_OFFLINE

    if find_runner(settings.runtime, runner) is not None:
        return
    environment = {**os.environ, **settings.runtime.environment}
    if model_named(None, settings.runtime.model, environment) == OFFLINE:
        raise WrongUse(NOT_OFFLINE)


async def say_uncommitted(place: ProjectPaths, subject: str) -> None:
    """Print how many files are not committed; ``subject`` is "Tasks do" or "The task does"."""
    from cockpit.tasks.git import uncommitted_files

    paths = await uncommitted_files(place.root)
    if paths:
        verb = "is" if len(paths) == 1 else "are"
        say(
            f"{pluralize(len(paths), 'file')} in your checkout {verb} not committed. {subject} not see these"
            " changes and will not touch them."
        )


async def _do(
    store: Store,
    place: ProjectPaths,
    settings: Settings,
    task_id: str,
    runner: str | None,
    branch: str,
) -> TaskOutcome:
    from cockpit.loop.views.copy_journal import recorded
    from cockpit.tasks.run_task import run_task
    from cockpit.tasks.task_context import TaskContext

    async with recorded(store, settings.runtime):
        await say_uncommitted(place, "The task does")
        await settle_unconfined(settings, runner)
        context = TaskContext(
            store=store,
            place=place,
            settings=settings.runtime,
            chain_id="",
            ordinal=0,
            chain_branch=branch,
            approve=settings.runtime.policy,
            model=settings.runtime.model.model,
            runner=runner,
            work=settings.work,
        )
        loop = asyncio.get_running_loop()
        task_id = store.read_now(lambda connection: tasks.load(connection, task_id)).task_id
        token = await store.write(lambda tx: task_leases.acquire(tx, task_id, "cockpit work"))
        running = asyncio.ensure_future(run_task(context, task_id))
        renewing = asyncio.create_task(_renew_lease(store, task_id, token))

        def stop() -> None:
            if context.stop.is_set():
                running.cancel()
            context.stop.set()
            say("Stopping after this step. Press Ctrl+C again to stop now.")

        stop_on_interrupt(loop, stop)  # the command line turns SIGTERM into SIGINT
        try:
            return await running
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            renewing.cancel()
            await store.write(lambda tx: task_leases.release(tx, task_id, token))


async def _renew_lease(store: Store, task_id: str, token: str) -> None:
    """Renew the lease on the task until cancelled, so that no chain claims it."""
    while True:
        await store.clock.sleep(task_leases.LEASE_S / 3)
        await store.write(lambda tx: task_leases.renew(tx, task_id, token))
