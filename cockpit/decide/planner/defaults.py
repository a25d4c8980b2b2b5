"""The shipped defaults: what a task takes in a project that has no history of its kind.

See ``docs/reference/planner.md``, defaults.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from cockpit.core.read_record import convert
from cockpit.store.journal.details.estimates import Expected, Range

ALL_ROLES = "task"
"""In the place of a role: a backlog task with all of its roles."""
Triple = tuple[float, float, float]
"""Low, likely, high."""


class _Agents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    turns: Triple
    tokens_a_turn: int
    work_ms_a_turn: int


class _Defaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens_a_wave: int
    work_ms_a_wave: int
    waves: dict[str, Triple]
    roles: dict[str, float]
    agents: _Agents


def find_default(task_type: str, role: str = "") -> Expected:
    """Return what a task of a type takes, a ``role``'s part of it, or :data:`ALL_ROLES` together."""
    defaults = _load()
    waves = defaults.waves.get(task_type, defaults.waves["other"])
    shared = [max(1.0, each * defaults.roles.get(role, 1.0)) for each in waves]
    return _describe(shared, defaults.tokens_a_wave, defaults.work_ms_a_wave)


def find_agent_default() -> Expected:
    """Return what a session of an external agent takes, which has turns in the place of waves."""
    agents = _load().agents
    return _describe(agents.turns, agents.tokens_a_turn, agents.work_ms_a_turn)


def _describe(waves: Triple | list[float], tokens: int, work_ms: int) -> Expected:
    low, likely, high = map(round, waves)
    each = Range(low=low, likely=likely, high=high)
    return Expected(
        waves=each,
        tokens=each.times(tokens),
        cost_usd=None,
        work_ms=each.times(work_ms),
        basis="defaults",
        history=0,
    )


@cache
def _load() -> _Defaults:
    text = files("cockpit").joinpath("data/estimates.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), _Defaults)
