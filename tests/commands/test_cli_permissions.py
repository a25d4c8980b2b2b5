"""``cockpit proposals`` over what an external agent asks for: listed, shown, changed, answered."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from cli_world import PATIENCE_S, Project

from cockpit.core.project_paths import locate_project
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.permissions.ask_permission import PermissionAnswer, ask_permission
from cockpit.loop.permissions.read_tool_request import read_claude_tool
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals, sessions

pytestmark = pytest.mark.slow


class Agent:
    """An external agent's process: it asks in this one, and commands answer in others."""

    def __init__(self, project: Project, store: Store) -> None:
        self.project, self.store = project, store
        self.threads = ThreadPoolExecutor(1)
        self.session_id = store.write_now(self._begin)

    def _begin(self, tx: Tx) -> str:
        return sessions.create(
            tx, task_type="outside", title="an agent's work", words="do it", target={},
            model="runner:claude", policy="ask", interactive=True, root=self.project.root, rev=None,
            profile_id="default", limits={}, project="room", branch="main",
        ).session_id  # fmt: skip

    def ask(self, request: ToolRequest) -> Future[PermissionAnswer]:
        """Ask in a thread, and return when the question is in the store."""

        async def ask() -> PermissionAnswer:
            place = {"session_id": self.session_id, "root": self.project.root}
            waiter = ChangeWaiter(self.store)
            return await ask_permission(
                self.store, RuntimeSettings(), waiter, request, policy="ask", **place
            )

        asking = self.threads.submit(lambda: asyncio.run(ask()))
        end = time.monotonic() + PATIENCE_S
        while not self.store.read_now(proposals.select_pending):
            assert not asking.done() and time.monotonic() < end
            time.sleep(0.01)
        return asking

    def run(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        return self.project.run(*words, expect=expect)


@pytest.fixture
def agent(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    for name, value in project.env.items():
        monkeypatch.setenv(name, value)
    place = locate_project(project.root)
    place.prepare()
    with Store.open(place.database) as store:
        made = Agent(project, store)
        yield made
        made.threads.shutdown()


def bash(command: str) -> ToolRequest:
    return read_claude_tool("Bash", {"command": command, "description": "why it runs"})


def test_a_permission_is_listed_shown_and_approved(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    listed = json.loads(agent.run("proposals", "--json").stdout)
    (row,) = listed
    assert (row["kind"], row["agent"], row["project"]) == (
        "permission",
        "claude",
        agent.project.root.name,
    )
    table = agent.run("proposals").stdout
    assert "FROM" in table
    assert f"claude · {agent.project.root.name} · {row['branch']}" in table
    shown = agent.run("proposals", row["proposal_id"])
    assert "make build" in shown.stdout
    assert "why it runs" in shown.stdout
    assert "--edit" in shown.stderr
    agent.run("proposals", "approve", row["proposal_id"], "--shown", row["shown_digest"][:8])
    assert asking.result(PATIENCE_S).allowed
    exported = agent.project.run("sessions", "export", agent.session_id)
    assert "make build" in exported.stdout
    assert "approved by person" in exported.stdout


def test_a_command_is_changed_before_it_is_approved(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    (row,) = json.loads(agent.run("proposals", "--json").stdout)
    identity = row["proposal_id"]
    denied = agent.run("proposals", "discuss", identity, "--edit", "sudo make", expect=1)
    assert "denies" in denied.stderr
    same = agent.run("proposals", "discuss", identity, "--edit", "make build")
    assert "Nothing was changed" in same.stderr
    edited = agent.run("proposals", "discuss", identity, "--edit", "make test").stderr
    made = edited.rpartition("cockpit proposals ")[2].strip()
    revision = json.loads(agent.run("proposals", made, "--json").stdout)
    assert (revision["revises"], revision["status"]) == (identity, "pending")
    agent.run("proposals", "approve", revision["proposal_id"])
    answer = asking.result(PATIENCE_S)
    assert answer.input == {"command": "make test", "description": "why it runs"}
    verified = agent.project.run("debug", "journal")
    assert verified.returncode == 0


def test_what_is_always_allowed_is_listed_and_removed(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    (row,) = json.loads(agent.run("proposals", "--json").stdout)
    agent.run("proposals", "approve", row["proposal_id"], "--always")
    assert asking.result(PATIENCE_S).allowed
    (rule,) = agent.project.json("trust", "rules", "--json")
    assert rule["agent"] == "claude" and "make build" in rule["says"]
    agent.project.run("trust", "rules", "revoke", rule["rule_id"])
    assert agent.project.json("trust", "rules", "--json") == []
    asking = agent.ask(bash("cat .env"))
    (row,) = json.loads(agent.run("proposals", "--json").stdout)
    refused = agent.run(
        *("proposals", "approve", row["proposal_id"], "--shown", row["shown_digest"], "--always"),
        expect=1,
    )
    assert "Approve it once instead" in refused.stderr
    agent.run("proposals", "reject", row["proposal_id"])
    assert not asking.result(PATIENCE_S).allowed


def test_a_question_is_answered_and_a_discussion_is_no_message(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    (row,) = json.loads(agent.run("proposals", "--json").stdout)
    agent.run("proposals", "discuss", row["proposal_id"], "--words", "use ninja")
    refused = asking.result(PATIENCE_S)
    assert (refused.allowed, refused.words) == (False, "use ninja")
    query = "SELECT count(*) FROM messages WHERE role='person'"
    assert agent.store.read_now(lambda c: c.execute(query).fetchone()) == (0,)
    options = [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}]
    questions = [
        {"question": "Which database?", "header": "DB", "options": options},
        {"question": "Which tests?", "header": "T", "options": options, "multiSelect": True},
    ]
    asking = agent.ask(read_claude_tool("AskUserQuestion", {"questions": questions}))
    (row,) = json.loads(agent.run("proposals", "--json").stdout)
    name = row["proposal_id"]
    shown = agent.run("proposals", name)
    assert "1. SQLite: one file" in shown.stdout and "(choose any)" in shown.stdout
    assert f"cockpit proposals answer {name} ANSWER" in shown.stderr
    few = agent.run("proposals", "answer", name, "2", expect=2)
    assert "has 2 questions; give an ANSWER for each" in few.stderr
    agent.run("proposals", "answer", name, "a file of mine", "1, postgres")
    answer = asking.result(PATIENCE_S)
    assert answer.input is not None
    answers = {"Which database?": "a file of mine", "Which tests?": "SQLite, Postgres"}
    assert answer.input["answers"] == answers
