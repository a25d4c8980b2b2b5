"""Whole sessions on a project: scripted agents, real stores, and ways to look at what they read."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from loop import scenario as turns

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.fan_out import ObserveLimits
from cockpit.store.context import facts, observation_jobs, packets
from cockpit.store.context.observation_jobs import JobRow
from cockpit.store.context.packets import Entry
from cockpit.store.db.database import Store
from cockpit.store.sessions import waves

PATIENCE_S = 60
LONG = "".join(
    f"def reading_{n}(station):\n    return measured(station, {n}) * {n * 7919 % 1013}\n\n\n"
    for n in range(120)
)
"""A module that takes some thousand tokens."""


def ask(scope: Sequence[str], *, wave: int, finish: bool = False) -> str:
    """One turn of a scenario: in that wave, ask for ``scope``, or finish."""
    if finish:
        return turns.finish(f"wave = {wave}", summary="seen")
    words = {"purpose": "look", "question": "what is there?"}
    return turns.ask(*scope, when=f"wave = {wave}", text="I look.", **words)


def scenario(folder: Path, *scopes: Sequence[str]) -> str:
    """An agent that asks for these scopes, wave by wave, and finishes; gives the model's name."""
    turns = [ask(scope, wave=at) for at, scope in enumerate(scopes, start=1)]
    path = folder / "looks.toml"
    path.write_text("".join([*turns, ask((), wave=len(scopes) + 1, finish=True)]))
    return f"script:{path}"


@asynccontextmanager
async def runtime_on(root: Path, **fields: Any) -> AsyncIterator[Runtime]:
    settings = RuntimeSettings(user_dir=root.parent / "user", **fields)
    async with open_runtime(locate_project(root), settings) as runtime:
        yield runtime


async def looked(
    root: Path, model: str, *, limits: ObserveLimits | None = None, **fields: Any
) -> list[Wave]:
    """Run a session to its end, every read granted; what its waves read and knew."""
    async with runtime_on(root, observe=limits or ObserveLimits(), **fields) as runtime:
        session_id = await runtime.start(
            "look into it", model=model, policy="reads", interactive=False
        )
        session = await asyncio.wait_for(runtime.run(session_id), PATIENCE_S)
        assert session.result.get("status") == "done", session
        return seen(runtime.store, session_id)


class Wave:
    """What one wave read, and what its packet held, by the source of each fact."""

    def __init__(self, connection: sqlite3.Connection, wave_id: str) -> None:
        stored = packets.load(connection, wave_id)
        entries = [entry for _, entry in stored.packet.rendered()]
        words = facts.load_texts(connection, [entry.fact_id for entry in entries])
        self.digest = stored.digest
        self.dropped = stored.packet.dropped
        self.jobs: list[JobRow] = observation_jobs.select_for_wave(connection, wave_id)
        self.held: Mapping[str, Entry] = {words[one.fact_id].source_ref: one for one in entries}
        self.words: Mapping[str, str] = {one.source_ref: one.full for one in words.values()}
        self.journal: Mapping[str, dict[str, Any]] = {
            action: json.loads(detail)
            for action, detail in connection.execute(
                "SELECT action, detail_json FROM journal WHERE wave_id=? ORDER BY seq", (wave_id,)
            )
        }

    def job(self, item: str) -> JobRow:
        (found,) = [row for row in self.jobs if row.item == item]
        return found

    def told(self) -> str:
        """What came back from the calls of the wave before."""
        return "\n".join(text for ref, text in self.words.items() if ref.startswith("exchange:"))


def seen(store: Store, session_id: str) -> list[Wave]:
    return store.read_now(
        lambda c: [Wave(c, wave.wave_id) for wave in waves.select_for_session(c, session_id)]
    )


def counted(path: Path) -> dict[str, int]:
    """How many jobs a store has in each status, by another connection than its own."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(
            connection.execute(
                "SELECT status, count(*) FROM observation_jobs GROUP BY status"
            ).fetchall()
        )


def when(store: Store, happened: Callable[[dict[str, int]], bool]) -> asyncio.Event:
    """An event that is set by the first commit after which the jobs have come so far."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def look() -> None:
        if happened(counted(store.path)):
            loop.call_soon_threadsafe(event.set)

    store.on_commit(look)
    return event
