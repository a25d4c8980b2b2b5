"""``cockpit worker``: do tasks of chains that run on another machine."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import MODEL, examples
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import WrongUse, load_project_settings
from cockpit.commands.terminal import say
from cockpit.core.processes import stop_on_interrupt
from cockpit.core.project_paths import ProjectPaths

if TYPE_CHECKING:
    from cockpit.chains.remote.message_types import RunMessage
    from cockpit.chains.remote.scale_settings import ScaleSettings
    from cockpit.loop.runtime_settings import RuntimeSettings
    from cockpit.tasks.task_context import WorkSettings


@click.command(
    short_help="Work on tasks of another machine's chain.",
    epilog=examples(
        "cockpit worker --connect nats://build-1:4222/shop --git ssh://git@build-1/shop.git",
        "cockpit worker --connect nats://build-1:4222/shop --git /srv/shop.git --slots 4",
    ),
)
@click.option(
    "--connect",
    required=True,
    metavar="URL",
    help="Take tasks of this queue: nats://HOST:4222/QUEUE, as [scale] server of the coordinator.",
)
@click.option(
    "--git",
    "repository",
    required=True,
    metavar="ADDRESS",
    help="Use this repository, which all machines share, as this machine reaches it.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Do this many tasks at the same time.",
)
@click.option(
    "--name", metavar="NAME", help="Use this name in journals. Default: host and process."
)
@click.option(
    "--approve",
    type=click.Choice(("ask", "trusted", "reads", "all")),
    default="all",
    show_default=True,
    help="Take no wider approval policy than this from a chain.",
)
@MODEL
@click.pass_context
def worker(
    ctx: click.Context,
    connect: str,
    repository: str,
    slots: int,
    name: str | None,
    approve: str,
    model: str | None,
) -> None:
    """Take tasks from a coordinator's queue, do them, and send back branches and journals.

    The coordinator is `cockpit work` with `[scale] server`, on any machine. Proposals
    wait in its queue. Keys of providers are this machine's own. Ctrl+C ends it after the steps in progress,
    a second Ctrl+C at once; another worker then gets its run.

    Exit codes: 0 after Ctrl+C, 1 where the server or the repository is not reached, 2 for wrong options.
    """
    from cockpit.chains.remote.jetstream_queue import check_queue_name
    from cockpit.chains.remote.message_types import check_worker_name
    from cockpit.chains.remote.scale_settings import read_scale
    from cockpit.core.state_folder import state_root

    if repository.startswith("-"):
        raise WrongUse(f"{repository!r} is not an address of a repository.")
    named = check_worker_name(name or f"{_host()}-{os.getpid()}")
    try:
        scale = read_scale(connect, repository)
    except ValueError as error:
        raise WrongUse(f"--connect: {error}.") from error
    queue = check_queue_name(scale.queue)
    place = Path(state_root(), "workers", queue, named)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    ctx.exit(asyncio.run(_work(scale, place.resolve(), named, slots, approve, model)))


async def _work(
    scale: ScaleSettings,
    folder: Path,
    name: str,
    slots: int,
    approve: str,
    model: str | None,
) -> Exit:
    from cockpit.chains.remote.jetstream_queue import open_queue
    from cockpit.chains.remote.remote_run import WorkerSetup
    from cockpit.chains.remote.remote_worker import RemoteWorker
    from cockpit.core.clock import SystemClock

    def load(clone: Path, run: RunMessage) -> tuple[RuntimeSettings, WorkSettings]:
        """Load this machine's settings; the repository's own are those of its coordinator's user to trust."""
        del run
        place = ProjectPaths(root=clone, home=clone, git=True)
        settings = load_project_settings(place, {"[model] name": model}, ask=_trust_nothing)
        return settings.runtime, settings.work

    async with open_queue(scale, name=name) as queue:
        await queue.prepare()
        setup = WorkerSetup(
            name=name,
            repository=scale.git,
            folder=folder,
            slots=slots,
            policy=approve,
            load_settings=load,
            clock=SystemClock(),
        )
        remote = RemoteWorker(queue, setup, say)
        await remote.check()
        working = asyncio.ensure_future(remote.work())

        def stop() -> None:
            if remote.stop.is_set():
                working.cancel()
            else:
                say("Stopping after the steps in progress. Press Ctrl+C again to stop now.")
            remote.stop.set()

        stop_on_interrupt(asyncio.get_running_loop(), stop)  # SIGTERM becomes SIGINT
        say(f"{name} takes tasks of the queue {scale.queue} at {scale.server_for_people}.")
        try:
            await working
        except asyncio.CancelledError:
            return Exit.INTERRUPTED
    return Exit.DONE


def _trust_nothing(question: str, text: str) -> bool:
    del question, text
    return False


def _host() -> str:
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in socket.gethostname())
    return name.strip("-")[:40] or "worker"
