"""One process of an agent: its output read to the end within bounds, its whole group ended.

Reading never waits for the journal: what a program wrote before it ended is told however fast it came.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cockpit.access.process_group import Overflow, end_group, ended, feed, start
from cockpit.access.run_program import ProgramMissing
from cockpit.agents.bounded_lines import LineReader
from cockpit.core.errors import CockpitError

_CHUNK = 65_536
_ERRORS = 16_384
_REST_S = 2.0

ProcessEnd = Literal["ended", "timeout", "output", "called_off"]


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """How the process went: ``why`` it is over, its exit ``code`` (negative: a signal), and the end of
    its standard error."""

    why: ProcessEnd
    code: int
    errors: str


async def run_agent_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout_s: float,
    max_bytes: int,
    off: Sequence[asyncio.Event],
    began: Callable[[int], object],
    take: Callable[[str | None], Awaitable[object]],
) -> AgentProcess:
    """Run ``argv``, give each line of its output to ``take`` (None: one that was too long), and wait
    for its end, or for any of the events in ``off``. ``began`` is called with its process id.

    Cancelled, or when ``take`` raises, it ends the process as well. Raises ``ProgramMissing``.
    """
    words = tuple(argv)
    if not os.path.isdir(cwd):  # noqa: PTH112, ASYNC240 - one stat, of a tree of ours
        raise CockpitError(f"cannot run {words[0]!r} in {cwd}: no such directory")
    try:
        process = await start(words, cwd, env, piped=stdin is not None)
    except FileNotFoundError as error:
        raise ProgramMissing(words[0]) from error
    except OSError as error:
        raise ProgramMissing(words[0], error.strerror or str(error)) from error
    waiting: asyncio.Queue[list[str | None] | None] = asyncio.Queue()
    errors = bytearray()
    reading = asyncio.ensure_future(_read(process.stdout, waiting, max_bytes))
    noting = asyncio.ensure_future(_tail(process.stderr, errors))
    talking = asyncio.gather(feed(process, stdin), ended(process, (reading, noting)))
    taking = asyncio.ensure_future(_take(waiting, take))
    calls = [asyncio.ensure_future(event.wait()) for event in off]
    why: ProcessEnd = "ended"
    soonest = asyncio.FIRST_COMPLETED
    try:
        began(process.pid)
        waits: list[asyncio.Future[Any]] = [talking, taking, *calls]
        await asyncio.wait(waits, timeout=timeout_s, return_when=soonest)
        if taking.done():
            taking.result()
        if not talking.done():
            why = "timeout"
        elif isinstance(talking.exception(), Overflow):
            why = "output"
        else:
            talking.result()
            # All that it wrote before it ended by itself is told, unless nobody waits for it.
            waiting.put_nowait(None)
            await asyncio.wait([taking, *calls], return_when=soonest)
        if any(call.done() for call in calls):
            why = "called_off"
    finally:
        for call in calls:
            call.cancel()
        # Children that outlive the agent are part of what was started, and go with it.
        await asyncio.shield(end_group(process))
        talking.cancel()
        reading.cancel()
        noting.cancel()
        await asyncio.gather(talking, reading, noting, *calls, return_exceptions=True)
        waiting.put_nowait(None)
        await asyncio.shield(_rest(taking))
    if not taking.cancelled():
        taking.result()
    code = process.returncode if process.returncode is not None else -9
    return AgentProcess(why, code, bytes(errors).decode("utf-8", "replace").strip())


async def _read(
    stream: asyncio.StreamReader | None,
    into: asyncio.Queue[list[str | None] | None],
    max_bytes: int,
) -> None:
    """Cut a stream into lines. Raises ``Overflow`` past the limit."""
    lines = LineReader()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        max_bytes -= len(chunk)
        if max_bytes < 0:
            raise Overflow
        if whole := lines.feed(chunk):
            into.put_nowait(whole)
    if rest := lines.end():
        into.put_nowait(rest)


async def _take(
    waiting: asyncio.Queue[list[str | None] | None],
    take: Callable[[str | None], Awaitable[object]],
) -> None:
    while (lines := await waiting.get()) is not None:
        for line in lines:
            await take(line)


async def _rest(taking: asyncio.Future[None]) -> None:
    """Let what was read be told, for a moment."""
    await asyncio.wait([taking], timeout=_REST_S)
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)


async def _tail(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        into += chunk
        del into[:-_ERRORS]
