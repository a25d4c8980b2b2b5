"""Details of orientation profiles and their temporary changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.store.journal.details.detail import Detail


class ProfileChange(Detail, frozen=True, kw_only=True):
    """A proposed change of a profile."""

    proposal_id: str
    profile_id: str
    base_version: int
    """The version that the change starts from."""
    effective_waves: int
    """How many waves it applies to; 0: permanently."""
    requested_by: str
    """The principal that requested it."""


class ProfileProposed(ProfileChange, frozen=True, kw_only=True):
    """A change of the profile was proposed."""

    reason: str
    """Why, in the proposer's words."""
    payload: Mapping[str, Any]
    """The change itself."""


class ProfileApproved(ProfileChange, frozen=True, kw_only=True):
    """The change was approved."""

    approved_by: str
    """The approver."""


class ProfileRejected(ProfileChange, frozen=True, kw_only=True):
    """The change was rejected; the row's ``error_code`` is the first code."""

    codes: tuple[str, ...]
    """Why, as codes."""
    message: str
    """Why, for people to read."""


class ProfileApplied(ProfileChange, frozen=True, kw_only=True):
    """The change became a version of the profile."""

    version: int
    """The version it became."""


class ProfileEnded(Detail, frozen=True, kw_only=True):
    """A temporary change of a profile expired and was compared with the waves before it, or a user put an
    earlier version back."""

    how: str
    """``reverted`` (the version before it applies again), ``promoted`` (it was kept permanently) or
    ``rolled_back`` by a user."""
    profile_id: str
    base_version: int
    """The version whose content applies again."""
    version: int
    """The new version with that content."""
    ended_version: int
    """The version that ended."""
    proposal_id: str
    """The change that ended; empty without one."""
    horizon_waves: int = 0
    """How many waves it was to apply to."""
    waves_begun: int = 0
    """How many waves began under it."""
    quality: float | None = None
    """The mean quality of its waves' decisions, 0 to 1."""
    base_quality: float | None = None
    """The mean quality before it, 0 to 1."""
    judged_waves: int = 0
    """How many of its waves have a quality."""
    base_judged_waves: int = 0
    """How many waves before it have a quality."""
