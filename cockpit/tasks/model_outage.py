"""When the model cannot be had: no task is to blame for it, so none is blocked, and the session ends.

What the provider refuses for one prompt alone is that task's trouble, and counts as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cockpit.agents.agent_command import RunnerMissing
from cockpit.decide.model import ModelError
from cockpit.learn.resume_line import one_line
from cockpit.loop.intake.roles import RoleInvalid
from cockpit.tasks.task_context import TaskOutcome

NO_MODEL: Final = "no model"
"""How the reason of such an outcome, and of the session's end, begins."""
NOT_OFFLINE: Final = (
    "The offline rules do no task; it needs a model. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name "
    "another with --model, or an agent with --runner."
)
"""What is said where there is no model but the rules."""
WAIT_S: Final = 30.0
"""How long a session waits before it tries again, in seconds: calls were retried before that."""
MOST: Final = 2
"""So many batches one after another that all lacked their model end the session."""

_FILES = (RunnerMissing, RoleInvalid)
"""What the person's settings or files lack."""
_PASSING = ("network", "rate_limit")
_FOR_GOOD = ("auth", "config", "not_found")


def outage_reason(error: Exception) -> str:
    """The reason of the outcome when ``error`` says that no call can succeed now; empty otherwise."""
    if isinstance(error, ModelError) and error.code in (*_PASSING, *_FOR_GOOD):
        return f"{NO_MODEL}: {error.code}"
    return f"{NO_MODEL}: {error.code}" if isinstance(error, _FILES) else ""


@dataclass(frozen=True, slots=True)
class Outage:
    """``batches`` that lacked their model by now, one after another, and the last one's ``words``;
    ``passing``: it may be there again soon."""

    batches: int = 0
    words: str = ""
    passing: bool = True

    def after(self, outcomes: Sequence[TaskOutcome]) -> Outage:
        """The outage once a batch ended so: over when one of its tasks had its model."""
        lacked = [one for one in outcomes if one.reason.startswith(NO_MODEL)]
        if not lacked or len(lacked) < len(outcomes):
            return Outage()
        code = lacked[0].reason.removeprefix(f"{NO_MODEL}: ")
        return Outage(self.batches + 1, one_line(lacked[0].summary), code in _PASSING)

    @property
    def ends(self) -> str:
        """Why the session ends; empty while it may go on."""
        if self.batches and (not self.passing or self.batches >= MOST):
            return f"{NO_MODEL}: {self.words.rstrip('.')}"
        return ""
