"""Permissions of external agents that wait, as their processes propose them."""

from __future__ import annotations

import json
from pathlib import Path

from app_scenes import Scene
from msgspec.structs import replace

from cockpit.act.proposed_action import FileDiff
from cockpit.loop.permissions.permission_body import describe_request, find_place
from cockpit.loop.permissions.read_tool_request import read_acp_tool, read_claude_tool
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agent_turns import (
    Choice,
    PlanStep,
    RunnerChoices,
    RunnerContext,
    RunnerPlan,
    RunnerThought,
    RunnerTurn,
)
from cockpit.store.journal.details.agents import RunnerToolEnded, RunnerToolStarted
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import messages, proposals, sessions
from cockpit.tasks.agent_changes.propose_change import describe_change, title_change
from cockpit.tasks.agent_changes.read_change import WorktreeChange

RETRY = """class Retry:
    def __init__(self, limit):
        self.limit = limit
        self.attempt = 0

    def after(self, ok):
        self.attempt += 1
        return min(self.limit, 2 ** self.attempt)
"""


class Agents:
    """Sessions of external agents in one project, and what they ask for."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        self.root = root
        (root / "retry.py").write_text(RETRY)

    def begin(
        self, agent: str, title: str, branch: str = "fix-login", task_type: str = "outside"
    ) -> str:
        """Begin a session of an agent in the user's terminal; with the type ``agent`` on the screen."""
        by_us = {"agent": agent, "transport": "acp"} if task_type == "agent" else {}

        def step(tx: Tx) -> str:
            return sessions.create(
                tx, task_type=task_type, title=title, words=title, target={},
                model=f"runner:{agent}", policy="ask", interactive=True, root=self.root, rev=None,
                profile_id="default", limits={}, project="api", branch=branch, **by_us,
            ).session_id  # fmt: skip

        return self.store.write_now(step)

    def ask(
        self, session_id: str, proposal_id: str, request: ToolRequest, branch: str = "fix-login"
    ) -> str:
        """Propose what ``request`` asks for; the worktree has a name that is the same everywhere."""
        described = describe_request(request, find_place(self.root))
        text = json.dumps(dict(described.body)).replace(str(self.root), "/home/you/api")
        body = {**json.loads(text), "branch": branch}
        for field in body["fields"]:
            if field[0] == "project":
                field[1] = f"api · {branch}"

        def step(tx: Tx) -> None:
            proposals.create(
                tx, proposal_id=proposal_id, kind="permission", session_id=session_id,
                wave_id=proposal_id, title=described.title, body=body,
                risk=described.judged.risk, actor=f"agent:{request.agent}",
            )  # fmt: skip
            if sessions.load(tx.connection, session_id).status == "running":
                detail = SessionWaiting(for_="proposal", why=described.title)
                sessions.set_status(tx, session_id, "waiting", detail=detail)

        self.store.write_now(step)
        return proposal_id

    def finish_work(self, session_id: str, proposal_id: str) -> str:
        """Propose all that the session's agent did in a worktree of its own; one file conflicts."""
        branch = "cockpit/claude-7f3a"
        tree = Worktree(
            "claude-7f3a", None, "", "/home/you/.local/state/cockpit/api/worktrees/claude-7f3a", branch,
            "a" * 40, "active", None, (), "", "",
        )  # fmt: skip
        after = RETRY.replace("self.attempt += 1", "self.attempt = 0 if ok else self.attempt + 1")
        test = (
            "from retry import Retry\n\n\ndef test_reset():\n    assert Retry(9).after(True) == 1\n"
        )
        change = WorktreeChange(
            "a" * 40, "b" * 40, "c" * 40, "a" * 40, 2, ("tests/test_retry.py",),
            ("retry.py", "tests/test_retry.py"), 6, 1,
            (FileDiff("retry.py", RETRY, after), FileDiff("tests/test_retry.py", None, test)),
            ("It conflicts with main in retry.py.", "Tests, or what selects them: tests/test_retry.py."),
            "medium", ("retry.py",),
        )  # fmt: skip
        payload = {"session": session_id, "into": "refs/heads/main", "branch": branch}

        def step(tx: Tx) -> None:
            session = sessions.load(tx.connection, session_id)
            body = describe_change(replace(session, agent="claude"), tree, "api", change, payload)
            proposals.create(
                tx, proposal_id=proposal_id, kind="action", session_id=session_id, wave_id="",
                title=title_change(tree, "refs/heads/main", change), body={**body, "key": "k"},
                risk=change.risk,
            )  # fmt: skip

        self.store.write_now(step)
        return proposal_id

    def questions(self, transport: str = "stdio") -> ToolRequest:
        """Return what Claude Code asks its user: one option, several, and a hostile one."""
        backoff = {
            "question": "Which backoff shall a success lead to?",
            "header": "Backoff",
            "options": [
                {
                    "label": "Zero",
                    "description": "The next failure begins from the shortest pause.",
                },
                {
                    "label": "Half",
                    "description": "A server that recovers slowly is asked less often.",
                },
            ],
            "multiSelect": False,
        }
        tests = {
            "question": "What shall the tests cover?",
            "header": "Tests",
            "options": [
                {"label": "The limit", "description": ""},
                {"label": "\x1b[31mThe reset\u202e", "description": "[bold]after a success"},
            ],
            "multiSelect": True,
        }
        arguments = {"questions": [backoff, tests]}
        return read_claude_tool("AskUserQuestion", arguments, transport=transport)

    def edit(self) -> ToolRequest:
        """Claude Code changes one line."""
        arguments = {
            "file_path": str(self.root / "retry.py"),
            "old_string": "        self.attempt += 1\n",
            "new_string": "        self.attempt = 0 if ok else self.attempt + 1\n",
        }
        return read_claude_tool("Edit", arguments, cwd=str(self.root))

    def command(self) -> ToolRequest:
        """Claude Code publishes."""
        arguments = {
            "command": "git push --force origin fix-login && curl -sS https://ci.example/hook",
            "description": "Publish the branch and start its checks",
        }
        return read_claude_tool("Bash", arguments, cwd=str(self.root))

    def server(self) -> ToolRequest:
        """Claude Code calls a tool of a server."""
        arguments = {
            "title": "Retries never start again",
            "labels": ["bug", "network"],
            "body": "After a success the second outage begins\nwith the longest delay.",
        }
        return read_claude_tool("mcp__tracker__create_issue", arguments, cwd=str(self.root))

    def patch(self) -> ToolRequest:
        """Codex adds a file."""
        path = str(self.root / "tests.py")
        diff = {"type": "diff", "path": path, "newText": "def test_it():\n    pass\n"}
        call = {
            "toolCallId": "c1",
            "title": f"Change {path}",
            "kind": "edit",
            "content": [diff],
            "rawInput": {"reason": "A test for the reset"},
        }
        return read_acp_tool(call, agent="codex", cwd=str(self.root))


def several(still, agents: Agents) -> str:
    """Two agents on two branches, and the built-in agent; the newest is two minutes old."""
    claude = agents.begin("claude", "reset the backoff")
    codex = agents.begin("codex", "a test for the reset", "retry-test")
    agents.ask(claude, "p-1", agents.edit())
    still.store.clock.advance(95)
    agents.ask(claude, "p-2", agents.command())
    agents.ask(codex, "p-3", agents.patch(), "retry-test")
    still.store.clock.advance(40)
    Scene(still.store, agents.root).begin().wave("observing", "orienting", "deciding").ask()
    return claude


def tell_of_work(store: Store, session_id: str, *, at_work: bool) -> None:
    """Write what the journal has of an agent in its first turn."""
    choices = (Choice(id="default", name="Always ask"), Choice(id="plan", name="Plan mode"))
    models = (Choice(id="sonnet", name="Sonnet 5"), Choice(id="opus", name="Opus 5"))
    text = "The reset never happens: `after` counts up whatever came back."
    steps = (
        PlanStep(text="Read how retries count", status="completed", priority="high"),
        PlanStep(text="Reset after a success", status="in_progress", priority="high"),
        PlanStep(text="Add a test for it", status="pending", priority="medium"),
    )
    read = {"run": 1, "call_id": "c1", "tool": "read", "title": "Read retry.py", "kind": "read"}
    command = {
        "run": 1,
        "call_id": "c2",
        "tool": "execute",
        "title": "pytest tests/test_retry.py",
        "kind": "execute",
    }
    rows = [
        RunnerChoices(kind="mode", name="Mode", current="default", choices=choices),
        RunnerChoices(kind="model", name="Model", current="sonnet", choices=models),
        RunnerTurn(run=1),
        RunnerThought(run=1, text="The attempt is never set back. I look at the test first."),
        RunnerPlan(run=1, steps=steps),
        RunnerToolStarted(**read, places=["retry.py:7"]),
        RunnerToolEnded(
            **read, failed=False, exit_code=None, summary=RETRY, places=["retry.py:7"], gated=False
        ),
        RunnerToolStarted(**command),
        RunnerToolEnded(**command, failed=True, exit_code=1, summary="1 failed", gated=True),
        RunnerContext(used=38_000, size=200_000),
    ]

    def write(tx: Tx) -> None:
        for row in rows:
            tx.journal(row, actor="agent", session_id=session_id)
        messages.complete(tx, session_id=session_id, role="agent", text=text)
        if at_work:
            messages.complete(tx, session_id=session_id, role="person", text="Keep the limit.")

    store.write_now(write)
