"""``cockpit`` as a process that need not load anything: forked from one that has loaded it.

A command that runs this way is a real process with its own folder, environment and streams, and so are those
that it starts with its own interpreter, as the workers of a chain. Tests of a start itself (what it loads,
what a signal or a kill does to it) use processes that start from nothing.

``conftest.py`` starts one server (``warm_server.py``) for all workers of a test run. It loads cockpit at the
first request.
"""

from __future__ import annotations

import atexit
import marshal
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import command_in_process
import state_for_tests
from warm_server import LOAD

TESTS = Path(__file__).resolve().parent
VARIABLE = "COCKPIT_TEST_WARM"
"""The environment variable that names the server's folder."""

COLD = {"COCKPIT_TEST_COLD": "1"}
"""With this in its environment, a process starts others with the interpreter of the tests, from nothing."""

_HARMLESS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
_START_S = 30.0
_FEW_THREADS = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "OPENBLAS_NUM_THREADS": "1"}
"""Each process would begin with memory for each thread, and with threads for arrays."""


def python() -> str:
    """The path of an interpreter whose ``-m cockpit`` is forked from the server.

    So is whatever follows ``--warm``; for all else it is the interpreter of the tests. The process that one
    starts passes its streams on, forwards signals, and ends as the forked one ends.
    """
    return str(Path(os.environ[VARIABLE]) / "python")


def command() -> tuple[str, ...]:
    """The beginning of an argument list that does what ``python -m cockpit`` does."""
    return (python(), "-m", "cockpit")


def script() -> tuple[str, ...]:
    """The beginning of an argument list for a FILE or ``-c CODE`` of the tests' own that uses cockpit."""
    return (python(), "--warm")


def run(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    patience_s: float,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run ``cockpit WORDS`` to its end, as ``subprocess.run`` does with everything captured.

    What leaves nothing behind has no process of its own (``command_in_process.py``): it costs a third less.
    """
    done = run_bytes(words, cwd=cwd, env=env, patience_s=patience_s, stdin=stdin.encode())
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def run_bytes(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    patience_s: float,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Do what :func:`run` does, with bytes for text.

    Python reads some variables of the environment when it starts: with one of those it starts anew.
    """
    if state_for_tests.VARIABLE not in env:  # `make chaos` has no folder for all of its trials
        env = {state_for_tests.VARIABLE: state_for_tests.folder(), **env}
    if any(name.startswith("PYTHON") and name not in _HARMLESS for name in env):
        return subprocess.run(
            [sys.executable, "-m", "cockpit", *words],
            cwd=cwd,
            env=dict(env),
            input=stdin,
            capture_output=True,
            timeout=patience_s,
        )
    if command_in_process.fits(words):
        return command_in_process.run(
            words, cwd=cwd, env=env, stdin=stdin, patience_s=patience_s, interpreter=python()
        )
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        source.write(stdin)
        source.seek(0)
        streams = [source.fileno(), out.fileno(), err.fileno()]
        code = _forked(("-m", "cockpit", *words), cwd, env, streams, patience_s)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(words), code, out.read(), err.read())


class Process(subprocess.Popen[Any]):
    """A process of :func:`python`. When :meth:`kill` returns, the forked process has gone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # Until it can pass the signal on, which it lets through then.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        try:
            super().__init__(*arguments, **options)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def kill(self) -> None:
        # The relay takes the signal up when it comes to run. Until then the forked process would see what the
        # test does next, as a program of its own that is killed too.
        self.send_signal(signal.SIGUSR1)
        self.wait()


def load(name: str) -> None:
    """Let the server load a module, once, so that no process that it forks later has to.

    For what few commands need and what takes seconds to import, as a provider's SDK. Of a name like
    ``module:function`` it calls the function as well.
    """
    with _connected() as line:
        line.sendall(LOAD + name.encode())
        line.shutdown(socket.SHUT_WR)
        line.settimeout(4 * _START_S)
        assert line.recv(1), f"The warm server could not load {name}"


def load_screen() -> None:
    """Let the server load what a screen needs (``warm_screen.py``), for processes that open one."""
    load("warm_screen:load_screen")


def begin_to_load() -> None:
    """Let the server load cockpit from now on, on another processor: it does when it is connected to."""
    _connected().close()


def start_server() -> None:
    """Start the server of this test run, unless there is one, and name it in the environment.

    The first process of a run starts it; the run's other processes inherit the name. It ends with the first.
    """
    if VARIABLE in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    interpreter = Path(folder.name) / "python"
    relay = (TESTS / "warm_relay.py").read_text(encoding="utf-8")
    interpreter.write_text(f"#!{sys.executable} -IS\n{relay}", encoding="utf-8")
    interpreter.chmod(0o700)
    process = subprocess.Popen(
        [sys.executable, str(TESTS / "warm_server.py"), folder.name],
        cwd=TESTS.parent,
        env={**os.environ, **_FEW_THREADS},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    os.environ[VARIABLE] = folder.name

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
    body = marshal.dumps((0, [], list(words), str(cwd), dict(env)))
    with _connected() as line:
        socket.send_fds(line, [len(body).to_bytes(4, "big")], streams)
        line.sendall(body)
        line.settimeout(patience_s)
        answer = b""
        while answer.count(b"\n") < 2:
            chunk = line.recv(64)
            if not chunk:
                raise RuntimeError(f"The warm server ended within: {' '.join(words)}")
            answer += chunk
        return int(answer.split()[1])


def _connected() -> socket.socket:
    place = str(Path(os.environ[VARIABLE]) / "socket")
    deadline = time.monotonic() + _START_S
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(place)
            return line
        except (FileNotFoundError, ConnectionRefusedError):
            line.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
