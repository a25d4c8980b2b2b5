"""Run cockpit in the warm server's place of a process: same streams, same signals, same end. See ``warm.py``.

This is the text of a program that stands beside the server's socket and is called as an interpreter is:
``[-P] -m cockpit WORDS…``, or ``--warm`` before whatever else is to run there. All else it leaves to
the interpreter.
"""

# ruff: noqa: PTH109, PTH118, PTH120 -- pathlib alone takes as long to import as all the rest, and so does signal
import _signal as signal
import marshal
import os
import sys
import time
from _socket import AF_UNIX, CMSG_LEN, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

_OURS = ("cockpit", "cockpit.hook.ingest_worker")
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_HARMLESS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


def warm_words(words: list[str]) -> list[str]:
    """Return what the server is to run; nothing when a start from nothing is asked for."""
    if words[:1] == ["--warm"]:
        return words[1:]
    if "COCKPIT_TEST_COLD" in os.environ:
        return []
    if any(name.startswith("PYTHON") and name not in _HARMLESS for name in os.environ):
        return []
    plain = words[1:] if words[:1] == ["-P"] else words
    return plain if plain[:1] == ["-m"] and plain[1] in _OURS else []


def connected(place: str) -> socket:
    """Connect to the server, which may be about to start."""
    for _ in range(1_500):
        line = socket(AF_UNIX, SOCK_STREAM)
        try:
            line.connect(place)
            return line
        except (FileNotFoundError, ConnectionRefusedError):
            line.close()
            time.sleep(0.02)
    raise TimeoutError(f"Nothing listens on {place}.")


def leads() -> int:
    """Return 2 for the leader of a session, 1 for that of a process group, else 0."""
    if os.getsid(0) == os.getpid():
        return 2
    return int(os.getpgrp() == os.getpid())


def main() -> int:
    words = warm_words(sys.argv[1:])
    if not words:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    pid = 0
    ignored = [int(one) for one in _PASSED_ON if signal.getsignal(one) == signal.SIG_IGN]

    def forward(number: int, _: object) -> None:
        # Not yet started: the server sees that its client is gone.
        os.kill(pid or os.getpid(), signal.SIGKILL if number == signal.SIGUSR1 else number)

    signal.signal(signal.SIGUSR1, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    line = connected(os.path.join(os.path.dirname(sys.argv[0]), "socket"))
    body = marshal.dumps((leads(), ignored, words, os.getcwd(), dict(os.environ)))
    handles = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    assert CMSG_LEN(len(handles))
    line.sendmsg([len(body).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, handles)])
    line.sendall(body)
    answer = b""
    while answer.count(b"\n") < 2:
        chunk = line.recv(64)
        if not chunk:
            return 1
        answer += chunk
        if not pid and b"\n" in answer:
            pid = int(answer.split(b"\n")[0])
            for number in _PASSED_ON:
                if number not in ignored:
                    signal.signal(number, forward)
    code = int(answer.split()[1])
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


os._exit(main())
