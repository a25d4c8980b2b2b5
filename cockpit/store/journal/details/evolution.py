"""Details of growths: a tool that is missing is written test first."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class EvolutionStarted(Detail, frozen=True, kw_only=True):
    """A tool that is missing is to be written."""

    want: str
    """What it has to do, in words."""


class EvolutionTried(Detail, frozen=True, kw_only=True):
    """A round: the model wrote a test or code, and the tests ran in the sandbox."""

    round: int
    """From 1."""
    step: str
    """``test`` or ``code``."""
    name: str
    """The tool's name."""
    outcome: str
    """``red``, ``green``, or ``refused`` for what could not be taken as a step."""
    digest: str
    """Of the test or the code; empty where it was refused."""
    output: str
    """What the tests printed, or why it was refused; cut."""


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
