"""One process of an external agent: bounded output, a time limit, and an end of its whole process group.

Reading never waits for the journal, so all output written before the end is read, however fast it came.
See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from cockpit.access.process_group import Overflow, end_group, ended, feed, start
from cockpit.access.run_program import ProgramMissing
from cockpit.core.errors import CockpitError

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes of one line; a longer line is skipped, and reading continues after it."""

_CHUNK = 65_536
_ERROR_TAIL = 16_384
_DRAIN_S = 2.0
_INTERRUPT_S = 1.0
"""Seconds that an agent has to stop by itself, after it was asked to."""

ProcessEnd = Literal["ended", "timeout", "output", "called_off"]
"""Why a process is over: by itself, after its time limit, after too much output, or stopped by cockpit."""


class Talk(Protocol):
    """The other side of an agent that reads its standard input while it runs."""

    def begin(self, stdin: asyncio.StreamWriter) -> None:
        """Take the agent's input, when it has started."""
        ...

    def interrupt(self) -> None:
        """Ask the agent to stop; it is ended a second later."""
        ...

    def waited_s(self) -> float:
        """Return the seconds that it waited for the user: they do not count as its time."""
        ...


class AgentProcess(Struct, frozen=True):
    """A process that is over."""

    end: ProcessEnd
    exit_code: int
    """Negative: the number of the signal that ended it."""
    errors: str
    """The end of its standard error."""


async def run_agent_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout_s: float,
    max_bytes: int,
    stop_events: Sequence[asyncio.Event],
    on_start: Callable[[int], object],
    on_line: Callable[[str | None], Awaitable[object]],
    files: Sequence[int] = (),
    talk: Talk | None = None,
) -> AgentProcess:
    """Run ``argv`` until it ends, its time is up, or one of ``stop_events`` is set.

    ``on_start`` receives the process id; ``files`` are open files that it inherits. ``on_line`` receives
    each line of the output, and None for a line that was too long. The process also ends when this call is
    cancelled or ``on_line`` raises. With ``talk`` its input stays open for what that writes. Raises
    ``ProgramMissing``.
    """
    command = tuple(argv)
    if not os.path.isdir(cwd):  # noqa: PTH112, ASYNC240 - one stat, of a worktree of ours
        raise CockpitError(f"cannot run {command[0]!r} in {cwd}: no such directory")
    try:
        piped = stdin is not None or talk is not None
        process = await start(command, cwd, env, piped=piped, files=files)
    except FileNotFoundError as error:
        raise ProgramMissing(command[0]) from error
    except OSError as error:
        raise ProgramMissing(command[0], error.strerror or str(error)) from error
    lines: asyncio.Queue[list[str | None] | None] = asyncio.Queue()
    errors = bytearray()
    reader = asyncio.ensure_future(_read_lines(process.stdout, lines, max_bytes))
    error_reader = asyncio.ensure_future(read_tail(process.stderr, errors))
    given = None if talk is not None else stdin
    exit_future = asyncio.ensure_future(_feed_to_the_end(process, given, (reader, error_reader)))
    consumer = asyncio.ensure_future(_consume(lines, on_line))
    stop_waits = [asyncio.ensure_future(event.wait()) for event in stop_events]
    end: ProcessEnd = "ended"
    first = asyncio.FIRST_COMPLETED
    try:
        on_start(process.pid)
        if talk is not None and process.stdin is not None:
            talk.begin(process.stdin)
        waits: list[asyncio.Future[Any]] = [exit_future, consumer, *stop_waits]
        await _wait_for_end(waits, timeout_s, talk)
        if consumer.done():
            consumer.result()
        if not exit_future.done():
            end = "timeout"
        elif isinstance(exit_future.exception(), Overflow):
            end = "output"
        else:
            exit_future.result()
            # The process ended by itself: consume all of its output, unless cockpit stops the run.
            lines.put_nowait(None)
            await asyncio.wait([consumer, *stop_waits], return_when=first)
        if any(wait.done() for wait in stop_waits):
            end = "called_off"
            if talk is not None and not exit_future.done():
                talk.interrupt()
                await asyncio.wait([exit_future], timeout=_INTERRUPT_S)
    finally:
        for wait in stop_waits:
            wait.cancel()
        # Children that outlive the agent belong to its run and end with it.
        await asyncio.shield(end_group(process))
        exit_future.cancel()
        reader.cancel()
        error_reader.cancel()
        await asyncio.gather(exit_future, reader, error_reader, *stop_waits, return_exceptions=True)
        lines.put_nowait(None)
        await asyncio.shield(_drain(consumer))
    if not consumer.cancelled():
        consumer.result()
    exit_code = process.returncode if process.returncode is not None else -9
    return AgentProcess(end, exit_code, bytes(errors).decode("utf-8", "replace").strip())


async def _feed_to_the_end(
    process: asyncio.subprocess.Process,
    stdin: bytes | None,
    drains: Sequence[asyncio.Future[None]],
) -> None:
    feeding = asyncio.ensure_future(feed(process, stdin))
    try:
        await ended(process, drains)
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def _wait_for_end(
    waits: Sequence[asyncio.Future[Any]], timeout_s: float, talk: Talk | None
) -> None:
    """Wait for the first of ``waits``, or until the agent's own time is used up."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while True:
        waited_s = 0.0 if talk is None else talk.waited_s()
        left = timeout_s + waited_s - (loop.time() - begun)
        if left <= 0:
            return
        done, _ = await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return


class LineReader:
    """Splits output into lines.

    A line is text without its end, or None for one that was longer than ``longest`` bytes.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[str | None]:
        """Return the lines that ``chunk`` completes."""
        lines: list[str | None] = []
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            lines.append(self._complete(piece))
        self._append(rest)
        return lines

    def end(self) -> list[str | None]:
        """Return the last line, where it has no line end."""
        return [self._complete(b"")] if self._buffer or self._skipping else []

    def _complete(self, piece: bytes) -> str | None:
        self._append(piece)
        line, skipped = bytes(self._buffer), self._skipping
        self._buffer, self._skipping = bytearray(), False
        return None if skipped else line.decode("utf-8", "replace").removesuffix("\r")

    def _append(self, piece: bytes) -> None:
        if self._skipping or len(self._buffer) + len(piece) > self._longest:
            self._skipping, self._buffer = True, bytearray()
            return
        self._buffer += piece


async def _read_lines(
    stream: asyncio.StreamReader | None,
    queue: asyncio.Queue[list[str | None] | None],
    max_bytes: int,
) -> None:
    """Split a stream into lines. Raises ``Overflow`` past the limit."""
    reader = LineReader()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        max_bytes -= len(chunk)
        if max_bytes < 0:
            raise Overflow
        if whole := reader.feed(chunk):
            queue.put_nowait(whole)
    if rest := reader.end():
        queue.put_nowait(rest)


async def _consume(
    queue: asyncio.Queue[list[str | None] | None],
    on_line: Callable[[str | None], Awaitable[object]],
) -> None:
    while (lines := await queue.get()) is not None:
        for line in lines:
            await on_line(line)


async def _drain(consumer: asyncio.Future[None]) -> None:
    """Give the consumer a moment for the lines that were read, then cancel it."""
    await asyncio.wait([consumer], timeout=_DRAIN_S)
    consumer.cancel()
    await asyncio.gather(consumer, return_exceptions=True)


async def read_tail(stream: asyncio.StreamReader | None, tail: bytearray) -> None:
    """Read a stream to its end and keep the last bytes in ``tail``."""
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        tail += chunk
        del tail[:-_ERROR_TAIL]
