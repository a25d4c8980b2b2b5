"""A process group: started as a whole, read within limits, ended as a whole.

Callers use :func:`cockpit.access.run_program.run_program`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_GRACE_S = 2.0
_LEFT_BEHIND_S = 0.5
_POLL_S = 0.02
_CHUNK = 65_536


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


class Caught:
    """What a program wrote, up to a limit that both of its streams share."""

    def __init__(self, limit: int, on_output: Callable[[bytes], object] | None = None) -> None:
        self._on_output = on_output
        self.out = bytearray()
        self.err = bytearray()
        self.full = False
        self._left = limit

    async def drain(self, stream: asyncio.StreamReader | None, into: bytearray) -> None:
        """Read a stream to its end. Raises :class:`Overflow` past the limit."""
        while stream is not None and (chunk := await stream.read(_CHUNK)):
            into += chunk[: self._left]
            if self._on_output is not None:
                self._on_output(chunk[: self._left])
            if len(chunk) > self._left:
                self._left = 0
                raise Overflow
            self._left -= len(chunk)


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
    """End every process of the program's group: terminated first, killed after two seconds."""
    if process.returncode is None and _signal(process.pid, signal.SIGTERM):
        await _wait_briefly(process)
    _signal(process.pid, signal.SIGKILL)
    await _wait_briefly(process)
    # A child that left the group may hold the pipes for ever; closing our ends lets go of them.
    process._transport.close()  # type: ignore[attr-defined]  # asyncio offers no public way


async def _wait_briefly(process: asyncio.subprocess.Process) -> None:
    # process.wait() would wait for the pipes too, which a child may hold; only the status counts.
    for _ in range(int(_GRACE_S / _POLL_S)):
        if process.returncode is not None:
            return
        await asyncio.sleep(_POLL_S)


def _signal(group: int, number: signal.Signals) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
