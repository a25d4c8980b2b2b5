"""The shipped defaults: what a task takes in a project that has no history of its kind.

See ``docs/reference/planner.md``, defaults.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from cockpit.core.read_record import convert

ALL_ROLES = "task"
"""In the place of a role: a backlog task with all of its roles."""
Triple = tuple[float, float, float]
"""Low, likely, high."""


class Prior(Struct, frozen=True):
    """What a task of a kind takes, as far as nothing is known of the project."""

    waves: Triple
    tokens: Triple
    work_ms: Triple
    size: int
    """The size of the task that it is meant for, in tokens."""


class _Agents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    turns: Triple
    tokens_a_turn: int
    work_ms_a_turn: int


class _Defaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reference_size: int
    reference_task_size: int
    tokens_a_wave: int
    work_ms_a_wave: int
    waves: dict[str, Triple]
    roles: dict[str, float]
    agents: _Agents


def find_prior(task_type: str, role: str = "") -> Prior:
    """Return the prior of a task type, of a ``role``'s part, or of :data:`ALL_ROLES` together."""
    defaults = _load()
    waves = defaults.waves.get(task_type, defaults.waves["other"])
    share = defaults.roles.get(role, 1.0)
    shared = _times(waves, share)
    return Prior(
        (max(1.0, shared[0]), max(1.0, shared[1]), max(1.0, shared[2])),
        _times(shared, defaults.tokens_a_wave),
        _times(shared, defaults.work_ms_a_wave),
        defaults.reference_task_size if role == ALL_ROLES else defaults.reference_size,
    )


def find_agent_prior() -> Prior:
    """Return the prior of an external agent's session, which has turns in the place of waves."""
    agents = _load().agents
    return Prior(
        agents.turns,
        _times(agents.turns, agents.tokens_a_turn),
        _times(agents.turns, agents.work_ms_a_turn),
        _load().reference_size,
    )


def _times(values: Triple, factor: float) -> Triple:
    low, likely, high = values
    return low * factor, likely * factor, high * factor


@cache
def _load() -> _Defaults:
    text = files("cockpit").joinpath("data/estimates.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), _Defaults)
