"""Errors that cockpit reports to users: their text says problem, cause and next command."""

from __future__ import annotations


class CockpitError(Exception):
    """An error for users and programs."""

    code = "error"
    """Stable and machine-readable; HTTP, MCP and ``--json`` return it."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class StoreError(CockpitError):
    """The store cannot do what was requested."""

    code = "store"


class StoreBusy(StoreError):
    """Another process held the file longer than the timeout. Retrying is safe."""

    code = "store_busy"


class StoreTooNew(StoreError):
    """A newer cockpit wrote the file."""

    code = "store_too_new"


class StoreCorrupt(StoreError):
    """The file is not a valid SQLite database, or its migrations were modified."""

    code = "store_corrupt"


class StoreUnwritable(StoreError):
    """The disk is full or the file is not writable."""

    code = "store_unwritable"


class StoreReadOnly(StoreUnwritable):
    """The file or its folder may not be written, by its permissions or those of its disk."""


class StoreGone(StoreUnwritable):
    """The file was deleted, moved or replaced while it was open; nothing was stored."""

    code = "store_gone"


class NotFound(StoreError):
    """No row has that id."""

    code = "not_found"


class IllegalTransition(StoreError):
    """A state machine does not have the requested transition; nothing changed."""

    code = "illegal_transition"


class AlreadyDecided(StoreError):
    """The proposal was decided before, perhaps by another process."""

    code = "already_decided"


class Stale(StoreError):
    """The decision names a digest or a lease that is no longer the current one."""

    code = "stale"


class Altered(StoreError):
    """A row is not what the journal recorded: it was changed from outside, and nothing was done with it."""

    code = "altered"
