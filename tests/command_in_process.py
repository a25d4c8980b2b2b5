"""``cockpit`` run in the process of the tests, as in one of its own: a fork copies what a command writes to.

Such a command has its own folder, environment, streams, signals, arguments and name among processes, and
leaves none of them. It does not have a process: what starts others that outlive it, what serves, draws or
is killed, runs elsewhere (``warm.py``). ``tests/commands/test_command_in_process.py`` compares the two.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import state_for_tests

_ELSEWHERE = frozenset(("acp", "demo", "hook", "mcp", "serve", "replay"))
"""What leaves processes, stays or draws."""
_CHAINS = frozenset(("list", "stop"))
_PLAIN = frozenset(("--version", "--help", "-h", "-p"))
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
_ordinals = itertools.count(1)


def fits(words: Sequence[str]) -> bool:
    """Tell whether ``cockpit WORDS`` may run here and now."""
    return (
        _ends_with_all(words)
        and threading.current_thread() is threading.main_thread()
        and asyncio._get_running_loop() is None
    )


def _ends_with_all(words: Sequence[str]) -> bool:
    """Tell whether the command ends when its work is done, with whatever it starts."""
    first = words[0] if words else ""
    if first == "work":
        return "--task" in words
    if first == "chain":
        return words[1] in _CHAINS if len(words) > 1 else True
    return first in _PLAIN or (first in _commands() and first not in _ELSEWHERE)


def run(
    words: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: bytes,
    patience_s: float,
    interpreter: str,
) -> subprocess.CompletedProcess[bytes]:
    """Run ``cockpit WORDS`` to its end, as a process with ``interpreter`` would."""
    with ExitStack() as stack:
        source, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        source.write(stdin)
        source.seek(0)
        for context in (
            _limited(patience_s, words),
            _in_folder(cwd),
            _in_environment(env),
            _with_streams(source, out, err),
            _as_own_process(interpreter, words),
        ):
            stack.enter_context(context)
        code = contextvars.copy_context().run(_main)
        sys.stdout.flush()
        sys.stderr.flush()
        results = []
        for file in (out, err):
            file.seek(0)
            results.append(file.read())
    return subprocess.CompletedProcess(list(words), code, *results)


def _main() -> int:
    """Do what ``sys.exit(main())`` of a program does, but for the end of the process."""
    from cockpit.__main__ import main

    try:
        return main()
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except _TookTooLong:
        raise
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
        return 1


@cache
def _commands() -> frozenset[str]:
    from cockpit.cli import COMMANDS

    return frozenset(COMMANDS)


class _TookTooLong(BaseException):
    """No handler of a command's own errors takes it for one."""


@contextmanager
def _limited(patience_s: float, words: Sequence[str]) -> Iterator[None]:
    """Keep the signals' handlers, and interrupt what does not end."""
    handlers = [(number, signal.getsignal(number)) for number in _SIGNALS]

    def interrupt(*_: object) -> None:
        raise _TookTooLong(f"cockpit {' '.join(words)} took longer than {patience_s} s")

    for number in _SIGNALS[1:]:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, patience_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers:
            signal.signal(number, handler)


@contextmanager
def _in_folder(cwd: str | os.PathLike[str]) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY)
    os.chdir(cwd)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextmanager
def _in_environment(env: Mapping[str, str]) -> Iterator[None]:
    before, temporary = dict(os.environ), tempfile.tempdir
    _set_environment(env)
    tempfile.tempdir = None
    state_for_tests.trust_everything()
    try:
        yield
    finally:
        _set_environment(before)
        tempfile.tempdir = temporary
        state_for_tests.trust_everything()


def _set_environment(env: Mapping[str, str]) -> None:
    zone = os.environ.get("TZ")
    for name in [name for name in os.environ if name not in env]:
        del os.environ[name]
    for name, value in env.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    if os.environ.get("TZ") != zone:
        time.tzset()


@contextmanager
def _with_streams(*files: Any) -> Iterator[None]:
    """Put files in the place of stdin, stdout and stderr, for programs that are started as well."""
    names = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
    before = [(name, getattr(sys, name)) for name in names]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    handles = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(
            2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        sys.__stderr__ = sys.stderr
        yield
    finally:
        for name in names[:3]:
            getattr(sys, name).close()
        for name, stream in before:
            setattr(sys, name, stream)
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)


@contextmanager
def _as_own_process(interpreter: str, words: Sequence[str]) -> Iterator[None]:
    """Give the command the arguments, loggers, sandbox and name of a process that ends with it."""
    from cockpit import __main__ as entry
    from cockpit.access.reading_sandbox import reading_sandbox, use_reading_sandbox
    from cockpit.commands import ask_trust
    from cockpit.core import processes

    before = (sys.argv, sys.executable, logging.root.handlers[:], logging.root.level)
    garbage = gc.get_threshold()
    sys.argv, sys.executable = [str(entry.__file__), *words], interpreter
    logging.root.handlers[:] = []
    logging.root.setLevel(logging.WARNING)
    read, ordinal = processes._state_and_start, next(_ordinals)

    def read_as_own(pid: int) -> tuple[str, str]:
        state, start = read(pid)
        return state, f"{start}{ordinal:06}" if pid == os.getpid() else start

    sandbox = reading_sandbox()
    use_reading_sandbox(None)
    processes._state_and_start = read_as_own
    processes._cached_name.cache_clear()
    ask_trust._announced.clear()
    try:
        yield
    finally:
        use_reading_sandbox(sandbox)
        processes._state_and_start = read
        processes._cached_name.cache_clear()
        sys.argv, sys.executable, logging.root.handlers[:], level = before
        logging.root.setLevel(level)
        gc.set_threshold(*garbage)
