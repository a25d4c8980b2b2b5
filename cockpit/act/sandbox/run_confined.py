"""Run a command in the sandbox: watched as a whole, and nothing of it left afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.run_program import MAX_BYTES, Finished, run_program
from cockpit.act.sandbox.bubblewrap import Extra, Sandbox
from cockpit.act.sandbox.process_limits import prefer_as_victim, watch
from cockpit.act.sandbox.sandbox_settings import ProcessLimits
from cockpit.core.processes import kill_tree


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
