"""From the user's Enter to a tool that can be called: its files are written once, and their digest approved.

See ``docs/reference/evolve.md``, adoption.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from cockpit.act.adapters.adapter import Found, Outcome, failed, succeeded
from cockpit.act.adapters.write_files import put_file
from cockpit.act.dispatch_actions import Dispatcher, settle
from cockpit.act.own_tools.describe_tools import describe_file
from cockpit.act.own_tools.tool_files import ToolFolder, load_tool_file
from cockpit.act.text_edits import bytes_digest, digest_now
from cockpit.act.workspace import Workspace
from cockpit.core.canonical_json import digest
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from cockpit.evolve.grow_tool import Grown
from cockpit.loop.wave_context import Engine
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.evolution import EvolutionEnded
from cockpit.store.journal.details.sessions import SessionCompleted
from cockpit.store.sessions import messages, proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.tools import approved_tools

ADOPT = "adopt_tool"
"""The type of the action that adopts a tool."""
_MOST_OPEN = 100


class _Payload(msgspec.Struct, frozen=True):
    name: str
    code_path: str
    code: str
    test_path: str
    test: str


async def propose_tool(
    engine: Engine, session_id: str, grown: Grown, revises: Proposal | None
) -> Proposal:
    """Propose what grew: its code, its test, how the test failed without it, and the green run."""
    growth, store = grown.growth, engine.store
    name = growth.name
    code_path, test_path = f".cockpit/tools/{name}.py", f".cockpit/tools/tests/test_{name}.py"
    session = await store.read(lambda c: sessions.load(c, session_id))
    today = format_time(store.clock.now())[:10]
    provenance = (
        f"# Written by {session.model} with cockpit evolve, session {session_id}, on {today}.\n"
        f"# Wanted: {' '.join(growth.want.split())[:300]}\n"
        f"# Its test {test_path} failed without this code and passes with it.\n"
    )
    payload = {
        "name": name,
        "code_path": code_path,
        "code": f"{provenance}{growth.code.rstrip()}\n",
        "test_path": test_path,
        "test": f"{growth.test.rstrip()}\n",
    }
    confined = engine.ground.confined
    taken = [path for path in (code_path, test_path) if digest_now(confined, path) is not None]
    if taken:
        raise CockpitError(f"{', '.join(taken)} exists already; nothing is proposed.")
    definition = grown.definition
    named = digest([session_id, payload, revises and revises.proposal_id])
    body: dict[str, Any] = {
        "type": ADOPT,
        "summary": f"Adopt the tool {name}: {growth.purpose}",
        "fields": [
            ["tool", name],
            ["effects", definition.effects if definition else "writes"],
            ["grown in", f"{growth.rounds} rounds"],
            ["green", f"{grown.run.ran} tests, in a fresh process" if grown.run else ""],
            ["sandbox", engine.ground.sandbox.words()],
        ],
        "body": f"Without the code:\n\n{growth.red}",
        "diffs": [
            {"path": code_path, "before": None, "after": payload["code"]},
            {"path": test_path, "before": None, "after": payload["test"]},
        ],
        "notes": [
            "Once adopted, sessions of this project may call it; each call asks by its risk.",
            "It runs in the sandbox only. Its files belong into version control.",
        ],
        "payload": payload,
        "key": f"{ADOPT}-{named[:24]}",
    }
    return await store.write(
        lambda tx: proposals.create(
            tx,
            proposal_id=f"p-{named[:10]}",
            kind="action",
            session_id=session_id,
            wave_id="",
            title=f"adopt the tool {name}",
            body=body,
            risk="medium",
            revises=None if revises is None else revises.proposal_id,
        )
    )


class AdoptAdapter:
    """Writes the two files where nothing is, and approves the tool by their digest."""

    ends_when_cancelled = False

    def __init__(self, store: Store) -> None:
        self._store = store

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Write and approve; files that are there with this content already are taken as written."""
        request = msgspec.convert(payload, _Payload)
        problem = await asyncio.to_thread(_write, request, key, ground)
        if problem:
            return failed("conflict", problem)
        root = ground.root
        folder = ToolFolder("project", root / ".cockpit" / "tools", root)
        file = await asyncio.to_thread(load_tool_file, folder, f"{request.name}.py")
        definitions = await describe_file(file, ground.sandbox, root, ground.environment)

        def approve(tx: Tx) -> None:
            for definition in definitions:
                if approved_tools.find(tx.connection, definition.tool_id) is None:
                    approved_tools.approve(tx, definition.body(), by="person")

        await self._store.write(approve)
        return succeeded(
            f"The tool {request.name} is adopted: {request.code_path} and {request.test_path} are written."
        )

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Compare the files with what was approved; writing them again changes nothing."""
        request = msgspec.convert(payload, _Payload)
        there = [
            digest_now(ground.confined, path) == bytes_digest(text.encode())
            for path, text in ((request.code_path, request.code), (request.test_path, request.test))
        ]
        tool_id = f"project:{request.name}"
        approved = await self._store.read(lambda c: approved_tools.find(c, tool_id))
        return "done" if all(there) and approved is not None else "not_done"


def _write(request: _Payload, key: str, ground: Workspace) -> str:
    """Write both files; returns why they could not be, or ''."""
    wanted = ((request.code_path, request.code), (request.test_path, request.test))
    for path, text in wanted:
        now = digest_now(ground.confined, path)
        if now not in (None, bytes_digest(text.encode())):
            return f"{path} exists with another content; nothing was written."
    for path, text in wanted:
        if digest_now(ground.confined, path) is None and not put_file(
            ground.confined, path, text.encode(), key, None
        ):
            return f"{path} appeared while it was written; it was left as it is."
    return ""


async def carry_out(engine: Engine) -> None:
    """Do every adoption that is queued, or that a dead process left. Raises ``CockpitError`` for failures."""
    dispatcher = Dispatcher(engine.store, engine.ground, {ADOPT: AdoptAdapter(engine.store)})
    problems = []
    for wave_id, session_id in await engine.store.read(_select_open):
        await dispatcher.recover(session_id)
        for action in await dispatcher.run_wave(wave_id):
            ended = action
            if ended.phase == "uncertain":
                ended = await settle(engine.store, ended.action_id, "drop", by="engine")
            name = str(ended.payload.get("name", ""))
            is_adopted = ended.phase == "confirmed"
            words = f"The tool {name} is adopted." if is_adopted else ended.last_error
            step = partial(
                _end, session_id=session_id, name=name, words=words, is_adopted=is_adopted
            )
            await engine.store.write(step)
            if not is_adopted:
                problems.append(words)
    if problems:
        raise CockpitError(" ".join(problems))


def _end(tx: Tx, *, session_id: str, name: str, words: str, is_adopted: bool) -> None:
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
        "SELECT DISTINCT wave_id, session_id FROM outbox_actions"
        " WHERE phase NOT IN ('confirmed','failed_terminal') AND action_type=? LIMIT ?",
        (ADOPT, _MOST_OPEN),
    )
    return [(str(wave_id), str(session_id)) for wave_id, session_id in rows]
