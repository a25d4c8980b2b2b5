"""The outcome of proposing or deciding, and the error of a profile change that the guard refused."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.errors import CockpitError, Stale
from cockpit.orient.profile_changes.guard import Refusal


class ProfileChangeRefused(CockpitError):
    """The guard refused a profile change; ``code`` is the most severe of the ``refusals``' codes."""

    def __init__(self, refusals: Sequence[Refusal], proposal_id: str = "") -> None:
        messages = " ".join(dict.fromkeys(refusal.message for refusal in refusals))
        super().__init__(f"{refusals[0].code}: {messages}", code=refusals[0].code)
        self.refusals = tuple(refusals)
        self.proposal_id = proposal_id


class DecisionOutcome(Struct, frozen=True):
    """The status of a proposal after it was proposed or decided."""

    proposal_id: str
    status: str
    version: int | None = None
    """The profile version that an approved change became."""
    refusals: tuple[Refusal, ...] = ()
    """The guard's refusals of a profile change in this call."""
    reason: str = ""
    """Why the proposal expired, where it was not its deadline."""

    def raise_if_refused(self) -> DecisionOutcome:
        """Return the outcome itself.

        Raises :class:`ProfileChangeRefused` when the guard refused, and ``Stale`` when the deadline had
        passed.
        """
        failure = self.failure()
        if failure is not None:
            raise failure
        return self

    def failure(self) -> CockpitError | None:
        """Return the error of a refusal or a missed deadline, which is raised after the commit; else None."""
        if self.refusals:
            return ProfileChangeRefused(self.refusals, self.proposal_id)
        if self.status == "expired" and self.reason:
            return Stale(
                f"{self.reason} Proposal {self.proposal_id} is closed; nothing was allowed."
            )
        if self.status == "expired":
            return Stale(f"The deadline of proposal {self.proposal_id} has passed; it expired.")
        return None
