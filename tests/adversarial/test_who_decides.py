"""An agent's shell cannot reach the user's decision: attacks with real processes and real terminals.

Every process here starts from nothing, so that it is judged as on a user's machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
import state_for_tests

from cockpit.access.capability_tokens import ensure_root, listed
from cockpit.access.http.socket_peer import explain_peer_absence
from cockpit.access.user_presence import Process, explain_absence_of, shield_process
from cockpit.act.adapters.run_command import CommandAdapter
from cockpit.act.preview_command import preview_run
from cockpit.act.sandbox.bubblewrap import detect
from cockpit.act.tool_payloads import Run
from cockpit.act.workspace import open_workspace
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

HAS_PROCFS = Path("/proc/self").is_dir()
"""Without it no ancestor is known: a terminal and a clean environment are all that is looked at."""

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
    """Run a command as the leader of a new terminal's session; its maker has none, as ``script``."""
    made = (sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", *words)
    done = subprocess.run(
        made, env=dict(environment), capture_output=True, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
    )  # fmt: skip
    return done.stdout


def agent(tmp_path: Path) -> str:
    """A program with an agent's name that runs a shell command."""
    path = tmp_path / "claude"
    path.write_text(f"#!{sys.executable}\nimport subprocess, sys\nsubprocess.run(sys.argv[1:])\n")
    path.chmod(0o755)
    return str(path)


NOBODY = "which is no terminal program of the system" if HAS_PROCFS else "<PRESENT>"


def test_a_terminal_that_a_process_without_one_makes_is_nobodys(ask: str) -> None:
    """``script -qec 'cockpit proposals approve …'`` of a service, a timer or an agent that nobody knows."""
    assert NOBODY in in_terminal(["sh", "-c", f"{ask}; true"], env())


def test_an_agents_environment_is_refused(ask: str) -> None:
    told = in_terminal(["sh", "-c", f"CLAUDECODE=1 {ask}; COCKPIT_TASK=1 {ask}; true"], env())
    assert "CLAUDECODE is set" in told and "COCKPIT_TASK is set" in told


def test_a_terminal_of_script_is_refused(ask: str, tmp_path: Path) -> None:
    command = f"env -i PATH=$PATH PYTHONPATH={ROOT} script -qec '{ask}' {tmp_path}/typescript; true"
    told = "CLAUDECODE is set" if HAS_PROCFS else "<PRESENT>"
    assert told in in_terminal(["sh", "-c", command], env(CLAUDECODE="1"))


def test_an_agent_is_known_by_its_program(ask: str, tmp_path: Path) -> None:
    shown = in_terminal([agent(tmp_path), "sh", "-c", f"{ask}; true"], env())
    assert ("is an agent (claude)" if HAS_PROCFS else "<PRESENT>") in shown


def test_without_a_terminal_nobody_is_present(ask: str) -> None:
    done = subprocess.run(
        ask.split(), env=env(), capture_output=True, text=True, check=True, start_new_session=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.stdout == f"<{'this process' if HAS_PROCFS else 'this'} has no terminal>"


def test_another_process_is_judged_by_what_it_was_started_with() -> None:
    """As the server judges who sends a decision: by a process's id, from another process."""
    for marks in ({"CLAUDECODE": "1"}, {}):
        with subprocess.Popen(
            ["sh", "-c", "echo; read _"], env=env(**marks), text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as other:  # fmt: skip
            assert other.stdin is not None and other.stdout is not None
            other.stdout.readline()  # it runs the shell by now
            why = explain_absence_of(other.pid)
            other.stdin.close()
        own = f"process {other.pid} (sh) was started by an agent (CLAUDECODE is set)"
        if not HAS_PROCFS:
            assert why == "the process that asks has ended"
        elif marks:
            assert why == own
        else:
            # Of nobody's terminal, unless these tests run below an agent themselves.
            assert why and why != own
    assert explain_absence_of(2**22 + 1) == "the process that asks has ended"


def see_hidden_program(writer: int) -> None:
    """Hide what this process runs, take the name of a terminal program, and ask a child what it sees."""
    if os.geteuid() == 0:  # the administrator sees everything: be another user
        os.setgroups([])
        os.setgid(65_534)
        os.setuid(65_534)
    libc = ctypes.CDLL(None)
    libc.prctl(15, b"sshd", 0, 0, 0)
    libc.prctl(4, 0, 0, 0, 0)  # nobody of this user may see the program behind the name
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        os.write(writer, repr(Process(parent, 0, 0, 0, "sshd").program()).encode())
        os._exit(0)
    os.waitpid(pid, 0)


def test_a_process_that_hides_its_program_is_not_taken_for_the_systems() -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            see_hidden_program(writer)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert answer.read() == "''"


PEER = """
import os, socket, sys
from cockpit.access.http.socket_peer import explain_peer_absence
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"x")
sys.stdout.write("<" + client.recv(4096).decode() + ">")
"""


def ask_over_socket(words: list[str], environment: Mapping[str, str], *, terminal: bool) -> str:
    """Let a process connect, and return why its end of the connection is not the user's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, client = listener.accept()
            with connection:
                connection.recv(1)
                words = explain_peer_absence(client, connection.getsockname())
                connection.sendall((words or "PRESENT").encode())

        thread = threading.Thread(target=answer)
        thread.start()
        line = [*words, sys.executable, "-c", PEER, str(port)]
        if terminal:
            shown = in_terminal(["sh", "-c", f"{shlex.join(line)}; true"], environment)
        else:
            done = subprocess.run(
                ["setsid", "-w", *line], env=environment, capture_output=True, text=True
            )
            shown = done.stdout + done.stderr
        thread.join()
    return shown


def test_a_request_from_a_terminal_that_nobody_sits_at_is_not_the_users() -> None:
    assert NOBODY in ask_over_socket([], env(), terminal=True)


def test_a_request_from_an_agents_shell_is_not_the_users(tmp_path: Path) -> None:
    """The user's own token is a file; who sends it is asked of the kernel."""
    mark = env(CLAUDECODE="1")
    assert "CLAUDECODE is set" in ask_over_socket([], mark, terminal=True)
    assert "CLAUDECODE is set" in ask_over_socket(["env", "-u", "CLAUDECODE"], mark, terminal=True)
    assert "is an agent (claude)" in ask_over_socket([agent(tmp_path)], env(), terminal=True)
    assert "no terminal" in ask_over_socket([], env(), terminal=False)


def test_a_connection_that_nobody_has_is_not_the_users() -> None:
    nobody = explain_peer_absence(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert "not one of yours" in nobody
    assert "not known" in explain_peer_absence(None, None)


def dumpable_after(state: str) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            if state == "shielded":
                shield_process()
            os._exit(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
        finally:
            os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 1)
    return code == 1


@pytest.mark.parametrize("state", ["shielded", "open"])
def test_a_shielded_process_is_not_the_kernels_to_show(state: str) -> None:
    if HAS_PROCFS:
        assert dumpable_after(state) == (state == "open")


def test_a_terminal_program_of_the_agents_own_has_no_name(tmp_path: Path) -> None:
    """A copy of an interpreter that is called tmux makes the terminal: whose file it is counts."""
    fake = tmp_path / "tmux"
    shutil.copy(Path(sys.executable).resolve(), fake)
    if os.geteuid() == 0:
        os.chown(fake, 65_534, 65_534)
    home = {"PYTHONHOME": sys.base_prefix}
    with subprocess.Popen(
        [fake, "-c", "input()"], env=env(**home), stdin=subprocess.PIPE, text=True
    ) as shown_as:
        name = Process(shown_as.pid, 0, 0, 0, "tmux").program()
        assert shown_as.stdin is not None
        shown_as.stdin.write("\n")
    assert name == ""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a proposal that waits, and a root token."""
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    place = locate_project(root)
    place.prepare()
    with Store.open(place.database) as store:
        store.write_now(lambda tx: ensure_root(tx, place.state))
        store.write_now(
            lambda tx: proposals.create(
                tx, proposal_id="p-1", kind="action", session_id="", wave_id="", title="t",
                body={"type": "backlog_plan", "payload": {"markdown": ""}}, risk="low",
            )
        )  # fmt: skip
    return root


FORBIDDEN = (
    *("proposals approve p-1", "tokens issue --namespace ci --scope audit.read"),
    *("profile rollback", "run fix --approve all --model offline"),
)
EACH = """
import os, sys
from cockpit.__main__ import main
for words in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        sys.argv[1:] = words.split()
        sys.exit(main())
    print("ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def test_no_command_decides_below_an_agent(tmp_path: Path, project: Path) -> None:
    """Also with the root token: the file is the user's, and so is the agent's shell."""
    place = locate_project(project)
    root = (place.state / "root.token").read_text(encoding="utf-8").strip()
    state = {"COCKPIT_STATE_DIR": state_for_tests.folder(), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", EACH, *FORBIDDEN],
        cwd=project, env=env(**state, CLAUDECODE="1", COCKPIT_TOKEN=root),
        capture_output=True, text=True,
    )  # fmt: skip
    told = done.stdout + done.stderr
    for words in ("ended with 3\n", "for you alone", "CLAUDECODE is set"):
        assert told.count(words) == len(FORBIDDEN), told
    with Store.open(place.database) as store:
        assert store.read_now(lambda c: proposals.load(c, "p-1")).status == "pending"
        assert len(store.read_now(listed)) == 1


async def test_a_confined_command_finds_neither_the_root_token_nor_the_store(project: Path):
    sandbox = await detect(os.environ)
    place = locate_project(project)
    ground = await open_workspace(project)
    look = f"cat {place.state}/root.token; cat {place.database}; find / -name root.token; env; true"
    preview = preview_run(Run(("sh", "-c", look), "because", 60), ground)
    if not sandbox.works:
        # Nothing hides them there: so it is said to who decides, above the command, and nothing is run.
        assert ("sandbox", "none") in preview.fields and preview.payload["sandboxed"] is False
        assert any("with all of your rights" in note for note in preview.notes)
        return
    outcome = await CommandAdapter().perform(preview.payload, "key", ground)
    shown = json.dumps(outcome.detail)
    token = (place.state / "root.token").read_text(encoding="utf-8").strip()
    assert token not in shown and shown.count("No such file") == 2, shown
    assert "root.token\\n" not in shown.replace("root.token: No", "")
    assert "COCKPIT_" not in shown
