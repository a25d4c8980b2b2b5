"""A command that runs in the process of the tests does what a process of its own does, and leaves nothing."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import command_in_process
import pytest
import warm
from cli_world import PATIENCE_S, Project
from state_for_tests import copy_project

from cockpit.__main__ import main
from cockpit.access.reading_sandbox import reading_sandbox
from cockpit.core import processes

pytestmark = pytest.mark.slow


def test_a_command_runs_without_a_folder_for_the_state_of_all_tests(tmp_path, monkeypatch):
    """``make chaos`` has none: each of its trials names one of its own."""
    env = {**os.environ, "COCKPIT_STATE_DIR": str(tmp_path / "state")}
    monkeypatch.delenv("COCKPIT_STATE_DIR")
    done = warm.run(("--version",), cwd=tmp_path, env=env, patience_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr


COMMANDS = (
    (("--version",), ""),
    (("--help",), ""),
    (("tasks", "add", "--help"), ""),
    (("run", "review main..feature", "--approve", "all"), ""),
    (("run", "review main..feature", "--approve", "all", "--output-format", "stream-json"), ""),
    (("tasks", "add", "Ünlike tests", "--json"), ""),
    (("tasks", "list", "--json"), ""),
    (("tasks", "show", "T-9"), ""),
    (("tasks", "import", "-"), "- [ ] One\n- [ ] Two\n"),
    (("tasks", "nonsense"), ""),
    (("proposals", "approve", "p-1"), ""),
    (("packet", "verify"), ""),
    (("journal", "verify"), ""),
    (("doctor", "--json"), ""),
)
_CHANCE = re.compile(rb"\b[a-z]{1,4}-[0-9a-z]{6,}\b|\b[0-9a-f]{7,64}\b|\d[\d.]*")
"""Times, sizes, ids and digests: no two runs have them in common."""


def test_both_print_and_end_alike(project: Project) -> None:
    project.extra["COCKPIT_MODEL"] = project.script()
    other = Project(project.root.parent / "other" / "project", project.config, project.extra)
    copy_project(project.root, other.root)
    roots = [str(each.root).encode() for each in (other, project)]
    for words, stdin in COMMANDS:
        assert command_in_process.fits(words)
        here = _run_here(project, words, stdin)
        code, out, err = _run_elsewhere(other, words, stdin)
        assert here[0] == code, (words, here)
        for printed, expected in ((here[1], out), (here[2], err)):
            assert _mask_chance(printed) == _mask_chance(expected.replace(*roots)), words


def test_nothing_of_it_stays(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_TEST", "1")
    before = _describe_process()
    for words in (
        ("tasks", "list"),
        ("tasks", "nonsense"),
        ("run", "x", "--approve", "all", "--model", project.script()),
    ):
        _run_here(project, words, "")
        assert _describe_process() == before, words


def test_a_command_looks_for_garbage_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = gc.get_threshold(), (0, 0, 0)
    monkeypatch.setattr(sys, "argv", ["cockpit", "--version"])
    try:
        gc.set_threshold(700, 10, 10)
        with contextlib.suppress(SystemExit):
            main()
        after = gc.get_threshold()
    finally:
        gc.set_threshold(*before)
    assert after[0] >= 50_000


def test_a_command_does_not_look_for_garbage_at_its_end() -> None:
    """The interpreter looks through what is there before it ends: through little, since all is frozen."""
    code = (
        "import gc, os, sys\n"
        "sys.argv = ['cockpit', '--version']\n"
        "look = lambda phase, _: os.write(1, b' %s %d' % (phase.encode(), len(gc.get_objects())))\n"
        "gc.callbacks.append(look)\n"
        "from cockpit.__main__ import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    # Looks of the start come before the version; there may be one where all is compiled first.
    looks = done.stdout.rpartition("cockpit")[2].split()[1:]
    assert looks[:1] == ["start"], done.stdout
    assert all(int(objects) < 1_000 for objects in looks[1::2]), done.stdout


def test_each_has_a_name_among_processes_that_ends_with_it(project: Project) -> None:
    model = project.script()
    for _ in range(2):
        _run_here(
            project, ("run", "review main..feature", "--approve", "all", "--model", model), ""
        )
    rows = _run_here(project, ("journal", "tail", "-n", "1000", "--json"), "")[1].decode()
    names = set(re.findall(rf'"({os.getpid()}/[0-9.]+)"', rows))
    assert len(names) == 2
    assert not any(processes.is_process_alive(name) for name in names)


def test_what_does_not_end_is_interrupted(project: Project) -> None:
    with pytest.raises(BaseException, match=r"cockpit journal tail --follow took longer"):
        _run_here(project, ("journal", "tail", "--follow"), "", patience_s=0.5)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert _run_here(project, ("tasks", "list"), "")[0] == 0


@pytest.mark.parametrize(
    "words", [(), ("-c",), ("mcp",), ("serve",), ("hook",), ("work", "--all"), ("demo",)]
)
def test_what_stays_or_leaves_processes_has_one_of_its_own(words: tuple[str, ...]) -> None:
    assert not command_in_process.fits(words)


async def test_so_has_what_is_called_from_a_running_loop() -> None:
    assert not command_in_process.fits(("tasks", "list"))


def _mask_chance(text: bytes) -> object:
    """Leave what every run prints; of a session's rows, which come in any order, what happened how often."""
    if text.startswith(b'{"action"'):
        return sorted(json.loads(line)["action"] for line in text.splitlines())
    return _CHANCE.sub(b"#", text)


def _run_here(
    project: Project, words: tuple[str, ...], stdin: str, patience_s: float = PATIENCE_S
) -> tuple[int, bytes, bytes]:
    done = command_in_process.run(
        words,
        cwd=project.root,
        env=project.env,
        stdin=stdin.encode(),
        patience_s=patience_s,
        interpreter=warm.python(),
    )
    return done.returncode, done.stdout, done.stderr


def _run_elsewhere(
    project: Project, words: tuple[str, ...], stdin: str
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [*warm.command(), *words],
        cwd=project.root,
        env=project.env,
        input=stdin.encode(),
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stdout, done.stderr


def _describe_process() -> object:
    """List all that a command may change of the process that it runs in."""
    return (
        Path.cwd(),
        dict(os.environ),
        sys.argv,
        sys.executable,
        [id(getattr(sys, name)) for name in ("stdin", "stdout", "stderr", "__stdout__")],
        [signal.getsignal(number) for number in signal.valid_signals()],
        sorted(Path("/proc/self/fd").iterdir()) if Path("/proc/self/fd").is_dir() else (),
        [os.fstat(number).st_ino for number in range(3)],
        processes.current_process(),
        reading_sandbox(),
    )
