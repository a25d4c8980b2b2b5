"""The forked workers of a test run report what pytest itself would, and outlive a process that ends."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from warm_server import run_due

TESTS = Path(__file__).parent.parent

MODULE = """
import os, signal, sys, warnings
import pytest

def test_passes():
    pass

def test_fails(tmp_path):
    print("words of a failed test")
    assert (os.environ["PYTEST_XDIST_WORKER"],) == ()

def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_comes_after():
    pass

def test_warns():
    warnings.warn("mind the step", FutureWarning)

@pytest.mark.skip(reason="too early")
def test_is_skipped():
    pass

@pytest.mark.xfail
def test_is_expected_to_fail():
    assert False

@pytest.fixture
def broken():
    yield
    raise ValueError("cannot tidy up")

def test_ends_badly(broken):
    pass

def test_exits():
    os._exit(3)

def test_forks_a_process_that_goes_wrong():
    if os.fork() == 0:
        sys.exit("it is not a test")
    os.wait()
"""

FIXTURE = """
import os
import signal
import pytest

@pytest.fixture(scope="module")
def once():
    with open("notes", "a") as notes:
        notes.write(f"begins {os.getpid()}\\n")
    yield os.getpid()
    with open("notes", "a") as notes:
        notes.write(f"ends {os.getpid()}\\n")

@pytest.mark.parametrize("number", range(9))
def test_uses_it(once, number):
    assert once == os.getpid()

def test_goes_on_when_the_first_result_is_seen():
    signal.alarm(60)
    open("seen").close()
    signal.alarm(0)
"""


def run(folder: Path, *words: str) -> tuple[int, str]:
    """Run the modules of ``folder`` in two workers; return the exit code and what was printed.

    The pipe ``seen`` is opened when the first test that passed is printed.
    """
    os.mkfifo(folder / "seen")
    printed = []
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "forked_workers",
            "--workers=2",
            "--tb=short",
            *words,
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(TESTS),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_DEBUG_TEMPROOT": str(folder),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        seen = None
        for line in process.stdout:
            printed.append(line)
            if " PASSED" in line and seen is None:
                seen = os.open(folder / "seen", os.O_RDWR)  # stays open: its reader may come later
        if seen is not None:
            os.close(seen)
        code = process.wait()
    return code, "".join(printed)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, list[str]]:
    folder = tmp_path_factory.mktemp("workers")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name in ("one", "two"):
        (folder / f"test_{name}.py").write_text(MODULE, encoding="utf-8")
    (folder / "test_three.py").write_text(FIXTURE, encoding="utf-8")
    code, printed = run(folder, "-v")
    return code, printed, (folder / "notes").read_text(encoding="utf-8").splitlines()


def test_every_outcome_is_reported_once(outcome: tuple[int, str, list[str]]) -> None:
    code, printed, _ = outcome
    assert code == 1
    assert "6 failed, 20 passed, 2 skipped, 2 xfailed, 2 warnings, 2 errors" in printed
    for name in ("one", "two"):
        assert f"test_{name}.py::test_passes PASSED" in printed
        assert f"test_{name}.py::test_is_skipped SKIPPED (too early)" in printed
        assert printed.count(f"test_{name}.py::test_comes_after PASSED") == 1


def test_a_failure_keeps_its_words_and_a_warning_its_kind(
    outcome: tuple[int, str, list[str]],
) -> None:
    _, printed, _ = outcome
    assert printed.count("words of a failed test") >= 2
    assert "'gw0'" in printed and "'gw1'" in printed
    assert "FutureWarning: mind the step" in printed
    assert "ValueError: cannot tidy up" in printed


def test_a_process_that_ends_fails_its_test_alone(outcome: tuple[int, str, list[str]]) -> None:
    _, printed, _ = outcome
    assert printed.count("The process of the test ended in it, with signal 9") >= 2
    assert printed.count("The process of the test ended in it, with exit code 3") >= 2
    assert "it is not a test" not in printed


def test_fixtures_of_a_module_begin_and_end_in_one_worker(
    outcome: tuple[int, str, list[str]],
) -> None:
    _, _, notes = outcome
    begins, ends = notes
    assert begins.replace("begins", "ends") == ends


def test_a_run_stops_at_the_first_failure(tmp_path: Path) -> None:
    for name in ("one", "two", "three", "four"):
        body = "def test_fails():\n    assert False\n" + "".join(
            f"def test_{number}():\n    pass\n" for number in range(200)
        )
        (tmp_path / f"test_{name}.py").write_text(body, encoding="utf-8")
    code, printed = run(tmp_path, "-x", "-q")
    assert code == 1
    assert "stopping after" in printed
    assert printed.count("FAILED ") <= 2
    assert "800 passed" not in printed


def test_the_warm_server_outlives_a_client_that_goes_as_its_process_ends() -> None:
    """Both are due at once, and the first to be served closes the connection of the other."""
    looker = selectors.DefaultSelector()
    pairs = [socket.socketpair() for _ in range(2)]
    served = []

    def serve(number: int) -> None:
        served.append(number)
        other = pairs[1 - number][0]
        looker.unregister(other)
        other.close()
        # Its number goes to the next connection.
        pairs.append(socket.socketpair())
        looker.register(pairs[-1][0], selectors.EVENT_READ, lambda: served.append(-1))

    for number, (line, client) in enumerate(pairs):
        looker.register(line, selectors.EVENT_READ, lambda number=number: serve(number))
        client.close()
    run_due(looker)
    assert len(served) == 1
    for pair in pairs:
        for end in pair:
            end.close()
    looker.close()
