"""From a key to the frame that shows it, while a wave of 50,000 facts is compiled beside the screen.

The real application on a real store, driven without a terminal: a letter is typed into the prompt, and
the time is taken until the frame is painted that follows. The wave's orient stage (read, compile)
runs in a thread meanwhile, again and again, as the engine runs it. The list of one band's facts is
opened on the same session.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from compile import made
from measure import Row, at, row

from cockpit.app.actions import packet_actions
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.band_facts import BandFacts
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.fact_columns import load_columns
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.facts import Fact, Level
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves

Found = tuple[list[float], list[float], int, tuple[float, float]]
"""Seconds with nothing else and while it compiles, how often it compiled, and a list's two moments."""

KEYS = 200
BETWEEN_S = 0.02
LOOK_S = 0.0005
SIZE = (150, 42)


class Watched(CockpitApp):
    """Notes the moment of every frame."""

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012

    def __init__(self, engine: Runtime) -> None:
        super().__init__(engine)
        self.painted: list[float] = []

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self.painted.append(time.perf_counter())


def rows() -> list[Row]:
    """The table of this bench."""
    calm, busy, compiles, (stands, full) = asyncio.run(_run())
    return [
        row("keypress → frame, nothing else runs (p95)", 1000 * at(0.95, calm), "ms"),
        row(
            "keypress → frame while 50,000 facts compile (p95)",
            1000 * at(0.95, busy),
            "ms",
            most=33,
        ),
        row("compiles that ran meanwhile", compiles, "", least=1),
        row("a band's list, asked for → painted", 1000 * stands, "ms", most=100),
        row("its 10,000 facts of 50,000, asked for → painted", 1000 * full, "ms", most=500),
    ]


async def _run() -> Found:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        async with open_runtime(
            locate_project(root), RuntimeSettings(user_dir=Path(folder))
        ) as runtime:
            session_id = await runtime.start("investigate", model="offline")
            await runtime.store.write(lambda tx: _wave(tx, session_id))
            return await _typed(runtime, session_id)


def _wave(tx: Tx, session_id: str) -> None:
    profiles.ensure_default(tx, 150_000)
    wave = waves.create(tx, session_id=session_id, trace_id="bench")
    waves.advance(tx, wave.wave_id, "observing")
    found = [
        Fact(
            one.source_type,
            one.source_ref,
            one.band,
            Level(one.fact_id, one.level_tokens[0]),
            Level(one.source_ref, one.level_tokens[2]),
            provenance={"number": number},
            utility=one.utility,
        )
        for number, one in enumerate(made())
    ]
    facts.record(
        tx,
        session_id=session_id,
        wave_id=wave.wave_id,
        ordinal=wave.ordinal,
        pinned_now=wave.pinned_now,
        facts=found,
    )
    waves.advance(tx, wave.wave_id, "orienting")
    packet = _compiled(tx.connection, session_id)
    identity = packets.insert(
        tx, wave.wave_id, packet, pinned_now=wave.pinned_now, session_id=session_id
    )
    waves.advance(tx, wave.wave_id, "deciding", packet_id=identity)


def _compiled(connection: Any, session_id: str) -> packets.Packet:
    profile = profiles.load_current(connection, "default")
    return compile_packet(load_columns(connection, session_id, 1), profile, 1)


async def _typed(runtime: Runtime, session_id: str) -> Found:
    app = Watched(runtime)
    async with app.run_test(size=SIZE) as pilot:
        app.attach(session_id)
        await pilot.pause(1)
        calm = await _keys(app)
        compiles, ended = 0, False

        async def orient() -> None:
            nonlocal compiles
            while not ended:
                await asyncio.to_thread(
                    runtime.store.read_now, lambda found: _compiled(found, session_id)
                )
                compiles += 1

        working = asyncio.create_task(orient())
        busy = await _keys(app)
        ended = True
        await working
        return calm, busy, compiles, await _opened(app)


async def _opened(app: Watched) -> tuple[float, float]:
    """Seconds from asking for a band's list to its first frame, and to the one with all its rows."""
    started = time.perf_counter()
    packet_actions.show_band_facts(app, "situational")
    while not (isinstance(app.screen, BandFacts) and app.screen.list.size.height):
        await asyncio.sleep(LOOK_S)
    dialog = app.screen
    stands = await _next_frame(app)
    while not dialog.list.count:
        await asyncio.sleep(LOOK_S)
    return stands - started, await _next_frame(app) - started


async def _next_frame(app: Watched) -> float:
    """The moment of the first frame from now on."""
    app.painted.clear()
    while not app.painted:
        await asyncio.sleep(LOOK_S)
    return app.painted[0]


async def _keys(app: Watched) -> list[float]:
    """Seconds from a letter to the frame after it, for each of :data:`KEYS` letters."""
    from textual.events import Key

    took = []
    prompt = app.screen.prompt  # type: ignore[attr-defined]  # the cockpit's own screen
    for number in range(KEYS):
        letter = "abcdefgh "[number % 9]
        before = prompt.text
        started = time.perf_counter()
        app.post_message(Key("space" if letter == " " else letter, letter))
        while prompt.text == before:
            await asyncio.sleep(LOOK_S)
        while not app.painted or app.painted[-1] < started:
            await asyncio.sleep(LOOK_S)
        took.append(next(at for at in app.painted if at >= started) - started)
        app.painted.clear()
        await asyncio.sleep(BETWEEN_S)
    return took
