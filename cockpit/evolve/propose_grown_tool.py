"""What grew becomes a proposal, and an approved one is carried out where no wave does it.

See ``docs/reference/evolve.md``, adoption.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any

from cockpit.act.own_tools.adopt_tool import (
    ADOPT,
    AdoptAdapter,
    path_of_code,
    path_of_test,
    place_at,
)
from cockpit.act.proposed_action import ActionPreview, FileDiff
from cockpit.act.text_edits import digest_now
from cockpit.core.canonical_json import digest
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import fence_text
from cockpit.evolve.grow_tool import Grown
from cockpit.loop.runtime import EVOLVE
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.evolution import EvolutionEnded
from cockpit.store.journal.details.sessions import SessionCompleted
from cockpit.store.sessions import messages, outbox, proposals, sessions
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.proposals import Proposal
from cockpit.tasks.agent_changes.carry_out import run_queued

_MOST_OPEN = 100


async def preview_adoption(
    engine: Engine, session_id: str, grown: Grown, *, within: str
) -> ActionPreview:
    """Return what an adoption will do: its code, its test, how the test failed without it, the green run.

    ``within`` says in words what grew it. Raises ``CockpitError`` where a file is in the way.
    """
    growth, store = grown.growth, engine.store
    name = growth.name
    code_path, test_path = path_of_code(name), path_of_test(name)
    session = await store.read(lambda c: sessions.load(c, session_id))
    today = format_time(store.clock.now())[:10]
    code = (
        f"# Written by {session.model} with {within}, session {session_id}, on {today}.\n"
        f"# Wanted: {_first_part(growth.want)}\n"
        f"# Its test {test_path} failed without this code and passes with it.\n"
        f"{growth.code.rstrip()}\n"
    )
    files = {code_path: code, test_path: f"{growth.test.rstrip()}\n"}
    at_home = place_at(engine.ground, engine.place.home)
    taken = [path for path in files if digest_now(at_home.confined, path) is not None]
    if taken:
        raise CockpitError(f"{', '.join(taken)} exists already; nothing is proposed.")
    fields = [
        ("tool", name),
        ("effects", grown.definition.effects if grown.definition else "writes"),
        ("grown in", f"{growth.rounds} rounds"),
        ("green", f"{grown.run.ran} tests, in a fresh process" if grown.run else ""),
        ("sandbox", engine.ground.sandbox.words()),
    ]
    elsewhere = () if at_home is engine.ground else (f"The files are written to {at_home.root}.",)
    return ActionPreview(
        type=ADOPT,
        title=f"adopt the tool {name}",
        risk="medium",
        summary=f"Adopt the tool {name}: {growth.purpose}",
        fields=tuple(fields),
        body=f"Without the code:\n\n{fence_text(growth.red)}\n\nThe withheld test, which passes:\n\n"
        f"{fence_text(growth.withheld, 'python')}",
        diffs=tuple(FileDiff(path, None, text) for path, text in files.items()),
        notes=(
            "Once adopted, sessions of this project may call it; each call asks by its risk.",
            "It runs in the sandbox only.",
            *elsewhere,
        ),
        payload={
            "name": name,
            "code_path": code_path,
            "code": code,
            "test_path": test_path,
            "test": files[test_path],
        },
    )


def _first_part(want: str) -> str:
    """Return what was wanted in one line, without the example and the reasons that follow it."""
    return " ".join(want.strip().partition("\n\n")[0].split())[:300]


async def propose_tool(
    engine: Engine, session_id: str, grown: Grown, revises: Proposal | None
) -> Proposal:
    """Propose what grew in a session of its own."""
    growth, before = grown.growth, None if revises is None else revises.proposal_id
    named = digest([session_id, growth.name, growth.code, growth.test, before])
    proposal_id = f"p-{named[:10]}"
    preview = await preview_adoption(engine, session_id, grown, within="cockpit evolve")
    body: dict[str, Any] = {**preview.proposal_body(), "key": f"{ADOPT}-{named[:24]}"}
    return await engine.store.write(
        lambda tx: proposals.create(
            tx,
            proposal_id=proposal_id,
            kind="action",
            session_id=session_id,
            wave_id="",
            title=preview.title,
            body=body,
            risk=preview.risk,
            revises=before,
        )
    )


async def carry_out(engine: Engine) -> None:
    """Do every adoption that is queued, or that a dead process left. Raises ``CockpitError`` for failures.

    Those of a task's own waves are its session's to do.
    """
    adapters = {ADOPT: AdoptAdapter(engine.store, engine.place.home)}
    problems = []
    async for session_id, ended, _ in run_queued(engine, adapters, _select_open):
        if problem := await _conclude(engine, session_id, ended):
            problems.append(problem)
    if problems:
        raise CockpitError(" ".join(problems))


async def conclude_confirmed(engine: Engine, session_id: str) -> None:
    """End the growth of an adoption after which the process that carried it out has died."""
    for action in await engine.store.read(lambda c: outbox.select_for_session(c, session_id)):
        if action.action_type == ADOPT and action.phase == "confirmed":
            await _conclude(engine, session_id, action)


async def _conclude(engine: Engine, session_id: str, ended: OutboxAction) -> str:
    """Store how an adoption ended; returns why nothing was adopted, or nothing."""
    is_adopted = ended.phase == "confirmed"
    words = await _find_summary(engine, ended) if is_adopted else ended.last_error
    name = str(ended.payload.get("name", ""))
    await engine.store.write(
        partial(_end, session_id=session_id, name=name, words=words, is_adopted=is_adopted)
    )
    return "" if is_adopted else words


async def _find_summary(engine: Engine, action: OutboxAction) -> str:
    """Return what the adoption's receipt says, the commit included."""
    receipts = await engine.store.read(lambda c: outbox.select_receipts(c, action.action_id))
    whole = receipts[-1].summary if receipts else ""
    name = str(action.payload.get("name", ""))
    return whole if whole.startswith("The tool") else f"The tool {name} is adopted."


def _end(tx: Tx, *, session_id: str, name: str, words: str, is_adopted: bool) -> None:
    if sessions.load_in(tx, session_id).result.get("status") == "done":
        return  # another process has stored it
    messages.complete(tx, session_id=session_id, role="notice", text=words)
    tx.journal(
        EvolutionEnded(
            name=name, outcome="adopted" if is_adopted else "failed", reason=words, rounds=0
        ),
        session_id=session_id,
        result="ok" if is_adopted else "error",
    )
    if is_adopted:
        # Here, because the process that grew the tool may have ended while it waited for the user.
        result = {"status": "done", "summary": words}
        sessions.set_status(
            tx, session_id, "completed", detail=SessionCompleted(**result), result=result
        )


def _select_open(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT DISTINCT o.wave_id, o.session_id FROM outbox_actions AS o JOIN sessions AS s"
        " USING(session_id) WHERE o.phase NOT IN ('confirmed','failed_terminal')"
        " AND o.action_type=? AND s.transport=? LIMIT ?",
        (ADOPT, EVOLVE, _MOST_OPEN),
    )
    return [(str(wave_id), str(session_id)) for wave_id, session_id in rows]
