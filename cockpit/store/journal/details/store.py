"""Details of the store itself and of the tokens that give access to it."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.store.journal.details.detail import Detail


class CapabilityChanged(Detail, frozen=True, kw_only=True):
    """A capability token was issued or revoked."""

    cap_id: str
    """The token's id."""
    status: str
    """``issued`` or ``revoked``."""
    namespace: str
    """The principal who has the token."""
    scopes: tuple[str, ...]
    """The scopes of the token."""
    expires_at: str | None
    """When it expires; null: never."""


class AccessRefused(Detail, frozen=True, kw_only=True):
    """Requests were refused for one reason: an unknown caller, or a token that does not allow them."""

    face: str
    """The server: ``http``, ``mcp`` or ``web``."""
    count: int
    """How many requests since the last row of this reason; a row is written once a minute at most."""
    since: str
    """When the first of them was refused."""
    request: str
    """The last of them: method and path, or the tool."""
    message: str
    """The answer to the last of them."""


class StoreMigrated(Detail, frozen=True, kw_only=True):
    """The store was brought to the schema of this version of cockpit."""

    migrations: tuple[str, ...]
    """The migrations applied, in order."""


class JournalAnchored(Detail, frozen=True, kw_only=True):
    """The user accepted the store as it is, although it differed from its anchor."""

    seq: int
    """The last row before this one."""
    digest: str
    """The digest of that row."""
    fault: str
    """How the store differed from the anchor."""


class StoreArchived(Detail, frozen=True, kw_only=True):
    """Old rows of the store were moved to an archive, or put back."""

    what: str
    """``facts`` of old sessions, ``worker_rows`` (journals of workers of other machines) or ``restored``."""
    archive: str
    """The archive's file name."""
    rows: Mapping[str, int]
    """How many rows, by what they are."""
    sessions: tuple[str, ...] = ()
    """The sessions whose facts were archived."""


class JournalPruned(Detail, frozen=True, kw_only=True):
    """The first rows of the journal were moved to an archive; the journal is verified from its anchor on."""

    seq: int
    """The last row that was pruned."""
    digest: str
    """The digest of that row, which the next row follows from."""
    rows: int
    """How many rows were deleted."""
    kept: int
    """How many older rows stay, because they are still read."""
    archive: str
    """The archive's file name."""
