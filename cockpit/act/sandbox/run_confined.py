"""Run a command in the sandbox: watched as a whole, and nothing of it left afterwards.

The watch ends a sandbox whose processes use up more together than they may.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.run_program import MAX_BYTES, Finished, run_program
from cockpit.act.sandbox.bubblewrap import Extra, Sandbox
from cockpit.act.sandbox.sandbox_settings import ProcessLimits
from cockpit.core.processes import kill_tree

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


class ConfinedRun(Struct, frozen=True):
    """The end of a command. ``passed`` says which limit it passed ('' for none)."""

    finished: Finished
    passed: str = ""


class Watch:
    """Ends a sandbox that passes its limits. ``reason`` says which."""

    def __init__(self, limits: ProcessLimits, disk: Path, *, whole: bool = True) -> None:
        self.reason = ""
        self._limits = limits
        self._disk = disk
        self._whole = whole
        self._task: asyncio.Task[None] | None = None

    def begin(self, pid: int) -> None:
        """Watch the sandbox whose outermost process is ``pid``."""
        prefer_as_victim(pid)
        self._task = asyncio.ensure_future(self._watch(pid))

    async def end(self) -> None:
        """Watch no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self, pid: int) -> None:
        self.reason = await watch(pid, self._limits, self._disk)
        if not self._whole:
            # No first process whose end is the end of all: each of them is ended.
            await asyncio.to_thread(kill_tree, pid)  # it may wait until they have stopped
        try:
            # It leads a process group of its own and its end is the end of all in the sandbox.
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            return


async def run_confined(
    sandbox: Sandbox,
    argv: Sequence[str],
    root: Path,
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    max_bytes: int = MAX_BYTES,
    stdin: bytes | None = None,
    extra: Extra | None = None,
    network: bool = False,
    on_output: Callable[[bytes], object] | None = None,
) -> ConfinedRun:
    """Run ``argv`` in ``root``, in the sandbox where there is one. Raises what ``run_program`` raises."""
    watched = Watch(sandbox.choices.limits, root, whole=sandbox.works)
    with sandbox.launch(argv, root, environment, network=network, extra=extra) as launch:
        try:
            finished = await run_program(
                launch.argv,
                cwd=root,
                timeout_s=timeout_s,
                max_bytes=max_bytes,
                stdin=stdin,
                env=environment,
                files=launch.files,
                on_start=watched.begin,
                on_output=on_output,
            )
        finally:
            await watched.end()
    return ConfinedRun(finished, watched.reason)
