"""What happens when no model can be reached, or the machine is short of something: it passes like weather.

No task is blocked for it. The worker waits, and ends where that does not help. An error that a provider
returns for one prompt alone counts as that task's error instead. See ``docs/reference/chains.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from cockpit.agents.runs.agent_command_line import RunnerMissing
from cockpit.agents.streams.provider_limit import ProviderLimited
from cockpit.core.clock import format_time, parse_time
from cockpit.core.errors import find_machine_fault
from cockpit.decide.model import ModelError
from cockpit.learn.resume_line import one_line
from cockpit.tasks.task_context import TaskOutcome

NO_MODEL: Final = "no model"
"""How the reason of such an outcome, and of the worker's end, starts where the user has to fix it."""
NO_MODEL_NOW: Final = "no model for now"
"""The same where a network is the cause."""
LIMIT: Final = "limit until"
"""The same where a provider takes no more for now; the time follows, or nothing."""
NO_ROOM: Final = "machine"
"""The same where the machine is short of something."""
NOT_OFFLINE: Final = (
    "The offline rules cannot do tasks; they need a model. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or"
    " choose a model with --model or an external agent with --runner."
)
"""The message where only the offline rules are configured."""
WAIT_S: Final = 30.0
"""Seconds before a worker tries again; a provider's calls were retried before that."""
MAX_BATCHES: Final = 2
"""So many batches in a row that met an outage end the worker."""
MAX_LIMITED: Final = 12
"""So many batches in a row, where a provider does not say until when it takes no more."""
LONGEST_S: Final = 3_600.0
"""The most seconds before a worker looks whether such a limit is over."""

_TEMPORARY = ("network",)
_PERMANENT = ("auth", "config", "not_found")


def outage_reason(error: Exception, home: Path) -> str:
    """Return the outcome's reason when ``error`` means that nothing can succeed now; else empty.

    ``home`` is the main checkout: once it is gone, git's errors say nothing about the task.
    """
    if isinstance(error, ProviderLimited):
        return f"{LIMIT}: {'' if error.resets_at is None else format_time(error.resets_at)}"
    if isinstance(error, ModelError) and error.code == "rate_limit":
        return f"{LIMIT}: "
    if isinstance(error, ModelError) and error.code in _TEMPORARY:
        return f"{NO_MODEL_NOW}: {error.code}"
    if isinstance(error, ModelError) and error.code in _PERMANENT:
        return f"{NO_MODEL}: {error.code}"
    if isinstance(error, RunnerMissing):
        return f"{NO_MODEL}: {error.code}"
    if find_machine_fault(error):
        return f"{NO_ROOM}: {getattr(error, 'code', type(error).__name__)}"
    return "" if home.is_dir() else f"{NO_ROOM}: moved"


def describe_outage(error: Exception, home: Path) -> str:
    """Return an outage for the user."""
    if not home.is_dir():
        return f"{home} is not there: it was moved or deleted. Put it back."
    return str(error) or find_machine_fault(error)


def is_outage(reason: str) -> bool:
    """Whether an outcome, or a worker's end, has such a reason."""
    return reason.startswith(f"{NO_MODEL}: ") or is_passing(reason)


def is_passing(reason: str) -> bool:
    """Whether an outcome, a worker or a chain with this reason ended by an outage that passes by itself."""
    return reason.startswith((f"{NO_MODEL_NOW}: ", f"{LIMIT}: ", f"{NO_ROOM}: "))


def describe_limit(reason: str) -> str:
    """Return a provider's limit, stored as a reason, in words: ``limit until 03:10``."""
    until = reason.removeprefix(f"{LIMIT}: ")
    try:
        moment = parse_time(until)
    except ValueError:
        return "a provider's limit"
    return f"{LIMIT} {moment.astimezone():%d %b %H:%M}"


class Outage(Struct, frozen=True):
    """How long the model, or room on the machine, has been missing."""

    batches: int = 0
    """Batches in a row that met it."""
    message: str = ""
    """The last error."""
    kind: str = ""
    """How the worker's reason starts."""
    until: str = ""
    """When a provider's limit ends, where it says so."""

    def after(self, outcomes: Sequence[TaskOutcome]) -> Outage:
        """Return the outage after a batch; it is over once a task met none."""
        struck = [outcome for outcome in outcomes if is_outage(outcome.reason)]
        if not struck or len(struck) < len(outcomes):
            return Outage()
        kind, _, until = max(outcome.reason for outcome in struck).partition(": ")
        if kind != LIMIT:
            until = ""
        return Outage(self.batches + 1, one_line(struck[0].summary), kind, until)

    @property
    def end_reason(self) -> str:
        """Why the worker ends; empty while it may continue."""
        most = MAX_BATCHES if self.kind != LIMIT else MAX_LIMITED
        is_over = self.kind == NO_MODEL or (self.batches >= most and not self.until)
        return f"{self.kind}: {self.message.rstrip('.')}" if self.batches and is_over else ""

    def ends_at(self, now: datetime) -> datetime:
        """Return when to try again: as the provider says, or ever later, up to an hour."""
        if self.until:
            return max(parse_time(self.until), now + timedelta(seconds=1))
        if self.kind != LIMIT:
            return now + timedelta(seconds=WAIT_S)
        wait_s = min(WAIT_S * 2.0 ** min(self.batches - 1, 16), LONGEST_S)
        return now + timedelta(seconds=wait_s)
