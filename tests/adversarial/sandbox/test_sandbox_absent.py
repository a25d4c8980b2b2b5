"""Machines that forbid namespaces: cockpit says so before anything runs, and its limits hold all the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import run_cockpit
from msgspec.structs import replace
from sandbox_world import limited
from state_for_tests import kept_variables

from cockpit.access.reading_sandbox import use_reading_sandbox
from cockpit.access.run_program import run_git
from cockpit.act.adapters import ADAPTERS
from cockpit.act.adapters.adapter import Outcome
from cockpit.act.sandbox import read_checkout
from cockpit.act.sandbox.bubblewrap import Sandbox, detect
from cockpit.act.sandbox.read_checkout import CheckoutSandbox
from cockpit.act.workspace import Workspace
from cockpit.commands.unconfined import find_unconfined
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
    *('mount -t proc proc /proc && echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"),
)
BY_HAND = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"),
    *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
)
"""What a sandbox needs of a machine, in bubblewrap's words and none of cockpit's."""


def works(words: tuple[str, ...]) -> bool:
    if shutil.which(words[0]) is None:
        return False
    return subprocess.run([*words, "true"], capture_output=True).returncode == 0


async def test_attacks_are_left_out_only_where_bubblewrap_itself_fails(ground: Workspace) -> None:
    """Else cockpit that takes a sandbox for missing would leave out what shows that it is there."""
    sandbox = await detect(os.environ)
    assert sandbox.works == works(BY_HAND), sandbox.missing
    assert (await find_unconfined(settings(ground), None) is None) == sandbox.works
    assert (sandbox.words() == "none") == bool(sandbox.missing) == (not sandbox.works)


async def test_a_reading_without_a_sandbox_is_gits_own_and_runs_nothing_of_the_repository(
    project, tmp_path, monkeypatch
):
    """The user's filter does its work, as with git itself; one of the repository's runs nowhere."""

    async def missing(environment: object) -> Sandbox:
        return Sandbox(None, None, "it is gone")

    monkeypatch.setattr(read_checkout, "detect", missing)
    (tmp_path / ".gitconfig").write_text('[filter "own"]\n clean = sed s/dirty/clean/\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    ran = tmp_path / "ran"
    for words in (
        ("config", "filter.evil.clean", f"sh -c 'touch {ran}; cat'"),
        ("config", "user.name", "Ada"),
    ):
        subprocess.run(["git", *words], cwd=project, check=True)
    (project / ".gitattributes").write_text("*.txt filter=own\n*.bin filter=evil\n")
    for name in ("a.txt", "a.bin"):
        (project / name).write_text("clean\n")
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    assert ran.exists(), "the trap works"
    ran.unlink()
    for name in ("a.txt", "a.bin"):
        (project / name).write_text("a dirty line\n")
    use_reading_sandbox(CheckoutSandbox())
    try:
        done = await run_git("diff", cwd=project)
    finally:
        use_reading_sandbox(None)
    assert "+a clean line" in done.text and "+a dirty line" in done.text
    assert not ran.exists()


def without_bubblewrap(folder: Path) -> tuple[str, ...]:
    """Make a PATH with what a session needs; returns the words that start a program with it."""
    folder.mkdir()
    for name in ("git", "prlimit", "sh", "touch"):
        if (program := shutil.which(name)) is not None:
            (folder / name).symlink_to(program)
    return ("env", f"PATH={folder}")


def test_a_session_says_that_its_commands_are_not_confined(project, tmp_path):
    """On a machine that forbids namespaces; where none can be played, on one without bubblewrap."""
    is_played = works(NO_NAMESPACES)
    command = (*NO_NAMESPACES, sys.executable, "-m", "cockpit")
    if not is_played:  # only its environment is
        command = (*without_bubblewrap(tmp_path / "programs"), *run_cockpit.PROGRAM)
    (tmp_path / "script.toml").write_text(SCRIPT)
    words = ("run", "/bug Touch it", "--model", f"script:{tmp_path / 'script.toml'}")
    done = subprocess.run(
        [*command, *words, "--approve", "all"],
        cwd=project,
        env={**kept_variables(), "COCKPIT_CONFIG_DIR": str(tmp_path / "config")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    installed = is_played and shutil.which("bwrap")
    why = "does not work here (" if installed else "(bwrap) is not installed"
    assert done.stderr.startswith(f"No sandbox: bubblewrap {why}")
    assert "run with all of your rights, your files and the network." in done.stderr
    assert "exit 0. It ran without a sandbox." in done.stdout
    assert (project / "ran").exists()


async def run(ground: Workspace, *argv: str) -> Outcome:
    plain = replace(ground, sandbox=replace(ground.sandbox, bwrap=None, missing="it is gone"))
    payload = {"argv": list(argv), "timeout_s": 60, "sandboxed": False}
    return await ADAPTERS["run"].perform(payload, "k", plain)


async def test_the_limits_of_all_processes_hold_without_a_sandbox(ground, tmp_path):
    """Also for those that left the group of the first one."""
    pids = tmp_path / "pids"
    many = (
        "import signal, subprocess\n"
        "for _ in range(40):\n"
        "    child = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        f"    print(child.pid, file=open({str(pids)!r}, 'a'))\n"
        "signal.pause()\n"
    )
    outcome = await run(limited(ground, processes=20), sys.executable, "-c", many)
    assert "processes, more than 20" in outcome.summary
    async with asyncio.timeout(60):
        while any(alive(pid) for pid in pids.read_text().split()):
            await asyncio.sleep(0.02)


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
