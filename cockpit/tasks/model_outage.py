"""What happens when the model cannot be reached: no task is blocked for it, and the worker ends.

An error that a provider returns for one prompt alone counts as that task's error instead. See
``docs/reference/chains.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cockpit.agents.runs.agent_command_line import RunnerMissing
from cockpit.decide.model import ModelError
from cockpit.learn.resume_line import one_line
from cockpit.tasks.task_context import TaskOutcome

NO_MODEL: Final = "no model"
"""How the reason of such an outcome, and of the worker's end, starts."""
NOT_OFFLINE: Final = (
    "The offline rules cannot do tasks; they need a model. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or"
    " choose a model with --model or an external agent with --runner."
)
"""The message where only the offline rules are configured."""
WAIT_S: Final = 30.0
"""Seconds before a worker tries again; the calls themselves were retried before that."""
MAX_BATCHES: Final = 2
"""So many batches in a row without a model end the worker."""

_TEMPORARY = ("network", "rate_limit")
_PERMANENT = ("auth", "config", "not_found")


def outage_reason(error: Exception) -> str:
    """Return the outcome's reason when ``error`` means that no call can succeed now; else empty."""
    if isinstance(error, ModelError) and error.code in (*_TEMPORARY, *_PERMANENT):
        return f"{NO_MODEL}: {error.code}"
    return f"{NO_MODEL}: {error.code}" if isinstance(error, RunnerMissing) else ""


class Outage(Struct, frozen=True):
    """How long the model has been missing."""

    batches: int = 0
    """Batches in a row without a model."""
    message: str = ""
    """The last error."""
    temporary: bool = True
    """Whether the model may be back soon."""

    def after(self, outcomes: Sequence[TaskOutcome]) -> Outage:
        """Return the outage after a batch; it is over once a task had its model."""
        without_model = [outcome for outcome in outcomes if outcome.reason.startswith(NO_MODEL)]
        if not without_model or len(without_model) < len(outcomes):
            return Outage()
        code = without_model[0].reason.removeprefix(f"{NO_MODEL}: ")
        return Outage(self.batches + 1, one_line(without_model[0].summary), code in _TEMPORARY)

    @property
    def end_reason(self) -> str:
        """Why the worker ends; empty while it may continue."""
        if self.batches and (not self.temporary or self.batches >= MAX_BATCHES):
            return f"{NO_MODEL}: {self.message.rstrip('.')}"
        return ""
