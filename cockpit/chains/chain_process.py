"""Start or resume a chain in a process that outlives the screen or the server that starts it.

Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from cockpit.core.errors import CockpitError
from cockpit.core.failure_lines import clip_start
from cockpit.core.processes import detach_process
from cockpit.core.project_paths import ProjectPaths

_OUTPUT_MOST = 400
_READ_MOST = 1_000_000
"""Bytes of a log that are read for the reason of a failure: those at its end."""
_ERRORS = (1, 2, 3)
"""Exit codes that say more than how the chain ended, which the journal shows anyway."""


class ChainCommandFailed(CockpitError):
    """The process of a chain ended with an error."""

    code = "chain_command_failed"


class ChainCommand:
    """A running ``cockpit ARGUMENTS`` whose output goes to a log of the chains."""

    def __init__(
        self, arguments: Sequence[str], log: Path, log_start: int, process: subprocess.Popen[bytes]
    ) -> None:
        self._arguments = arguments
        self._log = log
        self._log_start = log_start
        self._process = process

    async def wait(self) -> None:
        """Wait for the end. Raises :class:`ChainCommandFailed` with the end of the process's output."""
        code = await _wait_for_end(self._process)
        if code not in _ERRORS:
            return
        output = await asyncio.to_thread(self._read_output)
        resumes = self._arguments[0] == "chain"
        failure = (
            f"{self._arguments[2]} was not resumed"
            if resumes
            else f"`cockpit {shlex.join(self._arguments)}` failed"
        )
        reason = clip_start(output.removeprefix("cockpit: "), _OUTPUT_MOST) or f"exit code {code}"
        raise ChainCommandFailed(f"{failure}: {reason}")

    def _read_output(self) -> str:
        """Return the end of what the process wrote; empty where its log is gone."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - _READ_MOST))
                return log.read(_READ_MOST).decode("utf-8", "replace").strip()
        except OSError:
            return ""  # the exit code is said in its place


async def start_chain_command(
    place: ProjectPaths, arguments: Sequence[str], hidden: Sequence[str] = ()
) -> ChainCommand:
    """Start ``cockpit ARGUMENTS`` in a process of its own. Raises :class:`ChainCommandFailed`.

    ``hidden`` are further options, which no message names.
    """
    name = arguments[2] if arguments[0] == "chain" else "work"
    path = place.state / "chains" / f"{name}.log"
    try:
        log_start, process = await asyncio.to_thread(
            _start_process, place, (*arguments, *hidden), path
        )
    except OSError as error:
        raise ChainCommandFailed(
            f"`cockpit {shlex.join(arguments)}` did not start: {error.strerror or error}. Fix that, then"
            " run it again."
        ) from error
    return ChainCommand(arguments, path, log_start, process)


async def run_chain_command(place: ProjectPaths, arguments: Sequence[str]) -> None:
    """Run ``cockpit ARGUMENTS`` until the chain stops; leaving the screen does not end it.

    Raises :class:`ChainCommandFailed` with the end of the process's output.
    """
    await (await start_chain_command(place, arguments)).wait()


async def _wait_for_end(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a process, which nothing here ends.

    A thread waits, and nothing waits for the thread: looking every so often would wake an idle screen.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def pass_on(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def wait() -> None:
        code = process.wait()
        # The screen may have been left, and its event loop with it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(pass_on, code)

    threading.Thread(target=wait, name="chain-end", daemon=True).start()
    return await ended


def _start_process(
    place: ProjectPaths, arguments: Sequence[str], path: Path
) -> tuple[int, subprocess.Popen[bytes]]:
    """Return where the output of the process starts in its log, and the process."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("ab") as log:
        log_start = log.tell()
        process = subprocess.Popen(
            (sys.executable, "-P", "-m", "cockpit", *arguments),
            cwd=place.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        detach_process(process.pid)
        return log_start, process
