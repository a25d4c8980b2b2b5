"""``cockpit work``: doing a task of the backlog by roles, in a working tree of its own."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from cockpit.commands.exits import Exit
from cockpit.commands.project import WrongUse, here, open_store, settings_of
from cockpit.commands.terminal import say, show, show_json
from cockpit.store import worktrees
from cockpit.store.place import Place

if TYPE_CHECKING:
    from cockpit.config import Settings
    from cockpit.store.database import Store
    from cockpit.work.desk import TaskOutcome

BRANCH = "cockpit/work"
"""What tasks are merged into that are done one by one."""


@click.command(short_help="Do a task of the backlog: implement, test, fix, review, merge.")
@click.option("--task", "task_id", metavar="ID", required=True, help="The task, such as T-42.")
@click.option(
    "--approve",
    type=click.Choice(["ask", "trusted", "reads", "all"]),
    help="What is approved without you. Default: ask.",
)
@click.option("--model", metavar="NAME", help="anthropic:NAME, openai:NAME, offline, …")
@click.option("--json", "as_json", is_flag=True, help="How it ended, as JSON.")
@click.pass_context
def work(
    ctx: click.Context,
    /,
    task_id: str,
    approve: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Do TASK in a working tree and on a branch of its own, and merge it into cockpit/work.

    Your checkout, your branch and your uncommitted work are not touched. Ctrl+C stops after the step
    that is under way, a second one at once; either way the same command goes on where it stood.
    """
    place = here()
    settings = settings_of(place, {"[approval] policy": approve, "[model] name": model})
    if not place.git:
        raise WrongUse(f"{place.root} is no git repository; tasks are done on branches of one.")
    with open_store(place) as store:
        ended = asyncio.run(_do(store, place, settings, task_id))
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
    stopped = ended.status == "interrupted" and ended.reason != "drained"
    ctx.exit(Exit.FAILED if stopped else codes[ended.status])


async def _do(store: Store, place: Place, settings: Settings, task_id: str) -> TaskOutcome:
    from cockpit.work.doing import Desk, do_task
    from cockpit.work.trees import uncommitted

    unseen = await uncommitted(place.root)
    if unseen:
        count = "1 file" if len(unseen) == 1 else f"{len(unseen)} files"
        say(
            f"{count} in your checkout {'is' if len(unseen) == 1 else 'are'} not committed; the task "
            "does not see these changes, and they are not touched."
        )
    desk = Desk(
        store=store,
        place=place,
        settings=settings.runtime,
        chain_id="",
        ordinal=0,
        chain_branch=BRANCH,
        approve=settings.runtime.policy,
        model=settings.runtime.model.model,
    )
    loop = asyncio.get_running_loop()
    running = asyncio.ensure_future(do_task(desk, task_id))

    def stop() -> None:
        if desk.stop.is_set():
            running.cancel()
        desk.stop.set()
        say("It stops after this step; Ctrl+C again stops it now.")

    loop.add_signal_handler(signal.SIGINT, stop)  # the command line turns the others into it
    try:
        return await running
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
