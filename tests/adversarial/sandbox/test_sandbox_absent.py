"""Machines that forbid namespaces: cockpit says so before anything runs, and its limits hold all the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_world import limited
from state_for_tests import kept_variables

from cockpit.act.adapters import ADAPTERS
from cockpit.act.adapters.adapter import Outcome
from cockpit.act.workspace import Workspace
from cockpit.commands import unconfined
from cockpit.commands.open_project import WrongUse
from cockpit.commands.unconfined import find_unconfined, settle_unconfined
from cockpit.config.load_settings import Settings
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings

pytestmark = pytest.mark.slow

SCRIPT = """
[[turn]]
[[turn.call]]
name = "run"
arguments = { reason = "to see", argv = ["sh", "-c", "touch ran"] }
[[turn]]
when = { called = ["run"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Done" }
"""
NO_NAMESPACES = (
    *("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c"),
    'mount -t proc proc /proc && echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
    "sh",
)
NO_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
NO_NESTING = (
    *("bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"),
    *("--unshare-user", "--disable-userns"),
)
MACHINES = {"no namespaces": NO_NAMESPACES, "no nesting": NO_NESTING}
if os.geteuid() == 0:
    MACHINES["administrator without rights"] = NO_RIGHTS


def works(words: tuple[str, ...]) -> bool:
    if shutil.which(words[0]) is None:
        return False
    return subprocess.run([*words, "true"], capture_output=True).returncode == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_a_session_says_that_its_commands_are_not_confined(
    project: Path, tmp_path: Path, machine: str
) -> None:
    if not works(MACHINES[machine]):
        pytest.skip("this machine cannot play that one")
    (tmp_path / "script.toml").write_text(SCRIPT)
    words = ("run", "/bug Touch it", "--model", f"script:{tmp_path / 'script.toml'}")
    done = subprocess.run(
        [*MACHINES[machine], sys.executable, "-m", "cockpit", *words, "--approve", "all"],
        cwd=project,
        env={**kept_variables(), "COCKPIT_CONFIG_DIR": str(tmp_path / "config")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("No sandbox: bubblewrap does not work here (")
    assert "run with all of your rights, your files and the network." in done.stderr
    assert "exit 0. It ran without a sandbox." in done.stdout
    assert (project / "ran").exists()


async def run(ground: Workspace, *argv: str) -> Outcome:
    plain = replace(ground, sandbox=replace(ground.sandbox, bwrap=None, missing="it is gone"))
    payload = {"argv": list(argv), "timeout_s": 60, "sandboxed": False}
    return await ADAPTERS["run"].perform(payload, "k", plain)


async def test_the_limits_of_one_process_hold_without_a_sandbox(ground: Workspace) -> None:
    outcome = await run(ground, "sh", "-c", "ulimit -d; ulimit -f; ulimit -c")
    data, file, core = str(outcome.detail["stdout"]).split()
    assert int(data) == ground.sandbox.choices.limits.process_bytes // 1024
    assert (int(file), core) == (4 * 1024**2, "0")  # in blocks of 512 bytes
    eats = "b = bytearray(5 * 1024**3)"
    assert "MemoryError" in str((await run(ground, sys.executable, "-c", eats)).detail["stderr"])


async def test_the_limits_of_all_processes_hold_without_a_sandbox(
    ground: Workspace, tmp_path: Path
) -> None:
    """Also for those that left the group of the first one."""
    pids = tmp_path / "pids"
    many = (
        "import subprocess, sys, time\n"
        "for _ in range(40):\n"
        "    child = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        f"    print(child.pid, file=open({str(pids)!r}, 'a'))\n"
        "time.sleep(300)\n"
    )
    outcome = await run(limited(ground, processes=20), sys.executable, "-c", many)
    assert "processes, more than 20" in outcome.summary
    for pid in pids.read_text().split():
        for _ in range(200):
            if not alive(pid):
                break
            await asyncio.sleep(0.05)
        assert not alive(pid)


def alive(pid: str) -> bool:
    try:
        return "sleep" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def settings(ground: Workspace, *runners: RunnerSettings, policy: str = "ask") -> Settings:
    named = {runner.name: runner for runner in runners}
    runtime = RuntimeSettings(
        runners=named, sandbox=ground.sandbox.choices, policy=policy, user_dir=None
    )
    return Settings(runtime=runtime)


async def test_an_agent_that_cannot_be_confined_is_asked_about(
    ground: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = RunnerSettings("odd", ("odd-agent",))
    chosen = replace(odd, name="chosen", sandbox=False)
    with_both = settings(ground, odd, chosen)
    monkeypatch.setattr(unconfined, "is_terminal", lambda stream: True)
    questions: list[str] = []

    def answer(question: str, err: bool) -> bool:
        questions.append(question)
        return len(questions) > 1

    monkeypatch.setattr("click.confirm", answer)
    with pytest.raises(WrongUse, match="Nothing was started"):
        await settle_unconfined(with_both, "odd")
    assert "The agent of odd runs with all of your rights" in capsys.readouterr().err
    assert await settle_unconfined(with_both, "odd") is not None
    assert len(questions) == 2
    # The user has decided about this one in their own configuration: it is only said.
    assert (await settle_unconfined(with_both, "chosen")) is not None
    assert len(questions) == 2
    if ground.sandbox.works:
        assert await find_unconfined(with_both, None) is None
        known = replace(odd, name="claude", command=("claude",))
        assert await find_unconfined(settings(ground, known), "claude") is None
