"""Scopes: the names of what a caller may do. A scope is granted, never implied by another.

See ``docs/reference/security.md``.
"""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.core.errors import CockpitError

READ = "orientation.read"
PROPOSE = "orientation.propose"
APPROVE = "orientation.approve"
ADMIN = "orientation.admin"
WORK_READ = "work.read"
WORK_WRITE = "work.write"
EVENTS_READ = "events.read"
EVENTS_ENQUEUE = "events.enqueue"
EVENTS_CLAIM = "events.claim"
SESSIONS_RUN = "sessions.run"
PROPOSALS_DECIDE = "proposals.decide"
AUDIT_READ = "audit.read"
CAP_ISSUE = "cap.issue"
CAP_REVOKE = "cap.revoke"

SCOPES = (
    *(READ, PROPOSE, APPROVE, ADMIN, WORK_READ, WORK_WRITE),
    *(EVENTS_READ, EVENTS_ENQUEUE, EVENTS_CLAIM, SESSIONS_RUN, PROPOSALS_DECIDE),
    *(AUDIT_READ, CAP_ISSUE, CAP_REVOKE),
)
"""Every scope, in the order in which lists name them."""

AGENT_SCOPES = frozenset({READ, PROPOSE, WORK_READ, WORK_WRITE})
"""What an agent may: look, propose within its limits, and keep the backlog."""


class NotAllowed(CockpitError):
    """The caller lacks the scope; the message names both."""

    code = "not_allowed"


class ScopeUnknown(CockpitError):
    """A scope with this name does not exist."""

    code = "usage"


def read_scopes(named: Iterable[str]) -> frozenset[str]:
    """Return the scopes of these names. Raises :class:`ScopeUnknown` for none and for unknown ones."""
    scopes = frozenset(named)
    unknown = sorted(scopes - set(SCOPES))
    if unknown or not scopes:
        problem = f"no scope {unknown[0]!r}" if unknown else "nothing to grant"
        raise ScopeUnknown(f"There is {problem}. The scopes are: {', '.join(SCOPES)}.")
    return scopes
