"""Waves with real facts and packets that were really compiled."""

from __future__ import annotations

from app_scenes import Scene

from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.fact_columns import load_columns
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.facts import Fact, Level
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves


def fact(number: int, *, band: str = "situational", tokens: int = 900, text: str = "") -> Fact:
    path = f"src/part_{number:05}.py"
    return Fact(
        "file",
        f"file:{path}:1-40",
        band,
        Level(text or f"def part_{number}():\n    return {number}\n", tokens),
        Level(f"{path} 40 lines", 8),
        provenance={"path": path, "lines": [1, 40], "sha256": f"{number:064x}"},
        dedupe_key=f"file:{path}",
        utility=(number * 7_919) % 1_000_000,
    )


def compiled(scene: Scene, *seen: Fact) -> Scene:
    """The next wave: it sees ``seen``, orients and decides."""

    def begin(tx: Tx) -> str:
        profiles.ensure_default(tx, 150_000)
        wave = waves.create(tx, session_id=scene.session_id, trace_id="t")
        waves.advance(tx, wave.wave_id, "observing")
        facts.record(
            tx, session_id=scene.session_id, wave_id=wave.wave_id, ordinal=wave.ordinal,
            pinned_now=wave.pinned_now, facts=seen,
        )  # fmt: skip
        waves.advance(tx, wave.wave_id, "orienting")
        profile = profiles.load_current(tx.connection, "default")
        made = compile_packet(
            load_columns(tx.connection, scene.session_id, wave.ordinal), profile, wave.ordinal
        )
        identity = packets.insert(
            tx, wave.wave_id, made, pinned_now=wave.pinned_now, session_id=scene.session_id
        )
        waves.advance(
            tx, wave.wave_id, "deciding", packet_id=identity,
            profile_version=made.profile_version,
        )  # fmt: skip
        return wave.wave_id

    scene.wave_id = scene.store.write_now(begin)
    return scene


def done(scene: Scene) -> Scene:
    return scene.advance("acting", "learning", "completed")
