"""What a runtime is told: models, budget, caps, deadlines and the user's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cockpit.decide.model_settings import ModelSettings
from cockpit.loop.decisions.approved_effects import Commissions

DEFAULT_BUDGET = 150_000


@dataclass(frozen=True, slots=True)
class Limits:
    """When a session ends by itself. ``max_waves`` counts waves, ``max_cost`` is in US dollars,
    ``deadline_s`` seconds that a proposal of a headless session waits for a person."""

    max_waves: int = 50
    max_cost: float | None = None
    deadline_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class ObserveLimits:
    """RFC-003 §10.1's hard caps, by their names."""

    max_jobs: int = 10_000
    max_concurrent: int = 128
    max_facts: int = 50_000
    job_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class AdaptationLimits:
    """RFC-003 §10.3–10.4: what passes without a person, what happens at a horizon's end, the longest
    horizon in waves, the least floors as a part of the shipped ones, and how many waves must have been
    judged under a version, and under the one before it, to compare them."""

    auto: Literal["never", "weights"] = "never"
    at_horizon: Literal["revert", "promote_if_better"] = "revert"
    max_waves: int = 50
    floor_percent: int = 100
    min_judged_waves: int = 3


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """An agent of somebody else's that may take a role's part in place of the engine.

    ``command`` is its argv with placeholders; ``format`` how its output is read (``auto`` finds out);
    ``env`` names the variables that it gets although they look like secrets. ``timeout_s`` seconds and
    ``max_output_mb`` mebibytes of output end a run.
    """

    name: str
    command: tuple[str, ...]
    format: Literal["auto", "claude", "codex", "text"] = "auto"
    env: tuple[str, ...] = ()
    timeout_s: float = 3600.0
    max_output_mb: int = 64


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Everything that a runtime needs to know and does not find in the project. ``commissions`` are the
    actions without a session that it can carry out, by their type."""

    model: ModelSettings = field(default_factory=ModelSettings)
    policy: str = "ask"
    token_budget: int = DEFAULT_BUDGET
    answer_tokens: int = 8_000
    limits: Limits = field(default_factory=Limits)
    observe: ObserveLimits = field(default_factory=ObserveLimits)
    adaptation: AdaptationLimits = field(default_factory=AdaptationLimits)
    user_dir: Path = Path()
    environment: Mapping[str, str] = field(default_factory=dict)
    runners: Mapping[str, RunnerSettings] = field(default_factory=dict)
    log_json: str | None = None
    commissions: Commissions = field(default_factory=dict)
