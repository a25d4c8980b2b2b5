"""``cockpit proposals`` over what an external agent asks for: listed, shown, changed, answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import Project

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
        self.waiter = ChangeWaiter(store)
        self.session_id = store.write_now(self._begin)

    def _begin(self, tx: Tx) -> str:
        return sessions.create(
            tx,
            task_type="outside",
            title="an agent's work",
            words="do it",
            target={},
            model="runner:claude",
            policy="ask",
            interactive=True,
            root=self.project.root,
            rev=None,
            profile_id="default",
            limits={},
            project="room",
            branch="main",
        ).session_id

    def ask(self, request: ToolRequest) -> asyncio.Task[PermissionAnswer]:
        asking = ask_permission(
            self.store,
            RuntimeSettings(),
            self.waiter,
            request,
            session_id=self.session_id,
            root=self.project.root,
            policy="ask",
        )
        return asyncio.create_task(asking)

    async def run(self, *words: str, expect: int = 0) -> Any:
        """Run a command after the question is in the store."""

        def waits() -> bool | None:
            return bool(self.store.read_now(proposals.select_pending)) or None

        await self.waiter.wait_for(waits, 0.05)
        return await asyncio.to_thread(self.project.run, *words, expect=expect)


@pytest.fixture
async def agent(project: Project, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Agent]:
    for name, value in project.env.items():
        monkeypatch.setenv(name, value)
    place = locate_project(project.root)
    place.prepare()
    with Store.open(place.database) as store:
        yield Agent(project, store)


def bash(command: str) -> ToolRequest:
    return read_claude_tool("Bash", {"command": command, "description": "why it runs"})


async def test_a_permission_is_listed_shown_and_approved(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    listed = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    (row,) = listed
    assert (row["kind"], row["agent"], row["project"]) == (
        "permission",
        "claude",
        agent.project.root.name,
    )
    table = (await agent.run("proposals", "list")).stdout
    assert "FROM" in table
    assert f"claude · {agent.project.root.name} · {row['branch']}" in table
    shown = await agent.run("proposals", "show", row["proposal_id"])
    assert "make build" in shown.stdout
    assert "why it runs" in shown.stdout
    assert "proposals edit" in shown.stderr
    await agent.run("proposals", "approve", row["proposal_id"], "--shown", row["shown_digest"][:8])
    assert (await asking).allowed
    exported = await asyncio.to_thread(agent.project.run, "sessions", "export", agent.session_id)
    assert "make build" in exported.stdout
    assert "approved by person" in exported.stdout


async def test_words_of_a_discussion_answer_and_are_no_message(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    (row,) = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    await agent.run("proposals", "discuss", row["proposal_id"], "--words", "use ninja")
    answer = await asking
    assert (answer.allowed, answer.words) == (False, "use ninja")
    messages = agent.store.read_now(
        lambda c: c.execute("SELECT count(*) FROM messages WHERE role='person'").fetchone()
    )
    assert messages == (0,)


async def test_a_command_is_changed_before_it_is_approved(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    (row,) = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    identity = row["proposal_id"]
    denied = await agent.run("proposals", "edit", identity, "--text", "sudo make", expect=1)
    assert "denies" in denied.stderr
    same = await agent.run("proposals", "edit", identity, "--text", "make build")
    assert "Nothing was changed" in same.stderr
    edited = await agent.run("proposals", "edit", identity, "--text", "make test", "--json")
    revision = json.loads(edited.stdout)
    assert (revision["revises"], revision["status"]) == (identity, "pending")
    await agent.run("proposals", "approve", revision["proposal_id"])
    answer = await asking
    assert answer.input == {"command": "make test", "description": "why it runs"}
    verified = await asyncio.to_thread(agent.project.run, "journal", "verify")
    assert verified.returncode == 0


async def test_what_nobody_waits_for_is_withdrawn_when_it_is_listed(
    agent: Agent, tmp_path: Path
) -> None:
    asking = agent.ask(bash("make build"))
    (row,) = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    body = dict(agent.store.read_now(lambda c: proposals.load(c, row["proposal_id"])).body)
    body["waiter"] = "1073741823/1"

    def abandon(tx: Tx) -> None:
        proposals.create(
            tx, proposal_id="p-gone", kind="permission", session_id=agent.session_id,
            wave_id="p-gone", title="gone", body=body, risk="medium",
        )  # fmt: skip

    await agent.store.write(abandon)
    (left,) = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    assert left["proposal_id"] == row["proposal_id"]
    done = await agent.run("proposals", "approve", "p-gone", expect=3)
    assert "was withdrawn. The cockpit that waited" in done.stderr
    await agent.run("proposals", "reject", row["proposal_id"])
    assert not (await asking).allowed


async def test_what_is_always_allowed_is_listed_and_removed(agent: Agent) -> None:
    asking = agent.ask(bash("make build"))
    (row,) = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    await agent.run("proposals", "approve", row["proposal_id"], "--always")
    assert (await asking).allowed
    (rule,) = await asyncio.to_thread(agent.project.json, "proposals", "rules", "--json")
    assert (rule["agent"], rule["kind"], rule["what"]) == ("claude", "execute", "make build")
    await asyncio.to_thread(agent.project.run, "proposals", "rules", "--remove", rule["rule_id"])
    assert await asyncio.to_thread(agent.project.json, "proposals", "rules", "--json") == []
    asking = agent.ask(bash("cat .env"))
    (row,) = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    refused = await agent.run(
        *("proposals", "approve", row["proposal_id"], "--shown", row["shown_digest"], "--always"),
        expect=1,
    )
    assert "Approve it once instead" in refused.stderr
    await agent.run("proposals", "reject", row["proposal_id"])
    assert not (await asking).allowed


async def test_a_question_is_answered_from_the_command_line(agent: Agent) -> None:
    options = [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}]
    questions = [
        {"question": "Which database?", "header": "DB", "options": options},
        {"question": "Which tests?", "header": "T", "options": options, "multiSelect": True},
    ]
    asking = agent.ask(read_claude_tool("AskUserQuestion", {"questions": questions}))
    (row,) = json.loads((await agent.run("proposals", "list", "--json")).stdout)
    name = row["proposal_id"]
    shown = await agent.run("proposals", "show", name)
    assert "1. SQLite: one file" in shown.stdout and "(choose any)" in shown.stdout
    assert f"cockpit proposals answer {name} ANSWER" in shown.stderr
    assert "cockpit proposals approve" not in shown.stderr
    refused = await agent.run("proposals", "approve", name, expect=1)
    assert "is a question. Answer it on the screen" in refused.stderr
    few = await agent.run("proposals", "answer", name, "2", expect=2)
    assert "has 2 questions; give an ANSWER for each" in few.stderr
    done = await agent.run("proposals", "answer", name, "a file of mine", "1, postgres")
    assert "is answered: asks: Which database? and 1 more" in done.stderr
    answer = await asking
    assert answer.input is not None
    assert answer.input["answers"] == {
        "Which database?": "a file of mine",
        "Which tests?": "SQLite, Postgres",
    }
