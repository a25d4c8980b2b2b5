"""Details of the store itself and of the tokens that give access to it."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class CapabilityIssued(Detail, frozen=True, kw_only=True):
    """A capability token was issued."""

    cap_id: str
    """The token's id."""
    namespace: str
    """The principal who has the token."""
    scopes: tuple[str, ...]
    """What the token allows."""
    expires_at: str | None
    """When it expires; None: never."""


class CapabilityRevoked(Detail, frozen=True, kw_only=True):
    """A capability token was revoked."""

    cap_id: str
    """The token's id."""
    namespace: str
    """The principal who had the token."""


class StoreMigrated(Detail, frozen=True, kw_only=True):
    """The store was brought to the schema of this version of cockpit."""

    migrations: tuple[str, ...]
    """The migrations applied, in order."""


class StorePruned(Detail, frozen=True, kw_only=True):
    """The facts of old sessions were moved to an archive."""

    sessions: tuple[str, ...]
    """The sessions."""
    packets: int
    """How many packets their waves have."""
    links: int
    """How many links between sessions and facts were archived."""
    facts: int
    """How many facts were archived."""
    archive: str
    """The archive's file name."""


class StoreRestored(Detail, frozen=True, kw_only=True):
    """An archive was put back."""

    archive: str
    """The archive's file name."""
    rows: int
    """How many rows were put back."""
