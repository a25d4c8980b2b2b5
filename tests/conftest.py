"""What applies to every test."""

from __future__ import annotations

import compileall
import gc
import importlib
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import bare_python
import certificates
import drawn_examples
import hypothesis
import known_checkouts
import new_stores
import present_user
import pytest
import state_for_tests
import warm
from _pytest.assertion import rewrite
from hypothesis import strategies

from cockpit.core.secrets import mask
from cockpit.observe.count_tokens import count_tokens

pytest_plugins = ("forked_workers",)

_PROJECT = Path(__file__).resolve().parent.parent

_LATE = ("pydantic_ai.direct", "pydantic_ai.models.anthropic", "pydantic_ai.models.openai")
"""Modules that tests import when they run, and that take seconds."""
_FEW = 4_000
"""So many tests may not come to use them."""

# What is imported and collected stays: to look through it for garbage is a third of the time that it takes.
gc.disable()

# This process keeps what it compiles, whatever the environment says. Those that tests start do not: they
# run in projects whose status tests read, and find the package compiled.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.dont_write_bytecode = False

bare_python.install()

# How fast examples are made says how busy the machine is, nothing about the program.
hypothesis.settings.register_profile(
    "at any load", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("at any load")

# Before anything can open a store: no test may use the state folder of the user who runs it.
state_for_tests.install()

# Before the conftest of any folder, whose helpers name the server's command when they are imported.
warm.start_server()

new_stores.install()
known_checkouts.install()
certificates.install()
present_user.install()


def pytest_configure(config: pytest.Config) -> None:
    """Reset signals to what a terminal gives.

    A shell that runs the tests in the background ignores some, and processes of tests would inherit that.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
    if config.getoption("workers") or config.getoption("numprocesses", None):
        for package in ("cockpit", "widgets", "themes"):
            compileall.compile_dir(_PROJECT / package, quiet=2, workers=0)
        _compile_tests(config)
        if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.keyword:
            warm.begin_to_load()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage from now on, but never among what was there before the first test, and less often."""
    is_whole_run = bool(session.config.getoption("workers")) and len(session.items) > _FEW
    if is_whole_run:
        _load_late_modules()
    drawn_examples.install(session.items)
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail the test that has let cockpit write into the state folder of the user who runs it."""
    strangers = state_for_tests.list_strangers(_tests_folder(item.config))
    assert not strangers, f"{item.nodeid} wrote to the user's own state folder: {strangers}"


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Remove the states of a test's projects when their folders are gone, which is when it has passed."""
    result = yield
    state_for_tests.remove_lost_states()
    return result


def _load_late_modules() -> None:
    """Load what tests of any folder come to use, which each worker would otherwise load for itself."""
    for name in _LATE:
        importlib.import_module(name)
    count_tokens("loads the vocabulary")
    mask("compiles the patterns")
    strategies.text().validate()  # lists Unicode's characters by their categories


def _tests_folder(config: pytest.Config) -> Path:
    """The folder of this run's temporary folders, whose workers have one each."""
    folder = Path(config._tmp_path_factory.getbasetemp())
    return folder.parent if hasattr(config, "workerinput") else folder


def _compile_tests(config: pytest.Config) -> None:
    """Compile the tests before the workers start, each of which would compile all of them."""
    tests = sorted(Path(__file__).parent.rglob("*.py"))
    helpers = os.cpu_count() or 1
    pids = []
    for first in range(helpers):
        pid = os.fork()
        if pid == 0:
            try:
                for test in tests[first::helpers]:
                    _compile_test(test, config)
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)


def _compile_test(test: Path, config: pytest.Config) -> None:
    if not (test.name.startswith("test_") or test.name == "conftest.py"):
        return
    folder = rewrite.get_cache_dir(test)
    compiled = folder / (test.stem + rewrite.PYC_TAIL)
    if rewrite._read_pyc(test, compiled) is None and rewrite.try_makedirs(folder):
        source_hash, code = rewrite._rewrite_test(test, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, compiled)
