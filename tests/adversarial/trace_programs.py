"""Run shell commands and write down every program that they start, as the kernel was told its name.

``python trace_programs.py LOGS LIST``: LIST has the commands, each with a NUL at its end; the programs of the
first are written to LOGS/1, one a line, and so on. It traces as strace does, with ``ptrace``, so that nothing
has to be installed, and reads each name from the auxiliary vector, which every architecture has.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from pathlib import Path

TRACEME, CONT, SETOPTIONS = 0, 7, 0x4200
FORKS_AND_EXECS, KILL_WITH_TRACER = 0x2 | 0x4 | 0x8 | 0x10, 0x100000
EXEC_EVENT = 4
ANY_CHILD = 0x40000000
"""``__WALL``: children of any kind, threads included."""
AT_EXECFN = 31
TOO_LONG_S = 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


def started_program(pid: int) -> str:
    """The name that the program of a process was started by."""
    vector = Path(f"/proc/{pid}/auxv").read_bytes()
    words = struct.unpack(f"@{len(vector) // struct.calcsize('@L')}L", vector)
    place = dict(zip(words[::2], words[1::2], strict=True))[AT_EXECFN]
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(place)
        return os.fsdecode(memory.read(4096).partition(b"\0")[0])


def trace(command: str) -> list[str]:
    """The programs that ``bash -c COMMAND`` starts, itself included, in the order of their starts."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.setpgid(0, 0)
        _libc.ptrace(TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execvp("bash", ["bash", "-c", command])
    os.waitpid(pid, 0)
    _libc.ptrace(SETOPTIONS, pid, None, FORKS_AND_EXECS | KILL_WITH_TRACER)
    _libc.ptrace(CONT, pid, None, None)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(pid, signal.SIGKILL))
    signal.alarm(TOO_LONG_S)
    programs = []
    while True:
        try:
            child, status = os.waitpid(-1, ANY_CHILD)
        except ChildProcessError:
            signal.alarm(0)
            return programs
        if not os.WIFSTOPPED(status):
            continue
        number, event = os.WSTOPSIG(status), status >> 16
        if event == EXEC_EVENT:
            programs.append(started_program(child))
        # The stops of tracing are none of the child's: SIGTRAP, and the first SIGSTOP of a new process.
        passed_on = 0 if event or number in (signal.SIGTRAP, signal.SIGSTOP) else number
        _libc.ptrace(CONT, child, None, passed_on)


def main(logs: Path, listed: Path) -> None:
    """Trace every command of the list."""
    commands = listed.read_bytes().split(b"\0")[:-1]
    for number, command in enumerate(commands, start=1):
        (logs / str(number)).write_text("\n".join(trace(os.fsdecode(command))) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
