"""``cockpit`` as the tests run it: in this process where it ends by itself, else in a process of its own.

Both run the program as it ships. A test gives it what a test machine lacks: the user (``assume_user``), and
trust in the files of its project. ``PROGRAM`` starts a process with both; ``BARE`` starts one with neither.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import state_for_tests

from cockpit.access.reading_sandbox import reading_sandbox, use_reading_sandbox

BARE = (sys.executable, "-m", "cockpit")
PROGRAM = (sys.executable, str(Path(__file__).with_name("cockpit_for_user.py")))
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    patience_s: float,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run ``cockpit WORDS`` to its end, and capture what it prints."""
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
    """Do what :func:`run` does, with bytes for text."""
    env = {state_for_tests.VARIABLE: state_for_tests.folder(), **env}
    is_alone = threading.current_thread() is threading.main_thread()
    if not words or not is_alone or asyncio._get_running_loop() is not None:
        return subprocess.run(
            [*PROGRAM, *words],
            cwd=cwd,
            env=env,
            input=stdin,
            capture_output=True,
            timeout=patience_s,
        )
    return _run_here(words, cwd, env, stdin)


def _run_here(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    with ExitStack() as stack:
        source, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        source.write(stdin)
        source.seek(0)
        for context in (
            _with_signals(),
            _in_folder(cwd),
            _in_environment(env),
            _with_streams(source, out, err),
        ):
            stack.enter_context(context)
        arguments, sys.argv = sys.argv, ["cockpit", *words]
        try:
            code = contextvars.copy_context().run(_main)
        finally:
            sys.argv = arguments
        sys.stdout.flush()
        sys.stderr.flush()
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read())
    return subprocess.CompletedProcess(list(words), code, *printed)


def _main() -> int:
    from cockpit.__main__ import main
    from cockpit.hook.hook_call import answer_call

    if sys.argv[1:2] == ["hook"] and sys.argv[2:3] in ([], ["--agent"]):
        answer_call(sys.argv[2:])  # what main does with it, except the end of the process
        return 0
    try:
        return main()
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)


@contextmanager
def _with_signals() -> Iterator[None]:
    before = [(number, signal.getsignal(number)) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def _in_folder(cwd: Path) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY)
    os.chdir(cwd)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextmanager
def _in_environment(env: Mapping[str, str]) -> Iterator[None]:
    before, temporary, reader = dict(os.environ), tempfile.tempdir, reading_sandbox()
    _set_environment(env)
    use_reading_sandbox(None)
    tempfile.tempdir = None
    state_for_tests.trust_everything()
    try:
        yield
    finally:
        _set_environment(before)
        tempfile.tempdir = temporary
        use_reading_sandbox(reader)
        state_for_tests.trust_everything()


def _set_environment(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()


@contextmanager
def _with_streams(*files: Any) -> Iterator[None]:
    """Put files in the place of stdin, stdout and stderr, for programs that are started as well."""
    names = ("stdin", "stdout", "stderr")
    before = [getattr(sys, name) for name in names]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    handles = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(
            2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        yield
    finally:
        for name in names:
            getattr(sys, name).close()
        for name, stream in zip(names, before, strict=True):
            setattr(sys, name, stream)
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
