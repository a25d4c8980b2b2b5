"""From the decision over a worktree's change to its effect: queued with the approval, run by the outbox.

See ``docs/reference/agents.md``, the change of a worktree.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from cockpit.act.adapters.adapter import Adapter
from cockpit.act.dispatch_actions import Dispatcher, settle
from cockpit.loop.wave_context import Engine
from cockpit.store.chains.worktrees import TAKE, TYPES
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted
from cockpit.store.sessions import messages, outbox, proposals, sessions
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.proposals import Proposal
from cockpit.tasks.agent_changes.merge_or_drop import change_adapters
from cockpit.tasks.agent_changes.propose_change import (
    WORKTREE,
    create_proposal,
    describe_drop,
    propose_change,
    size_of,
)
from cockpit.tasks.git import WorktreeError

_MOST_OPEN = 100
_PLACE = re.compile(r"^\s*(?P<path>[^\s:][^:]*):(?P<line>\d{1,7})(?:-\d{1,7})?:")


def turn_down(tx: Tx, proposal: Proposal) -> None:
    """After a rejected change ask whether it is dropped; after a rejected drop show the change again."""
    if proposal.body["type"] == TAKE:
        title, body = describe_drop(proposal.body, size_of(proposal))
        create_proposal(tx, proposal.session_id, title, body, "high", proposal)
        return
    shown = [
        each
        for each in proposals.select_for_session(tx.connection, proposal.session_id)
        if each.body.get("type") == TAKE and each.body["payload"] == proposal.body["payload"]
    ]
    if shown:
        last = shown[-1]
        body = {name: value for name, value in last.body.items() if name not in ("key", "changes")}
        create_proposal(tx, last.session_id, last.title, body, last.risk, proposal)
    else:
        _complete(tx, proposal.session_id, f"{proposal.body['branch']} is kept.")


def describe_discussion(proposal: Proposal, words: str) -> str:
    """Return the agent's next prompt: the user's words, and the lines that they name as they stand."""
    branch = str(proposal.body.get("branch", ""))
    texts = {diff["path"]: diff["after"] or "" for diff in proposal.body.get("diffs", ())}
    lines = [
        f"The user looked at your whole change on {branch} and does not take it yet. They say:"
    ]
    for line in words.splitlines():
        lines.append(line)
        place = _PLACE.match(line)
        if place is None or place["path"] not in texts:
            continue
        text = texts[place["path"]].splitlines()
        number = int(place["line"])
        if 0 < number <= len(text):
            lines.append(f"    {number} | {text[number - 1]}")
    return "\n".join(lines)


async def run_queued(
    engine: Engine,
    adapters: Mapping[str, Adapter],
    select_open: Callable[[sqlite3.Connection], Sequence[tuple[str, str]]],
) -> AsyncIterator[tuple[str, OutboxAction, str]]:
    """Run the actions of ``select_open`` (waves with their sessions) that are queued, or that a process left.

    Yields the session, the action as it ended, and the error ('' for none).
    """
    dispatcher = Dispatcher(engine.store, engine.ground, adapters)
    for wave_id, session_id in await engine.store.read(select_open):
        await dispatcher.recover(session_id)
        for action in await dispatcher.run_wave(wave_id):
            ended = action
            if ended.phase == "uncertain":
                # What is there counts: it is read and shown anew.
                ended = await settle(engine.store, ended.action_id, "drop", by="engine")
            if ended.phase in ("confirmed", "failed_terminal"):
                yield session_id, ended, action.last_error or ended.last_error
            # Another process carries out any other one now, and stores how it ended.


async def carry_out(engine: Engine) -> None:
    """Run every action over a worktree that is queued, or that a dead process left.

    What fails is shown anew. Raises :class:`WorktreeError` with all that failed, after the last one.
    """
    adapters = change_adapters(engine.store, engine.place)
    problems = []
    async for session_id, ended, words in run_queued(engine, adapters, _select_open):
        if ended.phase == "confirmed":
            await _report(engine, session_id, ended.action_id)
            continue
        if (shown := await propose_change(engine, session_id)) is not None:
            words += f" It is shown anew as {shown.proposal_id}."
        problems.append(words)
        await _note(engine, session_id, words)
    if problems:
        raise WorktreeError(" ".join(problems))


async def _report(engine: Engine, session_id: str, action_id: str) -> None:
    receipts = await engine.store.read(lambda c: outbox.select_receipts(c, action_id))
    if not receipts:
        return
    words = receipts[-1].summary
    if not await engine.store.write(lambda tx: _complete(tx, session_id, words)):
        await _note(engine, session_id, words)


def _complete(tx: Tx, session_id: str, words: str) -> bool:
    """End a session that was there for the branch only; False for another."""
    session = sessions.load(tx.connection, session_id)
    is_for_branch = WORKTREE in session.target and session.status in ("running", "waiting")
    if is_for_branch:
        ended = SessionCompleted(status="done", summary=words)
        sessions.set_status(tx, session_id, "completed", detail=ended)
    return is_for_branch


async def _note(engine: Engine, session_id: str, words: str) -> None:
    await engine.store.write(
        lambda tx: messages.complete(tx, session_id=session_id, role="notice", text=words)
    )


def _select_open(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT DISTINCT wave_id, session_id FROM outbox_actions"
        " WHERE phase NOT IN ('confirmed','failed_terminal') AND action_type IN (?,?) LIMIT ?",
        (*TYPES, _MOST_OPEN),
    )
    return [(str(wave_id), str(session_id)) for wave_id, session_id in rows]
