"""A process group: started as a whole, read within limits, ended as a whole.

:class:`GroupRun` runs a program to its end, for :func:`cockpit.access.run_program.run_program`. :func:`start`
starts one that is talked with.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from cockpit.core.processes import (
    is_process_alive,
    list_descendants,
    namespace_of,
    process_name,
)

_GRACE_S = 2.0
_LEFT_BEHIND_S = 0.5
_POLL_S = 0.02
_CHUNK = 65_536
_UNKNOWN_STATUS = 255
"""The status of a program whose own nobody can have: never that of a success."""


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


class GroupRun:
    """A program that runs to its end in a process group of its own, with its output up to a limit.

    The event loop calls back for each piece of output and for the end. With asyncio's own processes, each of
    the many short programs would cost a thread and some thirty turns of the loop. Call :meth:`end` in any
    case.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        cwd: Path,
        env: Mapping[str, str] | None,
        *,
        stdin: bytes | None,
        max_bytes: int,
        files: Sequence[int] = (),
        on_output: Callable[[bytes], object] | None = None,
    ) -> None:
        """Start the program, which inherits ``files``. Raises ``OSError``."""
        self.out, self.err = bytearray(), bytearray()
        self.full = False
        """Whether it wrote more than ``max_bytes``, both streams together."""
        self._left = max_bytes
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[None] = self._loop.create_future()
        self._done: asyncio.Future[None] = self._loop.create_future()
        """It ended and all of its output is read, or no more of it is wanted."""
        self._outputs: set[IO[bytes]] = set()
        self._unsent = memoryview(stdin or b"")
        self._pidfd: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._process = subprocess.Popen(
            words,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=tuple(files),
        )
        try:
            self._follow()
        except BaseException:
            _signal(self.pid, signal.SIGKILL)
            self._reap(0)
            self._close()
            raise

    @property
    def pid(self) -> int:
        """Its process id, which is its group's as well."""
        return self._process.pid

    async def wait(self) -> None:
        """Wait until it ended, or its output exceeded the limit. Raises what ``on_output`` raised.

        A child that it left behind may keep the output open only briefly.
        """
        await self._done

    async def end(self) -> int:
        """End every process of the group: terminated first, killed after two seconds. Returns the status."""
        if self._exit.done():
            self._close()
        else:
            await asyncio.shield(self._stop())
        status = self._process.returncode
        return -signal.SIGKILL if status is None else status

    async def _stop(self) -> None:
        try:
            members = await asyncio.to_thread(_name_members, self.pid)
            if _signal(self.pid, signal.SIGTERM):
                await asyncio.wait([self._exit], timeout=_GRACE_S)
            _signal(self.pid, signal.SIGKILL)
            await asyncio.wait([self._exit], timeout=_GRACE_S)
            await _wait_for_all(members)
        finally:
            self._close()

    def _follow(self) -> None:
        """Let the loop call back for output, for room in the input, and for the end."""
        for stream, into in ((self._process.stdout, self.out), (self._process.stderr, self.err)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._outputs.add(stream)
                self._loop.add_reader(stream.fileno(), self._read, stream, into)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
            self._loop.add_writer(self._process.stdin.fileno(), self._write, self._process.stdin)
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not every system has them
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self._note_exit)

    def _wait_in_thread(self) -> None:
        self._reap(0)
        with contextlib.suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._note_exit)

    def _read(self, stream: IO[bytes], into: bytearray) -> None:
        try:
            chunk = os.read(stream.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._shut_output(stream)
            self._settle()
            return
        kept = chunk[: self._left]
        into += kept
        self._left -= len(kept)
        if len(kept) < len(chunk):
            self.full = True
            self._finish()
        if self._on_output is not None and kept:
            try:
                self._on_output(kept)
            except Exception as error:
                self._finish(error)

    def _write(self, stream: IO[bytes]) -> None:
        try:
            self._unsent = self._unsent[os.write(stream.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # it may end, or close its input, before it has read all: its status tells
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._shut_input()

    def _note_exit(self) -> None:
        self._drop_pidfd()
        if not self._exit.done():
            self._exit.set_result(None)
        if self._outputs:
            self._timer = self._loop.call_later(_LEFT_BEHIND_S, self._kill_left_behind)
        self._settle()

    def _kill_left_behind(self) -> None:
        _signal(self.pid, signal.SIGKILL)
        self._timer = self._loop.call_later(_LEFT_BEHIND_S, self._finish)

    def _settle(self) -> None:
        if self._exit.done() and not self._outputs:
            self._finish()

    def _finish(self, error: Exception | None = None) -> None:
        if self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)

    def _close(self) -> None:
        """End what is left of the group, and let go of everything."""
        # The program is not reaped yet where the kernel says when it ends, so its number is still its own.
        _signal(self.pid, signal.SIGKILL)
        self._reap(os.WNOHANG)
        self._drop_pidfd()
        if self._timer is not None:
            self._timer.cancel()
        self._shut_input()
        # A child that left the group may hold the pipes for ever; closing our ends lets go of them.
        for stream in tuple(self._outputs):
            self._shut_output(stream)
        if self._done.done() and not self._done.cancelled():
            self._done.exception()  # it was raised, or nothing waits for it any more

    def _reap(self, options: int) -> None:
        """Take the status of the program, where it ended and has not been taken."""
        if self._process.returncode is not None:
            return
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:  # this process was started to ignore the ends of its children
            self._process.returncode = _UNKNOWN_STATUS
        else:
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)

    def _shut_output(self, stream: IO[bytes]) -> None:
        self._loop.remove_reader(stream.fileno())
        self._outputs.discard(stream)
        stream.close()

    def _shut_input(self) -> None:
        stream = self._process.stdin
        if stream is not None and not stream.closed:
            self._loop.remove_writer(stream.fileno())
            stream.close()

    def _drop_pidfd(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
