"""Details of growths: a tool that is missing is written test first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail


class EvolutionTried(Detail, frozen=True, kw_only=True):
    """A round: the model wrote a test or code, and the tests ran in the sandbox."""

    round: int
    """From 1."""
    step: str
    """``test`` or ``code``."""
    name: str
    """The tool's name."""
    outcome: str
    """``red``, ``green``, or ``refused`` for a step that could not be accepted."""
    digest: str
    """Of the test or the code; empty where it was refused."""
    output: str
    """The output of the tests, or the reason for the refusal; cut."""
    growth: str | UnsetType = UNSET
    """The key of the call that asked for it; missing for a growth with a session of its own."""


class EvolutionAnswered(Detail, frozen=True, kw_only=True):
    """A round ended. The row has the call of the model and the reply, for another process to continue."""

    growth: str
    """The key of the call that asked for it; empty for a growth with a session of its own."""
    round: int
    """From 1."""
    text: str
    """The model's words."""
    call: str
    """The name of its call; empty where it made none."""
    arguments: Mapping[str, Any]
    """Those of the call; masked."""
    answer: str
    """The reply to the model."""
    is_taken: bool
    """Whether the test or the code counts: the tests ran with it."""
    is_green: bool
    """Whether the tests passed."""
    unchanged: int
    """Rounds in a row that changed neither the code nor the failure."""
    last_failure: str
    """The last failure; empty without one."""
    red: str
    """How the test failed without code, once it was taken."""
    discussed: str | UnsetType = UNSET
    """The proposal that the user discussed, where this is not a round: ``answer`` has their words. The rounds
    begin anew then."""


class EvolutionEnded(Detail, frozen=True, kw_only=True):
    """A growth ended."""

    name: str
    """The tool's name; empty where no test was written."""
    outcome: str
    """``proposed``, ``adopted``, ``given_up``, ``stagnated``, ``rounds`` or ``failed``."""
    reason: str
    """Why, in words."""
    rounds: int
    """How many rounds it took."""
    growth: str | UnsetType = UNSET
    """The key of the call that asked for it; missing for a growth with a session of its own."""
