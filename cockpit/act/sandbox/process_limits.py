"""What all processes of one sandbox together may use up, and the watch that ends a sandbox beyond it.

The kernel's own limits are for one process, or for all of a user's; as administrator, and in containers
without control groups of their own, none of them holds for a whole sandbox. So its processes are looked
at a few times a second. Ending the first process of a sandbox ends all, however fast they multiply.
See ``docs/reference/security.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cockpit.act.sandbox.sandbox_settings import ProcessLimits

_POLL_S = 0.1
_SLOWEST_POLL_S = 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MEGABYTE = 1024**2
_LEAST_FREE = 256 * _MEGABYTE
"""Free bytes of the project's disk below which a sandbox that writes is ended."""
_LEAST_SHARE = 0.01
"""The same as a share of its inodes."""


class Usage(Struct, frozen=True):
    """What the processes of a sandbox use now."""

    processes: int = 0
    memory_bytes: int = 0
    written_bytes: int = 0


async def watch(first: int, limits: ProcessLimits, disk: Path) -> str:
    """Return why the processes from ``first`` down must end, when they pass a limit.

    Never returns while they do not; the caller cancels. ``disk`` is a folder on the project's disk.
    """
    pause = _POLL_S
    free = _free(disk)
    await asyncio.sleep(pause / 2)
    prefer_as_victim(first)
    while True:
        await asyncio.sleep(pause)
        usage = measure(first)
        if usage.processes > limits.processes:
            return f"it had {usage.processes:,} processes, more than {limits.processes:,}"
        if usage.memory_bytes > limits.memory_bytes and _private(first) > limits.memory_bytes:
            return f"it used more memory than {limits.memory_bytes // _MEGABYTE:,} MiB"
        if usage.written_bytes > limits.written_bytes:
            return f"it wrote more than {limits.written_bytes // _MEGABYTE:,} MiB"
        if why := _full(disk, free, usage):
            return why
        # Short commands are looked at often, long ones seldom; a busy one often again.
        busy = (
            usage.processes > limits.processes // 8 or usage.memory_bytes > limits.memory_bytes // 4
        )
        pause = _POLL_S if busy else min(pause * 1.25, _SLOWEST_POLL_S)


def prefer_as_victim(first: int) -> None:
    """Let the kernel end these processes before any other when the machine runs out of memory."""
    for pid in _descendants(first):
        try:
            with open(f"/proc/{pid}/oom_score_adj", "w") as file:
                file.write("1000")
        except OSError:
            continue  # it ended meanwhile, or belongs to another user as bubblewrap with extra rights does


def measure(first: int) -> Usage:
    """Add up what ``first`` and all its descendants use. Shared memory counts for each that shares it."""
    processes = memory = written = 0
    for pid in _descendants(first):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            processes += int(fields[17])
            memory += int(fields[21]) * _PAGE
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile
        written += _written(pid)
    return Usage(processes, memory, written)


def _written(pid: int) -> int:
    """Return the bytes that a process and its ended children wrote to disks and did not take back."""
    try:
        with open(f"/proc/{pid}/io", "rb") as file:
            lines = dict(line.split(b": ") for line in file.read().splitlines())
        return max(int(lines[b"write_bytes"]) - int(lines[b"cancelled_write_bytes"]), 0)
    except (OSError, KeyError, ValueError):
        return 0


def _private(first: int) -> int:
    """Add up memory with each shared page counted once: exact, and slow."""
    total = 0
    for pid in _descendants(first):
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                for line in file:
                    if line.startswith(b"Pss:"):
                        total += int(line.split()[1]) * 1024
                        break
        except (OSError, ValueError):
            continue
    return total


def _descendants(first: int) -> Iterator[int]:
    """Yield ``first`` and the processes below it: those without a parent hang below a sandbox's first."""
    waiting = [first]
    while waiting:
        pid = waiting.pop()
        yield pid
        try:
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                    waiting += [int(child) for child in file.read().split()]
        except OSError:
            continue


def _free(disk: Path) -> tuple[int, float]:
    """Return the free bytes and the share of free inodes of the disk (1.0: it does not count them)."""
    try:
        info = os.statvfs(disk)
    except OSError:
        return (2**62, 1.0)
    return info.f_bavail * info.f_frsize, info.f_favail / info.f_files if info.f_files else 1.0


def _full(disk: Path, before: tuple[int, float], usage: Usage) -> str:
    """Say that the disk is nearly full where this sandbox may have filled it; '' else."""
    free, inodes = _free(disk)
    took = before[0] - free
    if free < _LEAST_FREE and took > _LEAST_FREE // 4 and usage.written_bytes > took // 4:
        return f"the disk is nearly full, and it wrote {usage.written_bytes // _MEGABYTE:,} MiB"
    if inodes < _LEAST_SHARE and before[1] - inodes > _LEAST_SHARE:
        return "the disk has hardly any room for further files"
    return ""
