"""Run tests in processes that are forked from the one that has collected them: ``pytest --workers 4``.

Each worker of pytest-xdist imports and collects everything: five seconds of a processor each, and a
millisecond for every test that it reports. A forked worker has both from the start, takes one module after
the other from a pipe, and reports each test in a few bytes. To plug-ins it is a worker of pytest-xdist:
``config.workerinput``, ``config.workeroutput`` and the environment are the same.
"""

from __future__ import annotations

import atexit
import mmap
import os
import pickle
import random
import select
import signal
import struct
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest
import state_for_tests

ENDS_S = 10.0
"""How long an interrupted worker may take to end, in seconds."""
_LOOK_S = 0.5
"""Between two looks at whether workers still run, in seconds: what a test has left may keep a pipe open."""
_LENGTH = struct.Struct("=I")
_PIECE = struct.Struct("=ii")
"""A run of items of one module, as its bounds in the order of the run."""
_READ = 1 << 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--workers``."""
    parser.addoption(
        "--workers",
        type=int,
        default=0,
        help="run tests in so many forked processes, for example 4",
    )


def count_workers(config: pytest.Config) -> int:
    """Return how many workers the run has; 0 if it needs none, or cannot have any, as with a debugger."""
    if any(config.getoption(name, False) for name in ("collectonly", "usepdb", "numprocesses")):
        return 0
    return int(config.getoption("workers"))


def pytest_configure(config: pytest.Config) -> None:
    """Replace the loop over the tests, if there are workers."""
    if count_workers(config):
        config.pluginmanager.register(ForkedWorkers(config))


@dataclass
class _Worker:
    """A forked process, as the one that forked it sees it."""

    number: int
    pid: int
    pipe: int
    """Where its reports arrive."""
    received: bytearray = field(default_factory=bytearray)
    output: dict[str, Any] | None = None
    """What its plug-ins have for those of the whole run; it is the last that a worker sends."""


class ForkedWorkers:
    """The plug-in that replaces pytest's own loop over the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._workers: dict[int, _Worker] = {}
        self._forked = 0
        # Written by the workers: whether to stop, and where in the run each of them is.
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests in workers; leave one test alone to pytest, and what was not collected."""
        if len(session.items) < 2 or session.testsfailed:
            return None
        self._session = session
        self._order = order_tests(session.items)
        self._pieces, tokens = os.pipe()
        for piece in cut_modules(self._order):
            os.write(tokens, _PIECE.pack(*piece))
        os.close(tokens)
        try:
            for _ in range(min(count_workers(self._config), len(session.items))):
                self._fork()
            self._listen()
        finally:
            self._end()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _fork(self, first: tuple[int, int] = (0, 0)) -> None:
        """Start a worker, which begins with the piece ``first``."""
        number = self._forked
        self._forked += 1
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            for worker in self._workers.values():
                os.close(worker.pipe)
            self._be_worker(number, writing, first)
        os.close(writing)
        os.set_blocking(reading, False)
        self._workers[pid] = _Worker(number, pid, reading)

    # What a worker does.

    def _be_worker(self, number: int, pipe: int, first: tuple[int, int]) -> None:
        code, pid = 1, os.getpid()
        own = ExitStack()
        # What was registered before is for the process of the run to do: it would remove what others use.
        atexit.register = own.callback
        try:
            self._prepare_worker(number)
            self._pipe = pipe
            self._run_pieces(number, first)
            config: Any = self._config
            failed = self._session.testsfailed
            status = pytest.ExitCode.TESTS_FAILED if failed else pytest.ExitCode.OK
            config.hook.pytest_sessionfinish(session=self._session, exitstatus=status)
            self._send(config.workeroutput)
            code = 0
        except KeyboardInterrupt:
            code = 2
        except BaseException:
            if os.getpid() == pid:
                self._send(traceback.format_exc())
        finally:
            if os.getpid() == pid:  # else a process that a test has forked
                own.close()
            os._exit(code)

    def _prepare_worker(self, number: int) -> None:
        """Give the process what is its own: capture, folders, chance, and the reports of its tests."""
        config: Any = self._config
        name = f"gw{number}"
        os.environ["PYTEST_XDIST_WORKER"] = name
        os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(count_workers(config))
        config.workerinput = {"workerid": name}
        config.workeroutput = {}
        plugins = config.pluginmanager
        capture = plugins.getplugin("capturemanager")
        # Otherwise all workers would write what they capture into one file.
        self._inherited_capture = capture._global_capturing
        capture._global_capturing = None
        capture.start_global_capturing()
        capture.suspend_global_capture()
        for plugin in ("terminalreporter", "junitxml"):
            if plugins.hasplugin(plugin):
                plugins.unregister(name=plugin)
        folder = config._tmp_path_factory.getbasetemp() / f"popen-{name}"
        folder.mkdir(mode=0o700)
        config._tmp_path_factory._basetemp = folder
        random.seed()
        state_for_tests.install()
        self._reports: list[tuple[Any, ...]] = []
        plugins.register(_Collector(config, self._reports))

    def _run_pieces(self, number: int, piece: tuple[int, int]) -> None:
        place = number % (mmap.PAGESIZE // _PIECE.size - 1) + 1
        while True:
            start, stop = piece
            for position in range(start, stop):
                if self._shared[0] or self._session.shouldfail or self._session.shouldstop:
                    return
                _PIECE.pack_into(self._shared, place * _PIECE.size, position + 1, stop)
                self._run_test(position, last=position + 1 == stop)
            _PIECE.pack_into(self._shared, place * _PIECE.size, 0, 0)
            token = os.read(self._pieces, _PIECE.size)
            if not token:
                return
            piece = _PIECE.unpack(token)

    def _run_test(self, position: int, *, last: bool) -> None:
        # After the last of a piece only fixtures of the session remain: another worker may have the next.
        following: Any = self._session if last else self._order[position + 1]
        item = self._order[position]
        self._reports.clear()
        pid = os.getpid()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if os.getpid() != pid:
            os._exit(1)  # a process that the test has forked, and that got here with its failure
        self._send((position, self._reports))

    def _send(self, message: object) -> None:
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        body = _LENGTH.pack(len(body)) + body
        while body:
            body = body[os.write(self._pipe, body) :]

    # What the process of the run does.

    def _listen(self) -> None:
        while self._workers:
            pipes = {worker.pipe: worker for worker in self._workers.values()}
            for pipe in select.select(list(pipes), [], [], _LOOK_S)[0]:
                self._read(pipes[pipe])
            for worker in pipes.values():
                ended, status = os.waitpid(worker.pid, os.WNOHANG)
                if ended:
                    self._bury(worker, os.waitstatus_to_exitcode(status))
            if self._session.shouldfail or self._session.shouldstop:
                self._shared[0] = 1

    def _read(self, worker: _Worker) -> bool:
        """Read what there is; False if there is nothing more."""
        try:
            chunk = os.read(worker.pipe, _READ)
        except BlockingIOError:
            return False
        worker.received += chunk
        while len(worker.received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(worker.received)
            end = _LENGTH.size + length
            if len(worker.received) < end:
                break
            message = pickle.loads(bytes(worker.received[_LENGTH.size : end]))
            del worker.received[:end]
            self._take(worker, message)
        return bool(chunk)

    def _take(self, worker: _Worker, message: Any) -> None:
        if isinstance(message, str):
            raise RuntimeError(f"A worker of the tests has failed:\n{message}")
        if isinstance(message, dict):
            worker.output = message
            return
        position, reports = message
        item = self._order[position]
        hook = item.ihook
        keywords = dict.fromkeys(item.keywords, 1)
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for kind, *values in reports:
            if kind == "passed":
                hook.pytest_runtest_logreport(report=_passed(item, keywords, *values))
            elif kind == "report":
                report = self._config.hook.pytest_report_from_serializable(
                    config=self._config, data=values[0]
                )
                hook.pytest_runtest_logreport(report=report)
            else:
                warning, when, nodeid, location = values
                self._config.hook.pytest_warning_recorded.call_historic(
                    kwargs={
                        "warning_message": SimpleNamespace(**warning),
                        "when": when,
                        "nodeid": nodeid,
                        "location": location,
                    }
                )
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _bury(self, worker: _Worker, code: int) -> None:
        """Note the end of a worker; blame the test that ended it, and let another run what it had left."""
        while self._read(worker):
            continue
        os.close(worker.pipe)
        del self._workers[worker.pid]
        if worker.output is not None:
            if hasattr(self._config.hook, "pytest_testnodedown"):
                node = SimpleNamespace(config=self._config, workeroutput=worker.output)
                self._config.hook.pytest_testnodedown(node=node, error=None)
            return
        place = worker.number % (mmap.PAGESIZE // _PIECE.size - 1) + 1
        position, stop = _PIECE.unpack_from(self._shared, place * _PIECE.size)
        if not position:
            raise RuntimeError(f"A worker of the tests ended between two tests, with {code}")
        item = self._order[position - 1]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"The process of the test ended in it, with {how}",
            when="call",
        )
        item.ihook.pytest_runtest_logreport(report=report)
        if not self._shared[0]:
            self._fork((position, stop))

    def _end(self) -> None:
        """End the workers that still run, after a failure or an interrupt of the run."""
        self._shared[0] = 1
        for pid in self._workers:
            os.kill(pid, signal.SIGINT)
        end = time.monotonic() + ENDS_S
        for worker in list(self._workers.values()):
            while os.waitpid(worker.pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > end:
                    os.kill(worker.pid, signal.SIGKILL)
                    os.waitpid(worker.pid, 0)
                    break
                time.sleep(0.02)
            os.close(worker.pipe)
        self._workers.clear()
        os.close(self._pieces)


class _Collector:
    """The plug-in of a worker that keeps what its tests report."""

    def __init__(self, config: pytest.Config, reports: list[tuple[Any, ...]]) -> None:
        self._config = config
        self._reports = reports

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        more = report.sections or report.user_properties or report.longrepr
        if report.passed and not more and not hasattr(report, "wasxfail"):
            times = (report.when, report.duration, report.start, report.stop)
            self._reports.append(("passed", *times))
            return
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(("report", data))

    def pytest_warning_recorded(
        self, warning_message: Any, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        category = warning_message.category
        try:
            pickle.dumps(category)
        except (pickle.PicklingError, AttributeError):
            category = UserWarning  # it is a class of a function
        described = {
            "message": str(warning_message.message),
            "category": category,
            "filename": warning_message.filename,
            "lineno": warning_message.lineno,
            "line": warning_message.line,
            "source": None,
        }
        self._reports.append(("warning", described, when, nodeid, location))


def _passed(
    item: Any, keywords: Any, when: Any, duration: float, start: float, stop: float
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.id,
        location=item.location,
        keywords=keywords,
        outcome="passed",
        longrepr=None,
        when=when,
        duration=duration,
        start=start,
        stop=stop,
    )


def order_tests(items: list[pytest.Item]) -> list[pytest.Item]:
    """Put the modules marked slow first, and then those with many tests.

    At the end no worker waits for a long module of another's.
    """
    counts = Counter(item.path for item in items)
    return sorted(
        items, key=lambda item: (item.get_closest_marker("slow") is None, -counts[item.path])
    )


def cut_modules(items: list[pytest.Item]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each run of items from one module."""
    start = 0
    for _, run in groupby(items, key=lambda item: item.path):
        stop = start + len(list(run))
        yield start, stop
        start = stop
