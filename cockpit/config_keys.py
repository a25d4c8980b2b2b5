"""Every key of the configuration, once: type, bounds, environment variable, and who may set it.

What reads files, environment and flags, what writes the template of ``cockpit init`` and what
``docs/configuration.md`` is tested against all look here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

POLICIES = ("ask", "trusted", "reads", "all")

_WORDS = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class OutOfBounds(ValueError):
    """A value that its key does not allow."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``allowed`` says in words what ``type`` enforces.

    ``field`` is where the value goes in the runtime's settings (``limits.max_waves``); it is empty
    for what is the screen's. ``project`` tells what a project file may do: ``any`` value, only a
    ``lower`` or a ``higher`` one than the layers before it, or ``none``.
    """

    table: str
    name: str
    field: str
    type: Any
    allowed: str
    default: Any
    env: str
    purpose: str
    project: Literal["any", "lower", "higher", "none"] = "any"

    @property
    def full(self) -> str:
        """As errors name it: ``[model] timeout_s``."""
        return f"[{self.table}] {self.name}"

    def read(self, value: object, *, written_as_text: bool = False) -> Any:
        """The checked value. Text from the environment is converted, a file's value is not.

        Raises :class:`OutOfBounds`, whose words say what is allowed.
        """
        try:
            read = msgspec.convert(value, self.type, strict=not written_as_text)
        except msgspec.ValidationError as error:
            raise OutOfBounds(f"it must be {self.allowed}") from error
        if isinstance(read, float) and not math.isfinite(read):
            raise OutOfBounds(f"it must be {self.allowed}")
        return read


def _whole(least: int, most: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


def _number(least: float, most: float) -> Any:
    return Annotated[float, msgspec.Meta(ge=least, le=most)]


KEYS: tuple[Key, ...] = (
    Key(
        "model",
        "name",
        "model.model",
        _WORDS,
        "a model's name such as anthropic:NAME, openai:NAME, openai-compatible:NAME or offline",
        None,
        "COCKPIT_MODEL",
        "which model a new session talks to; without it, the provider whose key is set, else offline",
    ),
    Key(
        "model",
        "base_url",
        "model.base_url",
        _WORDS,
        "an http or https address",
        None,
        "COCKPIT_BASE_URL",
        "the address of an openai-compatible server",
        project="none",
    ),
    Key(
        "model",
        "timeout_s",
        "model.timeout_s",
        _number(1, 3600),
        "a number of seconds from 1 to 3600",
        120.0,
        "COCKPIT_TIMEOUT_S",
        "the longest silence of a model that is waited through, in seconds",
    ),
    Key(
        "model",
        "max_retries",
        "model.max_retries",
        _whole(0, 20),
        "a whole number from 0 to 20",
        4,
        "COCKPIT_MAX_RETRIES",
        "how often a model call that failed for a passing reason is tried again",
    ),
    Key(
        "budget",
        "ORIENTATION_TOKEN_BUDGET",
        "token_budget",
        _whole(1_000, 2_000_000),
        "a whole number of tokens from 1000 to 2000000",
        150_000,
        "ORIENTATION_TOKEN_BUDGET",
        "tokens of one packet, all bands together",
    ),
    Key(
        "observe",
        "MAX_OBSERVATION_JOBS_PER_WAVE",
        "observe.max_jobs",
        _whole(1, 10_000),
        "a whole number from 1 to 10000",
        10_000,
        "MAX_OBSERVATION_JOBS_PER_WAVE",
        "observation jobs of one wave",
    ),
    Key(
        "observe",
        "MAX_CONCURRENT_OBSERVERS",
        "observe.max_concurrent",
        _whole(1, 128),
        "a whole number from 1 to 128",
        128,
        "MAX_CONCURRENT_OBSERVERS",
        "observation jobs that run at the same moment",
    ),
    Key(
        "observe",
        "MAX_FACTS_PER_WAVE",
        "observe.max_facts",
        _whole(1, 50_000),
        "a whole number from 1 to 50000",
        50_000,
        "MAX_FACTS_PER_WAVE",
        "facts that one wave may store",
    ),
    Key(
        "observe",
        "job_timeout_s",
        "observe.job_timeout_s",
        _number(1, 3600),
        "a number of seconds from 1 to 3600",
        60.0,
        "COCKPIT_JOB_TIMEOUT_S",
        "how long one observation job may take, in seconds",
    ),
    Key(
        "approval",
        "policy",
        "policy",
        Literal["ask", "trusted", "reads", "all"],
        "one of ask, trusted, reads, all",
        "ask",
        "COCKPIT_APPROVE",
        "what is approved without a person: nothing, what trust rules cover, reads, or everything",
        project="none",
    ),
    Key(
        "approval",
        "deadline_s",
        "limits.deadline_s",
        _number(1, 30 * 86_400),
        "a number of seconds from 1 to 2592000",
        3_600.0,
        "COCKPIT_DEADLINE_S",
        "how long a proposal of a headless session waits for a person, in seconds",
        project="lower",
    ),
    Key(
        "work",
        "answer_tokens",
        "answer_tokens",
        _whole(500, 100_000),
        "a whole number of tokens from 500 to 100000",
        8_000,
        "COCKPIT_ANSWER_TOKENS",
        "the most that one answer about tasks holds; a longer one comes in pages",
    ),
    Key(
        "limits",
        "max_waves",
        "limits.max_waves",
        _whole(1, 1_000),
        "a whole number from 1 to 1000",
        50,
        "COCKPIT_MAX_WAVES",
        "waves of one session before it stops by itself",
        project="lower",
    ),
    Key(
        "limits",
        "max_cost",
        "limits.max_cost",
        _number(0, 100_000),
        "an amount in US dollars from 0 to 100000",
        None,
        "COCKPIT_MAX_COST",
        "US dollars that one session may spend on its model; without it, no limit",
        project="lower",
    ),
    Key(
        "log",
        "json",
        "log_json",
        _WORDS,
        "a path of a file",
        None,
        "COCKPIT_LOG_JSON",
        "a file to which every journal row of this process's time is appended as a JSON line",
        project="none",
    ),
    Key(
        "adaptation",
        "auto",
        "adaptation.auto",
        Literal["never", "weights"],
        "one of never, weights",
        "never",
        "COCKPIT_ADAPTATION_AUTO",
        "what an agent may shift without a person: nothing, or weights inside its envelope",
        project="none",
    ),
    Key(
        "adaptation",
        "at_horizon",
        "adaptation.at_horizon",
        Literal["revert", "promote_if_better"],
        "one of revert, promote_if_better",
        "revert",
        "COCKPIT_AT_HORIZON",
        "what becomes of an adapted profile when its waves are over",
        project="none",
    ),
    Key(
        "adaptation",
        "max_waves",
        "adaptation.max_waves",
        _whole(1, 1_000),
        "a whole number from 1 to 1000",
        50,
        "COCKPIT_ADAPTATION_WAVES",
        "the most waves that one profile change may hold",
        project="lower",
    ),
    Key(
        "adaptation",
        "floor_percent",
        "adaptation.floor_percent",
        _whole(0, 100),
        "a whole number from 0 to 100",
        100,
        "COCKPIT_FLOOR_PERCENT",
        "the least floor of a band that a profile change may set, in percent of the shipped one",
        project="higher",
    ),
    Key(
        "adaptation",
        "min_judged_waves",
        "adaptation.min_judged_waves",
        _whole(1, 1_000),
        "a whole number from 1 to 1000",
        3,
        "COCKPIT_MIN_JUDGED_WAVES",
        "how many waves must have been judged under an adaptation, and before it, to keep it",
        project="higher",
    ),
    Key(
        "screen",
        "theme",
        "",
        _WORDS,
        "the name of a theme",
        "cockpit-dark",
        "COCKPIT_THEME",
        "the screen's theme",
    ),
)

TABLES = tuple(dict.fromkeys(key.table for key in KEYS))
ENVIRONMENT = frozenset(key.env for key in KEYS) | {
    "COCKPIT_CONFIG_DIR",
    "COCKPIT_DEBUG",
    "COCKPIT_API_KEY",
    "COCKPIT_TOKEN",
}
"""Every variable that cockpit reads itself (the providers' keys and addresses aside)."""


def key_of(table: str, name: str) -> Key | None:
    """The key of that name, or None."""
    return next((key for key in KEYS if (key.table, key.name) == (table, name)), None)
