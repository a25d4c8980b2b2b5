"""What applies to every test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
import state_for_tests

from cockpit.access import user_presence
from cockpit.access.reading_sandbox import use_reading_sandbox

pytest_plugins = ("processor_time",)

# How fast examples are made says how busy the machine is, nothing about the program. A run of all tests
# tries the examples of the run before; `make soak` searches.
_REPEATS = "COCKPIT_EXAMPLES" not in os.environ
hypothesis.settings.register_profile(
    "at any load",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=_REPEATS,
)
hypothesis.settings.load_profile("at any load")

# Programs of tests that ask for python3 get the one that runs the tests.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
# Processes of tests run in projects whose status is compared. This one keeps what it compiles: to rewrite the
# assertions of all tests takes longer than to load them.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.dont_write_bytecode = False

# Before anything can open a store: no test may use the state folder of the user who runs it.
state_for_tests.install()
user_presence.assume_user()


def pytest_configure(config: pytest.Config) -> None:
    """Reset signals to what a terminal gives.

    A shell that runs the tests in the background ignores some, and processes of tests would inherit that.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail the test that has let cockpit write into the state folder of the user who runs it."""
    strangers = state_for_tests.list_strangers(_tests_folder(item.config))
    assert not strangers, f"{item.nodeid} wrote to the user's own state folder: {strangers}"


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Remove the states of a test's projects when their folders are gone, which is when it has passed.

    What a test named for this process as one that opens a project ends with it.
    """
    result = yield
    use_reading_sandbox(None)
    state_for_tests.remove_lost_states()
    return result


def _tests_folder(config: pytest.Config) -> Path:
    """The folder of this run's temporary folders, whose workers have one each."""
    folder = Path(config._tmp_path_factory.getbasetemp())
    return folder.parent if hasattr(config, "workerinput") else folder
