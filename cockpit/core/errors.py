"""Errors that cockpit reports to users: their text says problem, cause and next command.

Faults of the machine that pass (a full disk, no memory, processes or open files, a store out of reach) say
nothing about the work that meets them. It pauses, and resumes once the machine has room. Specified in
``docs/reference/chains.md``, outages.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path


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


class MachineFault(CockpitError):
    """The machine was short of something, or a folder of the project is gone. The work is kept."""

    code = "machine"


PASSING = frozenset(
    {
        *(errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOBUFS),
        *(errno.ENOSPC, errno.EDQUOT, errno.EIO),
    }
)
"""Errors of the system that say nothing about what was tried."""
_SPOKEN = tuple(os.strerror(number) for number in sorted(PASSING))
"""The same, as programs print them."""
_NO_ROOM = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "database or disk is full")
_LEAST_FREE = 1024 * 1024
"""Bytes: a disk with less is full."""


def find_machine_fault(error: BaseException) -> str:
    """Return the passing fault of the machine that caused ``error``, as text; empty for none."""
    for cause in _causes(error):
        if isinstance(cause, MachineFault | StoreBusy | StoreUnwritable):
            return str(cause)
        if isinstance(cause, OSError) and cause.errno in PASSING:
            name = f" ({cause.filename})" if cause.filename else ""
            return f"{cause.strerror or cause}{name}"
        if isinstance(cause, MemoryError):
            return os.strerror(errno.ENOMEM)
        if isinstance(cause, RuntimeError) and "can't start new thread" in str(cause):
            return "no further thread could be started"
    return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:  # an error can be its own cause
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


def read_machine_fault(output: str) -> str:
    """Return the fault of the machine that a program of cockpit's own reports; empty for none."""
    return next((words for words in _SPOKEN if words in output), "")


def find_full_disk(output: str, folder: Path) -> str:
    """Return that the disk of ``folder`` is full, where a program says so and it is; else empty.

    A program's words alone prove nothing: they may be of a test, or of a small disk of the sandbox.
    """
    if not any(words in output for words in _NO_ROOM):
        return ""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return ""
    free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    has_room = free * disk.f_frsize >= _LEAST_FREE and (disk.f_favail or not disk.f_files)
    return "" if has_room else f"{os.strerror(errno.ENOSPC)}: the disk of {folder} is full"
