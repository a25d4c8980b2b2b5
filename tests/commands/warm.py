"""``cockpit`` as a process of its own that need not load anything: forked from one that has.

A session run this way is one in a real process with its own directory, environment and streams. What a
start itself does is tested with processes that begin from nothing (``Project.start``).
"""

from __future__ import annotations

import atexit
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def run(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str, patience_s: float
) -> subprocess.CompletedProcess[str]:
    """Run ``cockpit WORDS`` to its end, as ``subprocess.run`` does with everything captured.

    A number of the environment's variables are read when Python starts: with one of those it starts.
    """
    if any(name.startswith("PYTHON") for name in env):
        return subprocess.run(
            [sys.executable, "-m", "cockpit", *words],
            cwd=cwd,
            env=dict(env),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=patience_s,
        )
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        code = _forked(words, cwd, env, [given.fileno(), out.fileno(), err.fileno()], patience_s)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(list(words), code, *texts)


def _forked(
    words: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    streams: list[int],
    patience_s: float,
) -> int:
    told, tell = os.pipe()
    with socket.socket(socket.AF_UNIX) as line, open(told, "rb") as news:
        try:
            line.connect(str(_server()))
            body = json.dumps({"words": list(words), "cwd": str(cwd), "env": dict(env)}).encode()
            socket.send_fds(line, [len(body).to_bytes(4, "big")], [*streams, tell])
            line.sendall(body)
        finally:
            os.close(tell)
        pid = int(news.readline())
        line.settimeout(patience_s)
        try:
            line.recv(1)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        return int(news.readline())


@cache
def _server() -> Path:
    """Where the process listens that has everything loaded; it ends with this one."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    place = Path(folder.name) / "socket"
    process = subprocess.Popen(
        [sys.executable, __file__, str(place)],
        cwd=TESTS.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return place


def serve(place: str) -> None:
    """Fork a ``cockpit`` for whoever connects, until stdin is closed."""
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen(16)
        print("ready", flush=True)
        if os.fork() == 0:
            sys.stdin.buffer.read()
            os.kill(os.getppid(), signal.SIGKILL)
            os._exit(0)
        while True:
            line, _ = door.accept()
            with line:
                if os.fork() == 0:
                    door.close()
                    _see_through(line)


def _load() -> None:
    import importlib

    from cockpit import cli
    from cockpit.observe.count_tokens import count_tokens

    for where, _ in cli.COMMANDS.values():
        importlib.import_module(where.partition(":")[0])
    for name in (
        "loop.runtime",
        "orient.compile_packet",
        "orient.fact_columns",
        "decide.offline.script_model",
    ):
        importlib.import_module(f"cockpit.{name}")
    count_tokens("loads the vocabulary")


def _see_through(line: socket.socket) -> None:
    """Start the command, tell its pid, wait, tell its exit code; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, handles, _, _ = socket.recv_fds(line, 4, 4)
    body = b""
    while len(body) < int.from_bytes(head, "big"):
        body += line.recv(65_536)
    asked, tell = json.loads(body), handles.pop()
    pid = os.fork()
    if pid == 0:
        line.close()
        os.close(tell)
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
        _command(asked["words"], asked["cwd"], asked["env"])
    os.write(tell, f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(tell, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _command(words: list[str], cwd: str, env: dict[str, str]) -> None:
    """What ``python -m cockpit`` does; never returns."""
    code = 1
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        random.seed()
        sys.argv = ["cockpit", *words]
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace")
        from cockpit.cli import main

        code = main()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
