"""Run ``cockpit`` in the warm server's place of a process: same streams, same signals, same end.

``python -I -S warm_relay.py SOCKET WORDS…``. See ``warm.py``.
"""

# ruff: noqa: PTH109 -- pathlib alone takes as long to import as all the rest
import marshal
import os
import signal
import sys
import time
from _socket import AF_UNIX, CMSG_LEN, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket


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


def main() -> int:
    line = connected(sys.argv[1])
    body = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))
    handles = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    assert CMSG_LEN(len(handles))
    line.sendmsg([len(body).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, handles)])
    line.sendall(body)
    answer = b""
    forwarded = False
    while answer.count(b"\n") < 2:
        chunk = line.recv(64)
        if not chunk:
            return 1
        answer += chunk
        if not forwarded and b"\n" in answer:
            forwarded = True
            pid = int(answer.split(b"\n")[0])
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda number, _, pid=pid: os.kill(pid, number))
    code = int(answer.split()[1])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


os._exit(main())
