"""The demo without the screen: two sessions that a policy decides, or a chain, and the report of either.

The policy discusses the first context request once, as the guide asks a newcomer to do, and approves the
rest. It decides under its own name, so no journal row claims a decision of the user.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from cockpit.backlog.import_export import import_backlog, read_lines
from cockpit.commands.demo.demo_guide import BUG_WORDS, DISCUSS_WORDS
from cockpit.commands.demo.demo_report import report
from cockpit.commands.demo.sample_project import Sample, shipped
from cockpit.commands.exit_codes import Exit
from cockpit.commands.sessions.headless import RowPrinter, run_and_print
from cockpit.commands.terminal import say, show
from cockpit.config.load_settings import Settings
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import Limits
from cockpit.store.chains import chains
from cockpit.store.db.database import Store
from cockpit.store.journal.details.proposals import ProposalCreated
from cockpit.store.journal.follow import follow
from cockpit.store.sessions import proposals

POLICY = "policy:demo"
TOKENS = 18_000
"""The token limit of a chain's worker; the six tasks need about four times as much."""

_LIMITS = Limits(max_waves=20, deadline_s=60.0)
_CHAIN_SETTINGS = {"COCKPIT_SESSION_TOKEN_LIMIT": str(TOKENS), "COCKPIT_REPORT": "always"}


async def play_sessions(
    place: ProjectPaths, settings: Settings, sample: Sample, script: str
) -> Exit:
    """Run the review and the bug, and print their stories and the report; return 0 where all is well."""
    async with open_runtime(place, settings.runtime) as runtime:
        _title("1 of 2: a review. The reviewer is cockpit's offline rules, not a model.")
        words = f"review main..{sample.branch}"
        await _run_session(runtime, words, model="offline", discuss=DISCUSS_WORDS)
        _title(
            "2 of 2: a bug. A script plays the model; its reads, edits, runs and commits are real."
        )
        await _run_session(runtime, BUG_WORDS, model=script)
        return await _report(runtime.store, place, sample)


async def play_chain(place: ProjectPaths, sample: Sample, script: str) -> Exit:
    """Fill the backlog, run a chain in processes of its own, and report; return 0 where all is well.

    Worktrees, edits, tests, commits, merges and processes are real. Each worker ends at its token limit, and
    the next one continues.
    """
    with Store.open(place.database) as store:
        lines = read_lines(shipped("backlog.jsonl").read_text(encoding="utf-8").splitlines())
        await store.write(lambda tx: import_backlog(tx, lines, by="demo"))
    argv = ("work", "--all", "--headless", "--approve", "all", "--model", script)
    _title(f"cockpit {' '.join(argv[:-1])} SCRIPT")
    code = await _run_cockpit(argv, sample)
    with Store.open(place.database) as store:
        if code == Exit.INTERRUPTED:
            return Exit.INTERRUPTED
        if not await store.read(chains.select):
            return Exit.FAILED  # its message has named the reason
        return await _report(store, place, sample)


async def _report(store: Store, place: ProjectPaths, sample: Sample) -> Exit:
    _title("Report")
    text, broken = await report(store, place, sample)
    show(text)
    for problem in broken:
        say(f"cockpit: the demo went wrong: {problem}.")
    return Exit.FAILED if broken else Exit.DONE


async def _run_session(runtime: Runtime, words: str, *, model: str, discuss: str = "") -> None:
    """Run one task to its end and print its story. Raises the error that ended it."""
    session_id = await runtime.start(
        words, model=model, policy="ask", interactive=False, limits=_LIMITS
    )
    deciding = asyncio.create_task(_decide(runtime, session_id, discuss))
    try:
        ending = await run_and_print(runtime, session_id, RowPrinter("text", 0, hints=False))
    finally:
        deciding.cancel()
        (failure,) = await asyncio.gather(deciding, return_exceptions=True)
    if error := failure if isinstance(failure, Exception) else ending.error:
        raise error
    if ending.interrupted:
        raise KeyboardInterrupt


async def _decide(runtime: Runtime, session_id: str, discuss: str) -> None:
    """Decide every proposal of the session as it comes, until cancelled; keeps no state."""
    async for rows in follow(runtime.store, session_id=session_id):
        for row in rows:
            if isinstance(row.detail, ProposalCreated):
                await _answer(runtime, row.detail.proposal_id, discuss)


async def _answer(runtime: Runtime, proposal_id: str, discuss: str) -> None:
    proposal = await runtime.store.read(lambda connection: proposals.load(connection, proposal_id))
    if proposal.status != "pending":
        return
    talk = discuss if proposal.kind == "context" and proposal.revises is None else ""
    if talk:
        # Before the decision, so that the waiting wave gets the message.
        await runtime.say(proposal.session_id, talk)
    await runtime.store.write(
        lambda tx: decide_proposal(
            tx,
            runtime.engine.settings,
            proposal_id,
            "discussed" if talk else "approved",
            POLICY,
            shown_digest=proposal.shown_digest,
            reason=talk,
        )
    )


async def _run_cockpit(argv: Sequence[str], sample: Sample) -> int:
    """Run cockpit on this terminal and pass each interrupt on to it."""
    loop = asyncio.get_running_loop()
    # In its own process group, or Ctrl+C would reach it twice.
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "cockpit", *argv),
        cwd=sample.root,
        env={**os.environ, **_CHAIN_SETTINGS},
        process_group=0,
    )
    loop.add_signal_handler(signal.SIGINT, running.send_signal, signal.SIGINT)
    try:
        return await running.wait()
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _title(words: str) -> None:
    show(f"\n── {words} {'─' * max(0, 96 - len(words))}\n")
