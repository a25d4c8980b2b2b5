"""What the user decides about the sandbox, and the bounds that hold where they decide nothing."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from msgspec import Struct, field

_MEGABYTE = 1024**2


class ProcessLimits(Struct, frozen=True):
    """Bounds of one sandbox."""

    processes: int
    """Processes and threads."""
    memory_bytes: int
    """Memory of all processes."""
    process_bytes: int
    """Private memory of one process; the kernel holds this one."""
    written_bytes: int
    """What all processes write to disks."""
    temporary_bytes: int
    """Each of the empty places in memory: the home, ``/tmp``, ``/dev/shm``."""


@cache
def default_limits() -> ProcessLimits:
    """Return the bounds for this machine: half of its memory, and room for large builds."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return ProcessLimits(
        processes=2048,
        memory_bytes=max(total // 2, 1024 * _MEGABYTE),
        process_bytes=4096 * _MEGABYTE,
        written_bytes=20 * 1024 * _MEGABYTE,
        temporary_bytes=max(total // 8, 256 * _MEGABYTE),
    )


class SandboxChoices(Struct, frozen=True):
    """What the user's own configuration says of the sandbox; a project cannot say anything."""

    variables: tuple[str, ...] = ()
    """Names of environment variables that programs get beside the harmless ones."""
    read: tuple[Path, ...] = ()
    """Places that programs may read beside the project."""
    limits: ProcessLimits = field(default_factory=default_limits)
    agents: bool = True
    """Whether external agents run in the sandbox."""
