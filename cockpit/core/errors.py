"""What can go wrong with the store, in words for a person."""

from __future__ import annotations


class CockpitError(Exception):
    """Anything cockpit tells a person. ``code`` is stable and machine-readable."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class StoreError(CockpitError):
    """The store cannot do what was asked."""

    code = "store"


class StoreBusy(StoreError):
    """Another process held the file longer than the timeout. Trying again is safe."""

    code = "store_busy"


class StoreTooNew(StoreError):
    """The file was written by a newer cockpit."""

    code = "store_too_new"


class StoreCorrupt(StoreError):
    """The file is not a sound SQLite database, or its migrations were altered."""

    code = "store_corrupt"


class StoreUnwritable(StoreError):
    """The disk is full or the file may not be written."""

    code = "store_unwritable"


class NotFound(StoreError):
    """No row of that id."""

    code = "not_found"


class IllegalTransition(StoreError):
    """A state machine was asked for a step it does not have; nothing changed."""

    code = "illegal_transition"


class AlreadyDecided(StoreError):
    """The proposal was decided before, by somebody else or another process."""

    code = "already_decided"


class Stale(StoreError):
    """The decision names a digest or a lease that is no longer the current one."""

    code = "stale"
