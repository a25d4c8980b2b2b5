"""``cockpit work``: doing the backlog, over as many sessions as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import Dollars, Duration
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    load_project_settings,
    open_store,
    require_repository,
)

if TYPE_CHECKING:
    from cockpit.chains.chain_lifecycle import ChainOptions
    from cockpit.config.load_settings import Settings

_SCOPE = "Without a person to stop it, work needs a scope: --epic ID, --story ID, or --all for everything."

_WITHIN = (
    "--chain and --session are how a chain begins its sessions; go on with one by "
    "`cockpit chain resume ID`."
)


@click.command(short_help="Do the backlog: implement, test, fix, review, merge, task after task.")
@click.option(
    "-n",
    "--parallel",
    "batch",
    metavar="auto|K",
    help="Tasks at the same time: auto (2 to 4, as it goes), or a number. Default: auto.",
)
@click.option("--epic", metavar="ID", help="Only this epic.")
@click.option("--story", metavar="ID", help="Only this story.")
@click.option("--all", "everything", is_flag=True, help="The whole backlog.")
@click.option("--task", "task_id", metavar="ID", help="One task alone, merged into cockpit/work.")
@click.option("--continue", "again", is_flag=True, help="Go on with the newest unfinished chain.")
@click.option("--headless", is_flag=True, help="Nobody watches: needs a scope.")
@click.option(
    "--max-chains", type=click.IntRange(1, 1000), metavar="N", help="Sessions at most. Default: 10."
)
@click.option(
    "--approve",
    type=click.Choice(["ask", "trusted", "reads", "all"]),
    help="What is approved without you. Default: ask.",
)
@click.option(
    "--max-cost",
    type=Dollars(),
    metavar="USD",
    help="The chain ends before spending more.",
)
@click.option("--max-wall", type=Duration(), metavar="TIME", help="Nor does it take longer: 2h.")
@click.option("--runner", metavar="NAME", help="Who does the roles' work. Default: embedded.")
@click.option("--model", metavar="NAME", help="anthropic:NAME, openai:NAME, offline, …")
@click.option("--json", "as_json", is_flag=True, help="How it ended, as JSON.")
@click.option("--chain", "chain_id", hidden=True)
@click.option("--session", "ordinal", type=click.IntRange(1), hidden=True)
@click.option("--after", type=click.IntRange(1), hidden=True)
@click.pass_context
def work(ctx: click.Context, /, **given: Any) -> None:
    """Do the ready tasks of the backlog, each on a branch of its own, merged into one branch.

    Your checkout, your branch and your uncommitted work are not touched. Ctrl+C lets the steps under
    way end, a second one stops at once; `cockpit work --continue` goes on either way.
    """
    ctx.exit(_work(given))


def _work(given: Mapping[str, Any]) -> Exit:
    scopes = [name for name in ("epic", "story", "everything", "task_id", "again") if given[name]]
    if given["chain_id"] or given["ordinal"]:
        if not (given["chain_id"] and given["ordinal"]):
            raise WrongUse(_WITHIN)
        from cockpit.commands.chains.run_worker import be_session

        return be_session(given["chain_id"], given["ordinal"])
    if len(scopes) > 1:
        raise WrongUse("--epic, --story, --all, --task and --continue exclude each other.")
    if given["headless"] and not scopes:
        raise WrongUse(_SCOPE)
    from cockpit.commands.chains.work_one_task import know, work_on

    if given["task_id"]:
        return work_on(
            given["task_id"], given["approve"], given["model"], given["runner"], given["as_json"]
        )
    flags = {
        "[approval] policy": given["approve"],
        "[model] name": given["model"],
        "[headless] max_chains": given["max_chains"],
    }
    place = require_repository()
    settings = load_project_settings(place, flags)
    order = _order(settings, given)
    know(settings, place, given["runner"], begins=not given["again"])
    ensure_root_token(place, quiet=True)
    if given["after"]:
        from cockpit.commands.chains.work_after_session import follow_and_watch

        return follow_and_watch(place, settings, order, given["after"], anew=given["everything"])
    from cockpit.commands.chains.watch_chain import resume_and_watch, start_and_watch

    with open_store(place) as store:
        if given["again"]:
            replaced = {
                name: getattr(order, name)
                for option, name in _CHANGEABLE.items()
                if given[option] is not None
            }
            going = resume_and_watch(store, place, settings, None, replaced, given["as_json"])
        else:
            going = start_and_watch(store, place, settings, order, given["as_json"])
        return asyncio.run(going)


_CHANGEABLE: Mapping[str, str] = {
    "batch": "batch",
    "approve": "approve",
    "model": "model",
    "runner": "runner",
    "max_chains": "max_chains",
    "max_cost": "max_cost",
    "max_wall": "max_wall_s",
}
"""The options that replace what a chain has when it is gone on with, and its names for them."""


def _order(settings: Settings, given: Mapping[str, Any]) -> ChainOptions:
    from cockpit.chains.batch_size import ADAPTIVE, batch_size
    from cockpit.chains.chain_lifecycle import ChainOptions

    batch = given["batch"] or ADAPTIVE
    batch_size(batch)
    kind = "epic" if given["epic"] else "story" if given["story"] else "all"
    return ChainOptions(
        scope_kind=kind,
        scope_id=given["epic"] or given["story"] or "",
        headless=given["headless"],
        batch=batch,
        approve=settings.runtime.policy,
        model=settings.runtime.model.model,
        runner=given["runner"],
        max_chains=settings.headless.max_chains,
        max_cost=given["max_cost"],
        max_wall_s=given["max_wall"],
    )
