"""Processes: names that tell whether one is still alive, and how ours handles termination."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

_FIRST_NAMESPACE = "pid:[4026531836]"
"""The first namespace of processes; the kernel gives it this number (``PROC_PID_INIT_INO``)."""


def interrupt_on_termination() -> None:
    """Let SIGTERM and SIGHUP end this command the way Ctrl+C does.

    A signal that is ignored (as under ``nohup``) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


_asked_to_end: list[int] = []


def _interrupt(number: int, frame: object) -> None:
    del frame
    _asked_to_end.append(number)
    signal.raise_signal(signal.SIGINT)


def is_asked_to_end() -> bool:
    """Whether SIGTERM or SIGHUP came since :func:`interrupt_on_termination`.

    While a program starts, the ``KeyboardInterrupt`` can be lost: Python ignores what is raised in a callback
    of a module's import. Who takes over the signals asks here what came before.
    """
    return bool(_asked_to_end)


def stop_on_interrupt(loop: asyncio.AbstractEventLoop, stop: Callable[[], object]) -> None:
    """Call ``stop`` in the loop on SIGINT, and once where the end was asked for before."""
    loop.add_signal_handler(signal.SIGINT, stop)
    if is_asked_to_end():
        loop.call_soon(stop)


def current_process() -> str:
    """Name this process as ``pid/start time``: pids alone are reused by the system."""
    return _cached_name(os.getpid())


def process_name(pid: int) -> str:
    """Name the process with that pid the way :func:`current_process` names itself there."""
    return f"{pid}/{_state_and_start(pid)[1]}"


_cached_name = cache(process_name)


def is_process_alive(name: str) -> bool:
    """Tell whether the process that :func:`current_process` named in another process still runs."""
    pid, _, started = name.partition("/")
    if not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    state, start = _state_and_start(int(pid))
    # A zombie is listed until its parent waits for it, but does nothing any more.
    return state not in ("Z", "X") and (not started or start == started)


_detached: set[int] = set()

_STOPS_S = 0.5
"""Seconds that processes of a tree have to stop before those that they started are looked for."""
_MOST_LOOKS = 100
"""How often the processes below another one are looked for, should they multiply faster than they stop."""


def detach_process(pid: int) -> None:
    """Note that a child of this process outlives it: :func:`kill_children` spares it and its children."""
    _detached.add(pid)


def kill_children() -> None:
    """Kill every process that descends from this one, at once; for a program that cannot end in order."""
    _kill_descendants(os.getpid(), [])


def kill_tree(first: int) -> None:
    """Kill a process and all that descend from it, also those that start others at this moment."""
    _kill_descendants(first, [first])


def _kill_descendants(ancestor: int, pids: list[int]) -> None:
    # All are stopped first: killed one by one, the last ones would go on starting others meanwhile, and
    # what a killed process started just before has no ancestor any more by which it could be found.
    until = time.monotonic() + _STOPS_S
    for _ in range(_MOST_LOOKS):
        signal_processes(pids, signal.SIGSTOP)
        # One that was starting another when the signal came finishes that first.
        while any(map(_may_start_others, pids)) and time.monotonic() < until:
            time.sleep(0.0005)
        started = [pid for pid in list_descendants(ancestor) if pid not in pids]
        if not started:
            break
        pids += started
    signal_processes(pids, signal.SIGKILL)


def list_descendants(ancestor: int) -> list[int]:
    """Return the processes that descend from another, without detached ones; none without procfs."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH112, PTH208
        if entry.isdigit() and (parent := _parent(int(entry))):
            children.setdefault(parent, []).append(int(entry))
    descendants: list[int] = []
    waiting = [ancestor]
    while waiting:
        attached = [pid for pid in children.get(waiting.pop(), ()) if pid not in _detached]
        waiting += attached
        descendants += attached
    return descendants


def signal_processes(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes, those aside that have ended or belong to another user."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def has_job_control() -> bool:
    """Return True when a shell waits for this process's job: it can bring the job back once it is stopped."""
    group, session, pid = os.getpgrp(), os.getsid(0), os.getpid()
    try:
        while pid and os.getpgid(pid) == group:
            pid = os.getppid() if pid == os.getpid() else _parent(pid)
        return pid > 0 and os.getsid(pid) == session
    except (ProcessLookupError, PermissionError):
        return False


def _may_start_others(pid: int) -> bool:
    """Whether a process has neither stopped nor ended yet; False without procfs."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "TtZX"
    except OSError:
        return False


def _parent(pid: int) -> int:
    """Return the parent of a process; 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def sees_all_processes() -> bool:
    """Tell whether this process is surely in no namespace that hides processes of the machine.

    False in a container, where it cannot be known.
    """
    namespace = namespace_of(os.getpid())
    return namespace == _FIRST_NAMESPACE if namespace else sys.platform != "linux"


def namespace_of(pid: int) -> str:
    """Return the name of a process's namespace of processes; empty where it cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 - as fast as can be
    except OSError:
        return ""


def _state_and_start(pid: int) -> tuple[str, str]:
    """Read a process's state letter and start time from procfs; empty where there is no procfs."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return "", ""
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]
