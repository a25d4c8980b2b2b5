"""``cockpit work``: work through the backlog with a chain of workers, or on one task."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import APPROVE, MODEL, NO_SANDBOX, Dollars, Duration, TimeOfDay, examples
from cockpit.commands.backlog.call_work_tools import authorize_writer
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
    require_repository,
)
from cockpit.commands.unconfined import require_reading_sandbox
from cockpit.core.clock import format_time

if TYPE_CHECKING:
    from cockpit.chains.create_chain import ChainOptions
    from cockpit.config.load_settings import Settings

_NO_SCOPE = (
    "--headless needs a scope, because no user can stop it. Pass --epic ID, --story ID or --all."
)

_INTERNAL = (
    "--chain and --session are for workers that a chain starts itself. Resume a chain with "
    "`cockpit work --continue ID`."
)


@click.command(
    short_help="Work through the backlog with agents.",
    epilog=examples(
        "cockpit work --all",
        "cockpit work --epic E-1 --dry-run",
        "cockpit work --epic E-1 -n 3 --max-cost 20 --max-wall 2h",
        "cockpit work --all --headless --approve all --until 07:00",
        "cockpit work --task T-42 --runner claude",
        "cockpit work --continue",
        "cockpit work --continue ch-3 --max-chains 20",
    ),
)
@click.option(
    "-n",
    "--parallel",
    "batch",
    metavar="auto|K",
    help="Work on this many tasks at the same time, or on 2 to 4 as it goes (auto). Default: auto.",
)
@click.option("--epic", metavar="ID", help="Do only the tasks of this epic.")
@click.option("--story", metavar="ID", help="Do only the tasks of this story.")
@click.option("--all", "everything", is_flag=True, help="Do the whole backlog. The default scope.")
@click.option("--task", "task_id", metavar="ID", help="Do one task and merge it into cockpit/work.")
@click.option(
    "--continue",
    "again",
    is_flag=False,
    flag_value="",
    metavar="[CHAIN]",
    help="Resume this chain, or the newest unfinished one. Other options replace what it was started with.",
)
@click.option(
    "--headless", is_flag=True, help="Work without a user at the terminal. Needs a scope."
)
@click.option(
    "--max-chains",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Stop after this many worker processes. Default: 10.",
)
@APPROVE
@click.option(
    "--max-cost",
    type=Dollars(),
    metavar="USD",
    help="Start no further step once the chain has cost this many US dollars. Default: no limit.",
)
@click.option(
    "--max-wall",
    type=Duration(),
    metavar="TIME",
    help="Start no further step after this much wall-clock time, for example 2h. Default: no limit.",
)
@click.option(
    "--runner",
    metavar="NAME",
    help="Run the roles with this external agent of your configuration. Default: embedded.",
)
@click.option(
    "--until",
    type=TimeOfDay(),
    metavar="HH:MM",
    help="Begin nothing after this time of day. Default: no end.",
)
@click.option(
    "--no-resume",
    is_flag=True,
    help="End at a provider's limit. Default: wait for its end, and continue.",
)
@MODEL
@NO_SANDBOX
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the tasks in scope with their estimates, and start nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the chain as JSON when it ends.")
@click.option("--chain", "chain_id", hidden=True)
@click.option("--session", "ordinal", type=click.IntRange(1), hidden=True)
@click.option("--after", type=click.IntRange(1), hidden=True)
@click.option("--requested-by", "principal", hidden=True)
@click.option("--request", hidden=True)
@click.pass_context
def work(ctx: click.Context, /, **options: Any) -> None:
    """Work through the ready tasks: implement, test, review and merge.

    Each task gets a branch and a worktree of its own; finished tasks are merged into the branch of the
    chain. Your checkout, your branch and your uncommitted changes are not touched. Ctrl+C stops after
    the steps in progress, a second Ctrl+C at once; `cockpit work --continue` resumes either way.

    Exit codes: 0 if all is done, 4 if something waits or a limit was reached, 1 if something is blocked or
    failed, 3 if no sandbox confines what --approve reads or all would run unasked, 130 if it was stopped.
    With --task: 0 if the task is done, 3 if it is blocked or another process works on it, 1 if a model
    or program was not available, 130 if it was stopped.
    """
    ctx.exit(_work(options))


def _work(options: Mapping[str, Any]) -> Exit:
    again = options["again"] is not None
    scopes = [name for name in ("epic", "story", "everything", "task_id") if options[name]]
    scopes += ["again"] * again
    if options["chain_id"] or options["ordinal"]:
        if not (options["chain_id"] and options["ordinal"]):
            raise WrongUse(_INTERNAL)
        from cockpit.commands.chains.run_worker import run_worker

        return run_worker(options["chain_id"], options["ordinal"])
    if len(scopes) > 1:
        raise WrongUse("--epic, --story, --all, --task and --continue exclude each other.")
    if options["headless"] and not scopes:
        raise WrongUse(_NO_SCOPE)
    if options["dry_run"]:
        return _estimate(options)
    from cockpit.commands.chains.work_on_task import check_prerequisites, work_on_task
    from cockpit.decide.choose_model import model_named
    from cockpit.decide.known_prices import TOKENS_OF_CHAIN, require_price

    if options["task_id"]:
        return work_on_task(
            options["task_id"],
            options["approve"],
            options["model"],
            options["runner"],
            options["as_json"],
            no_sandbox=options["no_sandbox"],
        )
    flags = {
        "[approval] policy": options["approve"],
        "[model] name": options["model"],
        "[headless] max_chains": options["max_chains"],
    }
    place = require_repository()
    if options["principal"]:
        # A program may ask for less than the user's settings allow, and never for more.
        most = load_project_settings(place).headless.max_chains
        flags["[headless] max_chains"] = min(options["max_chains"] or most, most)
    settings = load_project_settings(place, flags)
    order = _order(settings, options)
    if not (options["no_sandbox"] or again):
        asyncio.run(require_reading_sandbox(settings, settings.runtime.policy))
    check_prerequisites(
        settings,
        place,
        options["runner"],
        needs_model=not again and settings.scale.backend == "local",
        chain_cost=order.max_cost,
    )
    if order.max_cost is not None and order.runner is None and not again:
        models = settings.runtime.model
        named = model_named(order.model, models, os.environ)
        require_price(named, models.prices, otherwise=TOKENS_OF_CHAIN)
    ensure_root_token(place, quiet=True)
    if options["after"]:
        from cockpit.commands.chains.watch_chain import follow_and_watch

        return follow_and_watch(
            place, settings, order, options["after"], start_new=options["everything"]
        )
    from cockpit.commands.chains.watch_chain import (
        read_request,
        resume_and_watch,
        start_and_watch,
    )

    request = read_request(options["principal"], options["request"])

    with open_store(place) as store:
        if again:
            from cockpit.collections.work.chains import choose_chain

            store.write_now(lambda tx: authorize_writer(tx, "resume a chain"))
            named = options["again"] and store.read_now(
                lambda connection: choose_chain(connection, options["again"]).chain_id
            )
            replaced = {
                field: getattr(order, field)
                for option, field in _REPLACEABLE.items()
                if options[option] is not None
            }
            watching = resume_and_watch(
                *(store, place, settings, named or None, replaced, options["as_json"]),
                no_sandbox=options["no_sandbox"],
            )
        else:
            watching = start_and_watch(store, place, settings, order, options["as_json"], request)
        return asyncio.run(watching)


def _estimate(options: Mapping[str, Any]) -> Exit:
    """Print what the work would take; start nothing and store nothing. Refuse what the work would refuse."""
    from cockpit.chains.batch_size import ADAPTIVE, read_batch_size
    from cockpit.commands.knowledge.estimate import estimate_scope, show_scope

    if options["again"] is not None:
        raise WrongUse("--dry-run estimates the open tasks of a scope. Leave --continue out.")
    workers = read_batch_size(options["batch"] or ADAPTIVE).size
    place = find_project()
    flags = {"[approval] policy": options["approve"], "[model] name": options["model"]}
    settings = load_project_settings(place, flags)
    if not options["no_sandbox"]:
        asyncio.run(require_reading_sandbox(settings, settings.runtime.policy))
    estimated = estimate_scope(
        place,
        settings.runtime,
        options["epic"],
        options["story"],
        options["runner"],
        named=[options["task_id"]] if options["task_id"] else (),
    )
    show_scope(estimated, workers, as_json=options["as_json"])
    return Exit.DONE if estimated.tasks else Exit.WRONG_USE


def _resume_until(options: Mapping[str, Any]) -> str | None:
    if options["no_resume"]:
        return ""
    return None if options["until"] is None else format_time(options["until"].astimezone(UTC))


_REPLACEABLE: Mapping[str, str] = {
    "batch": "batch",
    "approve": "approve",
    "model": "model",
    "runner": "runner",
    "max_chains": "max_chains",
    "max_cost": "max_cost",
    "max_wall": "max_wall_s",
    "until": "resume_until",
}
"""By option: the field of a chain that it replaces when the chain is resumed."""


def _order(settings: Settings, options: Mapping[str, Any]) -> ChainOptions:
    from cockpit.chains.batch_size import ADAPTIVE, read_batch_size
    from cockpit.chains.create_chain import ChainOptions

    batch = options["batch"] or ADAPTIVE
    read_batch_size(batch)  # refuses what is neither `auto` nor a number
    kind = "epic" if options["epic"] else "story" if options["story"] else "all"
    return ChainOptions(
        scope_kind=kind,
        scope_id=options["epic"] or options["story"] or "",
        headless=options["headless"],
        batch=batch,
        approve=settings.runtime.policy,
        model=settings.runtime.model.model,
        runner=options["runner"],
        max_chains=settings.headless.max_chains,
        max_cost=options["max_cost"],
        max_wall_s=options["max_wall"],
        resume_until=_resume_until(options),
    )
