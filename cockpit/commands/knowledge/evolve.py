"""``cockpit evolve``: grow a tool that is missing, test first, and adopt it with the user's approval."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import MODEL, examples
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import (
    WrongUse,
    find_project,
    load_project_settings,
    open_project_runtime,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.processes import stop_on_interrupt

if TYPE_CHECKING:
    from cockpit.loop.wave_context import Engine


@click.command(
    short_help="Grow a tool that is missing, test first.",
    epilog=examples(
        "cockpit evolve 'extract IP addresses from .pcab files'",
        "cockpit evolve --rounds 20 'count words by language'",
        "cockpit evolve --continue",
    ),
)
@click.argument("want", required=False, default="", metavar="WANT|SESSION")
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="Resume a growth that was interrupted: SESSION, or the last one.",
)
@MODEL
@click.option(
    "--rounds",
    type=click.IntRange(2, 50),
    default=12,
    show_default=True,
    help="End after this many answers of the model.",
)
@click.option("--max-cost", type=float, metavar="USD", help="End when the model has cost so much.")
@click.option("--json", "as_json", is_flag=True, help="Print the end as JSON.")
@click.pass_context
def evolve(
    ctx: click.Context,
    /,
    want: str,
    goes_on: bool,
    model: str | None,
    rounds: int,
    max_cost: float | None,
    as_json: bool,
) -> None:
    """Grow a tool that is missing, test first.

    WANT says what it has to do. The model writes a test, which must fail, and then code until the test
    passes, all of it in the sandbox. The tool then waits for you as a proposal, in any cockpit and for
    `cockpit proposals`: once you approve it, sessions of this project may call it. Specified in
    docs/reference/evolve.md.
    """
    if goes_on and model:
        raise WrongUse(
            "A growth continues with its own model: --continue and --model exclude each other."
        )
    flags: dict[str, object] = {"[model] name": model, "[limits] max_cost": max_cost}
    ctx.exit(asyncio.run(_evolve(want, goes_on, flags, rounds, as_json)))


async def _evolve(
    want: str, goes_on: bool, flags: dict[str, object], rounds: int, as_json: bool
) -> Exit:
    from cockpit.evolve.evolve import begin_evolution, find_growth
    from cockpit.evolve.evolve import evolve as grow
    from cockpit.store.journal import journal
    from cockpit.store.sessions import proposals

    place = find_project()
    settings = load_project_settings(place, flags)
    async with open_project_runtime(place, settings.runtime) as runtime:
        engine = runtime.engine
        if goes_on:
            session_id = (await find_growth(engine, want)).session_id
            say(f"{session_id}: the tool grows on.")
        else:
            session_id = await begin_evolution(engine, want)
            say(f"{session_id}: the tool grows.")
        before = await engine.store.read(journal.last_seq)
        work = asyncio.create_task(grow(engine, session_id, rounds=rounds))
        stop_on_interrupt(asyncio.get_running_loop(), work.cancel)
        telling = asyncio.create_task(_tell_progress(engine, session_id, before))
        try:
            session = await work
            await telling
        except asyncio.CancelledError:
            await _stop(engine, session_id)
            say(f"Stopped. Resume with `cockpit evolve --continue {session_id}`.")
            return Exit.INTERRUPTED
        finally:
            telling.cancel()
        waiting = [
            proposal.status
            for proposal in await runtime.store.read(
                lambda c: proposals.select_for_session(c, session_id)
            )
        ]
    if as_json:
        show_json({"session_id": session_id, **session.result})
    else:
        show(str(session.result.get("summary", "")))
    if session.result.get("status") == "done":
        return Exit.DONE
    return Exit.REFUSED if "rejected" in waiting else Exit.FAILED


async def _tell_progress(engine: Engine, session_id: str, after: int) -> None:
    """Say how each round ended, and which command shows the tool, until the session has ended."""
    from cockpit.store.journal.details.evolution import EvolutionTried
    from cockpit.store.journal.details.proposals import ProposalCreated
    from cockpit.store.journal.details.sessions import SessionCompleted
    from cockpit.store.journal.follow import follow

    async for rows in follow(engine.store, after=after, session_id=session_id):
        for row in rows:
            match row.detail:
                case EvolutionTried() as tried:
                    name = f" of {tried.name}" if tried.name else ""
                    first = (tried.output.splitlines() or [""])[0]
                    say(
                        f"Round {tried.round}: the {tried.step}{name} is {tried.outcome}. {first}".rstrip()
                    )
                case SessionCompleted():
                    return
                case ProposalCreated(proposal_id=identity):
                    say(f"The tool waits for you. Look at it: `cockpit proposals {identity}`.")


async def _stop(engine: Engine, session_id: str) -> None:
    from cockpit.store.sessions import sessions

    await engine.store.write(
        lambda tx: sessions.set_status(tx, session_id, "stopped", actor="person")
    )
