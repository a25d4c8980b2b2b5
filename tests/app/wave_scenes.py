"""A session of several waves whose packets grow, with what their calls cost."""

from __future__ import annotations

from app_scenes import Scene

from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.trace_ids import Trace
from cockpit.store.sessions import sessions, waves

LIMITS = {
    "identity": (12_000, 18_000, 25_000),
    "objectives": (15_000, 22_000, 40_000),
    "capabilities": (10_000, 15_000, 25_000),
    "situational": (45_000, 70_000, 110_000),
    "exploration": (5_000, 12_000, 25_000),
    "reserve": (3_000, 5_000, 8_000),
}
ALL = ("observing", "orienting", "deciding", "acting", "learning", "completed")


def use(wave: int, fresh: int) -> dict[str, int]:
    """The tokens of each band in a wave of an epoch that wave ``fresh`` began."""
    grown = wave - fresh
    return {
        "identity": 4_100,
        "objectives": 2_400 + 700 * wave,
        "capabilities": 9_800,
        "situational": 21_000 + 11_500 * grown,
        "exploration": 1_200 + 900 * grown,
        "reserve": 5_000,
    }


def walk(
    scene: Scene, count: int, *, last: tuple[str, ...] = ALL, fresh: tuple[int, ...] = (1, 6)
) -> Scene:
    """Take ``scene`` through ``count`` waves, the last one to the last of ``last``."""
    for wave in range(1, count + 1):
        scene.store.write_now(
            lambda tx, wave=wave: _walk(tx, scene, wave, ALL if wave < count else last, fresh)
        )
    return scene


def _walk(
    tx: Tx, scene: Scene, number: int, phases: tuple[str, ...], fresh: tuple[int, ...]
) -> None:
    wave = waves.create(tx, session_id=scene.session_id, trace_id="t")
    scene.wave_id = wave.wave_id
    first = max(each for each in fresh if each <= number)
    used, before = use(number, first), use(number - 1, first) if number > first else {}
    prompt = sum(used.values()) - used["reserve"]
    cached = sum(before.values()) - before.get("reserve", 0)
    for phase in phases:
        if phase == "deciding":
            tx.append_row(
                Action.PACKET_COMPILED,
                session_id=scene.session_id,
                wave_id=wave.wave_id,
                trace=Trace(profile_id="default", profile_version=7),
                body={
                    "digest": f"9f31c2e8a4{number:02}", "ordinal": number,
                    "token_used": sum(used.values()), "token_budget": 150_000,
                    "facts": 30 * number, "dropped": number // 3, "drops": {},
                    "bands": [
                        {"band": band, "used": used[band], "min": low, "target": target, "max": high,
                         "facts": 5 * number, "dropped": number // 3 if band == "situational" else 0}
                        for band, (low, target, high) in LIMITS.items()
                    ],
                    "epoch": {"first": first, "reason": "budget" if first == number else "",
                              "rendered_tokens": prompt, "cached_expected": cached,
                              "headroom": 0},
                },
            )  # fmt: skip
        waves.advance(tx, wave.wave_id, phase)
        if phase == "deciding":
            of_cached, of_new = 0.3e-6 * cached, 3.75e-6 * (prompt - cached)
            answer = 15e-6 * 900
            cost = of_cached + of_new + answer
            sessions.add_usage(
                tx, scene.session_id, input_tokens=prompt, output_tokens=900,
                cached_tokens=cached, cost_usd=cost,
            )  # fmt: skip
            tx.append_row(
                Action.MODEL_COMPLETED,
                session_id=scene.session_id,
                wave_id=wave.wave_id,
                body={
                    "model": "anthropic:claude-sonnet-5", "input_tokens": prompt,
                    "output_tokens": 900, "cached_tokens": cached, "cost_usd": cost, "stop": "end",
                    "input_usd": of_cached + of_new, "cached_usd": of_cached,
                },
            )  # fmt: skip
