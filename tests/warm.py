"""``cockpit`` as a process that need not load anything: forked from one that has loaded it.

A command that runs this way is a real process with its own folder, environment and streams. Tests of a start
itself (what it loads, what a signal or a kill does to it) use processes that start from nothing.

``conftest.py`` starts one server for all workers of a test run. It loads cockpit at the first request.
"""

from __future__ import annotations

import atexit
import marshal
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parent
VARIABLE = "COCKPIT_TEST_WARM"
"""The environment variable that names the server's socket."""

_RELAY = TESTS / "warm_relay.py"
_START_S = 30.0
_LOAD = b"\xff" * 4
"""In the place of a length: the rest is the name of a module to load."""


def command() -> tuple[str, ...]:
    """The beginning of an argument list that does what ``python -m cockpit`` does.

    The process that it names passes its streams on, forwards signals, and ends as cockpit ends.
    """
    return (sys.executable, "-I", "-S", str(_RELAY), os.environ[VARIABLE])


def run(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    patience_s: float,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run ``cockpit WORDS`` to its end, as ``subprocess.run`` does with everything captured.

    Python reads some variables of the environment when it starts: with one of those it starts anew.
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
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        source.write(stdin.encode())
        source.seek(0)
        streams = [source.fileno(), out.fileno(), err.fileno()]
        code = _forked(words, cwd, env, streams, patience_s)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(list(words), code, *texts)


def load(module: str) -> None:
    """Let the server load a module, once, so that no process that it forks later has to.

    For what few commands need and what takes seconds to import, as a provider's SDK.
    """
    with _connected() as line:
        line.sendall(_LOAD + module.encode())
        line.shutdown(socket.SHUT_WR)
        line.settimeout(4 * _START_S)
        assert line.recv(1) == b"+", f"The warm server could not load {module}"


def start_server() -> None:
    """Start the server of this test run, unless there is one, and name it in the environment.

    The first process of a run starts it; the run's other processes inherit the name. It ends with the first.
    """
    if VARIABLE in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    place = str(Path(folder.name) / "socket")
    process = subprocess.Popen(
        [sys.executable, __file__, place],
        cwd=TESTS.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    os.environ[VARIABLE] = place

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)


def _forked(
    words: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    streams: list[int],
    patience_s: float,
) -> int:
    body = marshal.dumps((list(words), str(cwd), dict(env)))
    with _connected() as line:
        socket.send_fds(line, [len(body).to_bytes(4, "big")], streams)
        line.sendall(body)
        line.settimeout(patience_s)
        answer = b""
        while answer.count(b"\n") < 2:
            chunk = line.recv(64)
            if not chunk:
                raise RuntimeError(f"The warm server ended within: cockpit {' '.join(words)}")
            answer += chunk
        return int(answer.split()[1])


def _connected() -> socket.socket:
    deadline = time.monotonic() + _START_S
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(os.environ[VARIABLE])
            return line
        except (FileNotFoundError, ConnectionRefusedError):
            line.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def serve(place: str) -> None:
    """Fork a ``cockpit`` for whoever connects, until stdin is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen(64)
        if os.fork() == 0:
            door.close()
            sys.stdin.buffer.read()
            os.kill(os.getppid(), signal.SIGKILL)
            os._exit(0)
        loaded = False
        while True:
            line, _ = door.accept()
            if not loaded:
                _load()
                loaded = True
            with line:
                if line.recv(4, socket.MSG_PEEK | socket.MSG_WAITALL) == _LOAD:
                    _load_more(line)
                elif os.fork() == 0:
                    door.close()
                    _see_through(line)


def _load() -> None:
    import gc
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
        "mcp.run_server",
        "mcp.stdio_transport",
    ):
        importlib.import_module(f"cockpit.{name}")
    count_tokens("loads the vocabulary")
    gc.collect()
    gc.freeze()


def _load_more(line: socket.socket) -> None:
    import gc
    import importlib

    with line.makefile("rb") as asked:
        importlib.import_module(asked.read()[len(_LOAD) :].decode())
    gc.collect()
    gc.freeze()
    line.sendall(b"+")


def _see_through(line: socket.socket) -> None:
    """Start the command, send its pid, wait, send its exit code; never returns.

    Kills the command when the client goes away.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, handles, _, _ = socket.recv_fds(line, 4, 3)
    length, body = int.from_bytes(head, "big"), b""
    while len(body) < length:
        body += line.recv(min(65_536, length - len(body)))
    words, cwd, env = marshal.loads(body)
    pid = os.fork()
    if pid == 0:
        line.close()
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
        _command(words, cwd, env)
    for handle in handles:
        os.close(handle)
    line.sendall(f"{pid}\n".encode())
    watcher = os.fork()
    if watcher == 0:
        # The client's end of the line closes when it is killed: the command goes with it.
        if not line.recv(1):
            os.kill(pid, signal.SIGKILL)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    os.kill(watcher, signal.SIGKILL)
    try:
        line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    except BrokenPipeError:
        os._exit(0)
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
