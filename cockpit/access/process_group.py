"""A process group: started as a whole, read within limits, ended as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cockpit.core.processes import (
    is_process_alive,
    list_descendants,
    namespace_of,
    process_name,
)

_GRACE_S = 2.0
_LEFT_BEHIND_S = 0.5
_POLL_S = 0.02


async def start(
    words: tuple[str, ...],
    cwd: Path,
    env: Mapping[str, str] | None,
    *,
    piped: bool,
    files: Sequence[int] = (),
) -> asyncio.subprocess.Process:
    """Start a program that inherits ``files``; a caller that is cancelled meanwhile leaves no process behind.

    Cancelled half-way, asyncio would kill only the program and wait forever for a child that has its
    pipes open. So the start is completed, and then the whole group is ended. Raises ``OSError``.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *words,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=asyncio.subprocess.PIPE if piped else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(files),
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.shield(_abandon(starting))
        raise


async def _abandon(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    await asyncio.wait([starting])
    if not starting.cancelled() and starting.exception() is None:
        await end_group(starting.result())


class Overflow(Exception):
    """The output exceeded its limit."""


async def ended(
    process: asyncio.subprocess.Process, drains: Sequence[asyncio.Future[None]]
) -> None:
    """Wait for the program's end; a child that it left behind may keep the output open only briefly."""
    waiting: set[asyncio.Future[None]] = set(drains)
    while waiting and process.returncode is None:
        waiting = await _still_open(waiting, _POLL_S)
    if waiting:
        waiting = await _still_open(waiting, _LEFT_BEHIND_S)
    if waiting:
        _signal(process.pid, signal.SIGKILL)
        waiting = await _still_open(waiting, _LEFT_BEHIND_S)
        for drain in waiting:
            drain.cancel()
    await process.wait()


async def _still_open(
    drains: set[asyncio.Future[None]], seconds: float
) -> set[asyncio.Future[None]]:
    done, waiting = await asyncio.wait(drains, timeout=seconds)
    for drain in done:
        drain.result()
    return waiting


async def feed(process: asyncio.subprocess.Process, stdin: bytes | None) -> None:
    """Write a program's standard input and close it."""
    if process.stdin is None or stdin is None:
        return
    # A program may end, or close its input, before it has read all of it: its status tells.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def end_group(process: asyncio.subprocess.Process) -> None:
    """End every process of the program's group: terminated first, killed after two seconds.

    Once this returns they have ended, and with the first process of a sandbox all that is in it.
    """
    members: list[str] = []
    if process.returncode is None:
        members = await asyncio.to_thread(_name_members, process.pid)
        if _signal(process.pid, signal.SIGTERM):
            await _wait_briefly(lambda: process.returncode is not None)
    _signal(process.pid, signal.SIGKILL)
    # process.wait() would wait for the pipes too, which a child may hold; only the status counts.
    await _wait_briefly(lambda: process.returncode is not None)
    await _wait_for_all(members)
    # A child that left the group may hold the pipes for ever; closing our ends lets go of them.
    process._transport.close()  # type: ignore[attr-defined]  # asyncio offers no public way


async def _wait_for_all(members: Sequence[str]) -> None:
    """Wait until they have ended: a killed process does a moment later, and a sandbox once all in it have."""
    await _wait_briefly(lambda: not any(map(is_process_alive, members)))


async def _wait_briefly(is_over: Callable[[], bool]) -> None:
    for _ in range(int(_GRACE_S / _POLL_S)):
        if is_over():
            return
        await asyncio.sleep(_POLL_S)


def _name_members(group: int) -> list[str]:
    """Name the processes that end with a group: those in it, and those in its first process's sandbox."""
    here = namespace_of(os.getpid())
    return [
        process_name(pid)
        for pid in list_descendants(group)
        if _group_of(pid) == group or namespace_of(pid) not in (here, "")
    ]


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _signal(group: int, number: signal.Signals) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
