"""An agent's shell cannot reach the user's decision: attacks with real processes and real terminals.

Every process here starts from nothing, so that it is judged as on a user's machine.
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
import state_for_tests

from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs procfs"),
]

ASK = """
import sys
from cockpit.access import user_presence
sys.stdout.write("<" + (user_presence.explain_absence() or "PRESENT") + ">")
"""
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60


def env(**more: str) -> dict[str, str]:
    """An environment as a login gives it."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT), **more}


@pytest.fixture
def ask(tmp_path: Path) -> str:
    """The command that says who is present, for a shell."""
    path = tmp_path / "ask.py"
    path.write_text(ASK, encoding="utf-8")
    return f"{sys.executable} {path}"


def in_terminal(words: list[str], environment: Mapping[str, str]) -> str:
    """Run a command as the leader of a new terminal's session, as a terminal program does."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(words[0], words, dict(environment))
    text = read_until(master)
    os.waitpid(pid, 0)
    os.close(master)
    return text


def read_until(master: int) -> str:
    text, until = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            piece = os.read(master, 65_536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        text += piece
    return text.decode()


def agent(tmp_path: Path) -> str:
    """A program with an agent's name that runs a shell command."""
    path = tmp_path / "claude"
    path.write_text(f"#!{sys.executable}\nimport subprocess, sys\nsubprocess.run(sys.argv[1:])\n")
    path.chmod(0o755)
    return str(path)


def test_the_user_in_a_terminal_is_present(ask: str) -> None:
    assert "<PRESENT>" in in_terminal(["sh", "-c", f"{ask}; true"], env())


@pytest.mark.parametrize("mark", ["CLAUDECODE", "CODEX_SANDBOX", "COCKPIT_TASK", "GEMINI_CLI"])
def test_an_agents_environment_is_refused(ask: str, mark: str) -> None:
    assert f"{mark} is set" in in_terminal(["sh", "-c", f"{ask}; true"], env(**{mark: "1"}))


def test_an_agent_that_cleans_its_own_environment_is_refused(ask: str) -> None:
    command = f"env -u CLAUDECODE {ask}; true"
    assert "CLAUDECODE is set" in in_terminal(["sh", "-c", command], env(CLAUDECODE="1"))


def test_a_terminal_of_script_is_refused(ask: str, tmp_path: Path) -> None:
    command = f"env -i PATH=$PATH PYTHONPATH={ROOT} script -qec '{ask}' {tmp_path}/typescript; true"
    assert "CLAUDECODE is set" in in_terminal(["sh", "-c", command], env(CLAUDECODE="1"))


def test_an_agent_is_known_by_its_program(ask: str, tmp_path: Path) -> None:
    shown = in_terminal([agent(tmp_path), "sh", "-c", f"{ask}; true"], env())
    assert "is an agent (claude)" in shown


def test_without_a_terminal_nobody_is_present(ask: str) -> None:
    done = subprocess.run(
        ["setsid", "-w", *ask.split()], env=env(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "<this process has no terminal>"


ORPHAN = """
import os, pty, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for _ in range(500):
    if os.getppid() == 1 or open(f"/proc/{os.getppid()}/comm").read().strip() in ("systemd", "init"):
        break
    time.sleep(0.01)
with open(sys.argv[1], "wb", 0) as out:
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", sys.argv[2] + "; true"])
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        out.write(piece)
os.rename(sys.argv[1], sys.argv[1] + ".done")
"""


def test_an_orphan_with_a_terminal_of_its_own_is_refused(ask: str, tmp_path: Path) -> None:
    """Double fork, a clean environment, a new terminal: no ancestor is an agent any more."""
    program, out = tmp_path / "orphan.py", tmp_path / "out"
    program.write_text(ORPHAN, encoding="utf-8")
    # In a namespace of its own, whose first process takes in orphans as init does.
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no namespaces here")
    wait = f"i=0; while [ ! -e {out}.done ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; true"
    words = [*unshare, "sh", "-c", f"{sys.executable} {program} {out} '{ask}'; {wait}"]
    subprocess.run(words, env=env(), check=True, timeout=90)
    shown = out.with_name("out.done").read_text(encoding="utf-8")
    assert "which nobody started" in shown or "nobody sits" in shown


@pytest.mark.parametrize(
    "words",
    [
        ["proposals", "approve", "p-1"],
        ["proposals", "reject", "p-1"],
        ["proposals", "discuss", "p-1", "--words", "go"],
        ["tokens", "issue", "--namespace", "ci", "--scope", "audit.read"],
        ["profile", "rollback"],
        ["run", "fix it", "--approve", "all", "--model", "offline"],
        ["work", "--all", "--headless", "--approve", "all"],
    ],
)
def test_no_command_decides_below_an_agent(tmp_path: Path, words: list[str]) -> None:
    state = {"COCKPIT_STATE_DIR": state_for_tests.folder(), "HOME": str(tmp_path)}
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    place = locate_project(project)
    place.prepare()
    with Store.open(place.database) as store:
        store.write_now(
            lambda tx: proposals.create(
                tx, proposal_id="p-1", kind="action", session_id="", wave_id="", title="t",
                body={"type": "backlog_plan", "payload": {"markdown": ""}}, risk="low",
            )
        )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "cockpit", *words],
        cwd=project, env=env(**state, CLAUDECODE="1"), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert "CLAUDECODE is set" in done.stderr and "Nothing was done" in done.stderr
    with Store.open(place.database) as store:
        assert store.read_now(lambda c: proposals.load(c, "p-1")).status == "pending"
