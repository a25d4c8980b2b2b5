"""Details of estimates: the expected and the actual expense of a session or a task."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail, Part


class Range(Part, frozen=True, kw_only=True):
    """A range; a tenth of tasks is expected below it, a tenth above it."""

    low: float
    """The 10th percentile."""
    likely: float
    """The median."""
    high: float
    """The 90th percentile."""

    def times(self, factor: float) -> Range:
        """Return the range of so many times the quantity."""
        low, likely, high = (round(each * factor, 6) for each in (self.low, self.likely, self.high))
        return Range(low=low, likely=likely, high=high)


class Expected(Part, frozen=True, kw_only=True):
    """The expected expense of the whole session or task, from its beginning to its end."""

    waves: Range
    """Waves; turns of an external agent."""
    tokens: Range
    """Tokens read and written."""
    cost_usd: Range | None
    """US dollars; null where no price is known."""
    work_ms: Range
    """Milliseconds of models and programs, without waiting for the user."""
    basis: str
    """``history`` or ``defaults``; ``mixed`` for many tasks that rest on either."""
    history: int
    """Past tasks of the kind that it rests on; of many tasks, those that rest on past ones."""


class OfEstimate(Detail, frozen=True, kw_only=True):
    """An event of one estimate."""

    subject: str
    """The subject of the estimate: the session's id, or a run of a task, for example ``T-4/1``."""
    unit: str
    """``session``, or ``task`` for all roles of a backlog task together."""
    kind: str
    """The kind of earlier work to compare with, for example ``bug``, ``bug/implementer`` or ``claude``."""


class EstimateMade(OfEstimate, frozen=True, kw_only=True):
    """A session, or a run of a task, was estimated before it began; or a session took as many waves as the
    most that was expected, and is corrected once."""

    expected: Expected
    """The estimate from now on."""
    model: str
    """The model's full name, ``runner:NAME`` for an external agent."""
    done: int = 0
    """Waves so far, of a correction."""
    why: str = ""
    """The range that was passed, in words; empty for a first estimate."""


class EstimateLearned(OfEstimate, frozen=True, kw_only=True):
    """The estimated session or task is done; its actual expense is history for later estimates."""

    waves: int
    """Waves that it took; turns of an external agent."""
    tokens: int
    """Tokens that it took."""
    cost_usd: float | None
    """US dollars that it cost; null where no price was known."""
    work_ms: int
    """Milliseconds of models and programs."""
    expected: Expected | UnsetType = UNSET
    """The first estimate; absent where the session became of another kind meanwhile."""
    again: bool | UnsetType = UNSET
    """True where it was learned before, because the session was resumed after its end."""
    model: str
    """The model's full name, ``runner:NAME`` for an external agent."""
