"""What an external agent reaches from the sandbox: its provider, our server and hooks, and nothing else."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.runner_world import Runs
from msgspec.structs import replace
from tasks.taskrun_world import World

from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.agents.confine.agent_sandbox import why_unconfined
from cockpit.agents.registry.known_agents import known_agents
from cockpit.agents.runs.agent_hooks import wait_for_hook_events
from cockpit.loop.runtime_settings import RunnerSettings

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os, socket, subprocess, sys
config, hooks, provider, other = sys.argv[1:5]
told = {"env": sorted(os.environ), "home": {}}
for name in (".claude.json", ".claude/settings.json", ".claude/.credentials.json", ".ssh/id", ".bashrc"):
    path = os.path.expanduser("~/" + name)
    told["home"][name] = open(path).read() if os.path.exists(path) else None
def reach(port):
    try: return socket.create_connection(("127.0.0.1", int(port)), 5).recv(5).decode()
    except OSError as error: return type(error).__name__
told["provider"], told["other"] = reach(provider), reach(other)
with socket.create_connection(("127.0.0.1", 3128), 5) as proxy:
    proxy.sendall(b"CONNECT 169.254.169.254:80 HTTP/1.1\\r\\n\\r\\n")
    told["proxy"] = proxy.recv(100).split(b"\\r\\n")[0].decode()
server = json.load(open(config))["mcpServers"]["ohno"]
hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
called = subprocess.run([server["command"], *server["args"]], input=json.dumps(hello) + "\\n",
                        capture_output=True, text=True, timeout=60)
told["server"] = called.stdout[:200] or called.stderr
hook = json.load(open(hooks))["hooks"]["PostToolUse"][0]["hooks"][0]["command"]
event = {"hook_event_name": "PostToolUse", "session_id": "x", "cwd": os.getcwd(), "tool_name": "Write",
         "tool_input": {"file_path": os.path.abspath("new.py")}, "tool_response": {}}
open("new.py", "w").write("x = 1\\n")
told["hook"] = subprocess.run(hook, shell=True, input=json.dumps(event), capture_output=True,
                              text=True, timeout=60).returncode
for words in (["add", "-A"], ["commit", "-qm", "By the agent"], ["config", "core.fsmonitor", "./evil"],
              ["branch", "-f", "other", "HEAD"]):
    subprocess.run(["git", *words], check=True)
gate = socket.socket(socket.AF_UNIX); gate.connect("/run/cockpit/gate")
gate.sendall(json.dumps({"call": "sh"}).encode() + b"\\n"); told["call"] = gate.recv(200).decode()
home = os.path.expanduser("~/.claude")
open(home + "/settings.json", "w").write('{"hooks": "evil"}')
open(home + "/.credentials.json.new", "w").write('{"token": "renewed"}')
os.replace(home + "/.credentials.json.new", home + "/.credentials.json")
open("told.json", "w").write(json.dumps(told))
print("STATUS: done")
"""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    world = World.made(tmp_path)
    yield Runs(world.folder, world.place, world.store, world.task())
    world.store.close()


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """A provider and another service of this machine; both say hello."""

    def greet(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.sendall(b"hello")

    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        threads = [threading.Thread(target=greet, args=(each,)) for each in (one, two)]
        for thread in threads:
            thread.start()
        yield one.getsockname()[1], two.getsockname()[1]
        for each in (one, two):
            each.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()


async def test_a_confined_agent_reaches_what_it_needs_and_nothing_else(runs, tmp_path, ports):
    home, root = tmp_path / "home", runs.place.root
    for name, text in (
        (".claude.json", "{}"),
        (".claude/settings.json", "{}"),
        (".claude/.credentials.json", '{"token": "old"}'),
        (".ssh/id", "private"),
        (".bashrc", "private"),
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    # As managers of Node.js versions have it: a link to a version, and in there one to the program.
    (tmp_path / "node" / "bin").mkdir(parents=True)
    (tmp_path / "current").symlink_to("node")
    (tmp_path / "node" / "bin" / "claude").symlink_to("../lib/node_modules/claude/cli.js")
    program = tmp_path / "node" / "lib" / "node_modules" / "claude" / "cli.js"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/usr/bin/env python3\n{SCRIPT}")
    program.chmod(0o755)
    runs_git(root, "branch", "other")
    config, before = (root / ".git" / "config").read_text(), runs_git(root, "rev-parse", "other")
    command = ("claude", "{mcp_config}", "{hooks}", str(ports[0]), str(ports[1]))
    runner = RunnerSettings("claude", command, "text", ("MY_KEY",))
    environment = {
        **os.environ, "HOME": str(home), "PATH": f"{tmp_path / 'current' / 'bin'}:{os.environ['PATH']}",
        "MY_KEY": "k", "AWS_SECRET": "s", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{ports[0]}",
    }  # fmt: skip

    outcome = await runs.run(runner, environment=environment)

    assert outcome.status == "finished", outcome
    told = json.loads((root / "told.json").read_text())
    assert told["home"] == {
        ".claude.json": "{}", ".claude/settings.json": "{}",
        ".claude/.credentials.json": '{"token": "old"}', ".ssh/id": None, ".bashrc": None,
    }  # fmt: skip
    assert {"MY_KEY", "ANTHROPIC_BASE_URL", "HTTPS_PROXY"} <= {*told["env"]}
    assert not [name for name in told["env"] if name.startswith("COCKPIT_") or name == "AWS_SECRET"]
    assert (told["provider"], told["other"]) == ("hello", "ConnectionRefusedError")
    assert told["proxy"] == "HTTP/1.1 403 Forbidden"
    assert '"serverInfo"' in told["server"] or '"result"' in told["server"], told["server"]
    assert told["hook"] == 0 and "is not among" in told["call"]
    # What it did to git: its commit came out, and nothing else.
    assert runs_git(root, "log", "-1", "--format=%s") == "By the agent\n"
    assert (root / ".git" / "config").read_text() == config
    assert runs_git(root, "rev-parse", "other") == before
    # What it did to its home: only the renewed login came out.
    assert (home / ".claude" / "settings.json").read_text() == "{}"
    assert json.loads((home / ".claude" / ".credentials.json").read_text()) == {"token": "renewed"}
    (started,) = runs.rows("runner.started")
    assert started.raw_detail()["sandbox"] == "bubblewrap"
    notes = [row.raw_detail()["message"] for row in runs.rows("runner.noted")]
    assert "refs/heads/other was moved in the sandbox only." in notes
    assert "It asked for 169.254.169.254:80, which is not on its list." in notes
    await wait_for_hook_events(runs.store, runs.task_id)
    assert runs.rows("agent.") or runs.store.read_now(hook_events), (
        "the hook's event did not arrive"
    )


def hook_events(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM hook_pending").fetchone()[0])


def runs_git(root: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=root, check=True, capture_output=True, text=True
    ).stdout


def test_why_an_agent_is_not_confined_is_said() -> None:
    works = Sandbox("/usr/bin/bwrap", None)
    claude, other = RunnerSettings("c", ("claude",)), RunnerSettings("o", ("/opt/other",))
    assert why_unconfined(works, claude) == ""
    assert "does not know what other needs" in why_unconfined(works, other)
    assert why_unconfined(works, replace(other, hosts=("api.example.org",))) == ""
    assert "switched it off" in why_unconfined(works, replace(claude, sandbox=False))
    off = replace(works, choices=SandboxChoices(agents=False))
    assert "switched it off" in why_unconfined(off, claude)
    assert why_unconfined(Sandbox(None, None, "no bwrap"), claude) == "no bwrap"


def test_the_list_of_agents_names_no_program_that_runs_later() -> None:
    for name, agent in known_agents().items():
        assert agent.hosts, name
        # Brought back is a login and nothing that a later session would run or obey.
        assert not {*agent.login} & {*agent.copies}
        assert all(
            path.endswith(("auth.json", "credentials.json", "oauth_creds.json"))
            for path in agent.login
        )
