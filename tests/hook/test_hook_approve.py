"""Agents in the user's own terminals: their permissions wait in an open cockpit, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hook_world import PATIENCE_S, SESSIONS, Project, git

from cockpit.agents.terminals.serve_hook_questions import answer_hooks
from cockpit.core import open_cockpits
from cockpit.loop.permissions import withdrawal
from cockpit.loop.runtime import Runtime, runtime_over
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

pytestmark = pytest.mark.slow

BASH = {"command": "touch made.txt", "description": "make a file"}


@asynccontextmanager
async def open_cockpit(project: Project, **choices: Any) -> AsyncIterator[Runtime]:
    """A cockpit that is open on the project and answers hooks, as the screen does."""
    settings = RuntimeSettings(**choices)
    with Store.open(project.place.database) as store:
        async with (
            runtime_over(store, project.place, settings) as runtime,
            answer_hooks(runtime.engine),
        ):
            yield runtime


def payload(project: Project, event: str = "PermissionRequest", **changes: Any) -> bytes:
    body = {
        "hook_event_name": event,
        "session_id": SESSIONS["claude"],
        "cwd": str(project.root),
        "tool_name": "Bash",
        "tool_input": BASH,
        "permission_mode": "default",
    }
    return json.dumps({**body, **changes}).encode()


class Call:
    """One hook call of the agent, in a process of its own."""

    def __init__(self, project: Project, body: bytes, agent: str = "claude") -> None:
        self.process = project.start("--agent", agent, "--approve")
        assert self.process.stdin is not None
        self.process.stdin.write(body)
        self.process.stdin.close()
        self.process.stdin = None

    async def answer(self) -> Any:
        output, errors = await asyncio.to_thread(self.process.communicate, None, PATIENCE_S)
        assert (self.process.returncode, errors) == (0, b"")
        return json.loads(output) if output else None

    async def kill(self, number: int) -> None:
        self.process.send_signal(number)
        await asyncio.to_thread(self.process.communicate, None, PATIENCE_S)


async def pending(runtime: Runtime, count: int = 1) -> list[Proposal]:
    """The waiting proposals, once there are as many."""

    def look() -> list[Proposal] | None:
        waiting = runtime.store.read_now(lambda c: proposals.select_pending(c, 100))
        return list(waiting) if len(waiting) == count else None

    async with asyncio.timeout(PATIENCE_S):
        return await runtime.engine.change_waiter.wait_for(look)


async def test_the_users_answer_reaches_the_agent(project: Project) -> None:
    async with open_cockpit(project) as runtime:
        call = Call(project, payload(project))
        (proposal,) = await pending(runtime)
        assert proposal.kind == "permission"
        assert proposal.body["agent"] == "claude" and proposal.body["branch"] == "main"
        await runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)
        answer = (await call.answer())["hookSpecificOutput"]
        assert answer == {
            "hookEventName": "PermissionRequest",
            "decision": {"behavior": "allow"},
        }

        call = Call(project, payload(project))
        (proposal,) = await pending(runtime)
        shown = proposal.shown_digest
        await runtime.reject(proposal.proposal_id, shown_digest=shown, reason="use src/")
        answer = (await call.answer())["hookSpecificOutput"]["decision"]
        assert answer["behavior"] == "deny" and "use src/" in answer["message"]

        session = runtime.store.read_now(lambda c: sessions.load(c, proposal.session_id))
        assert (session.transport, session.agent) == ("hook", "claude")
        assert session.agent_session == SESSIONS["claude"]


async def test_without_an_open_cockpit_nothing_waits(project: Project) -> None:
    async with asyncio.timeout(PATIENCE_S):
        assert await Call(project, payload(project)).answer() is None
    async with open_cockpit(project):
        left = open_cockpits.list_sockets(str(project.place.state))
        assert len(left) == 1
    # What a killed cockpit leaves is not a cockpit either, and the next one removes it.
    Path(left[0]).touch()
    assert await Call(project, payload(project)).answer() is None
    async with open_cockpit(project):
        assert open_cockpits.list_sockets(str(project.place.state)) == left


async def test_an_answer_in_the_agents_dialog_withdraws_the_question(project: Project) -> None:
    async with open_cockpit(project) as runtime:
        # "No" there: the agent ends its hook.
        call = Call(project, payload(project))
        (proposal,) = await pending(runtime)
        await call.kill(signal.SIGTERM)
        await pending(runtime, 0)
        closed = runtime.store.read_now(lambda c: proposals.load(c, proposal.proposal_id))
        assert (closed.status, closed.reason) == ("expired", withdrawal.LEFT_THERE.words)

        # "Yes" there: the agent goes on, and says so.
        call = Call(project, payload(project))
        (proposal,) = await pending(runtime)
        other = payload(project, "PostToolUse", tool_input={"command": "ls"}, tool_response={})
        assert await Call(project, other).answer() is None
        assert len(await pending(runtime)) == 1
        assert (
            await Call(project, payload(project, "PostToolUse", tool_response={})).answer() is None
        )
        assert await call.answer() is None
        await pending(runtime, 0)
        closed = runtime.store.read_now(lambda c: proposals.load(c, proposal.proposal_id))
        assert closed.reason == withdrawal.ALLOWED_THERE.words

        # A new prompt there, or the end of its turn or session: nothing waits any more.
        for event, ending in (
            ("UserPromptSubmit", withdrawal.WROTE_THERE),
            ("Stop", withdrawal.WENT_ON),
            ("SessionEnd", withdrawal.SESSION_ENDED),
        ):
            call = Call(project, payload(project))
            (proposal,) = await pending(runtime)
            assert await Call(project, payload(project, event, prompt="x")).answer() is None
            assert await call.answer() is None
            await pending(runtime, 0)
            closed = runtime.store.read_now(lambda c, p=proposal: proposals.load(c, p.proposal_id))
            assert closed.reason == ending.words


async def test_a_killed_hook_and_a_closed_cockpit_leave_nothing(project: Project) -> None:
    async with open_cockpit(project) as runtime:
        call = Call(project, payload(project))
        await pending(runtime)
        await call.kill(signal.SIGKILL)
        await pending(runtime, 0)
        call = Call(project, payload(project))
        (proposal,) = await pending(runtime)
    assert await call.answer() is None
    with Store.open(project.place.database) as store:
        closed = store.read_now(lambda c: proposals.load(c, proposal.proposal_id))
        assert (closed.status, closed.reason) == ("expired", withdrawal.ASKS_THERE.words)


async def test_the_deadline_passes_without_an_answer(project: Project) -> None:
    async with open_cockpit(project, hook_wait_s=1) as runtime:
        assert await Call(project, payload(project)).answer() is None
        await pending(runtime, 0)


async def test_an_edited_command_is_what_runs(project: Project) -> None:
    async with open_cockpit(project) as runtime:
        call = Call(project, payload(project))
        (proposal,) = await pending(runtime)
        text, _ = await runtime.editable(proposal.proposal_id)
        changed = text.replace("made.txt", "other.txt")
        await runtime.edit(proposal.proposal_id, shown_digest=proposal.shown_digest, text=changed)
        (proposal,) = await pending(runtime)
        await runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)
        decision = (await call.answer())["hookSpecificOutput"]["decision"]
        assert decision["behavior"] == "allow"
        assert decision["updatedInput"] == {**BASH, "command": "touch other.txt"}


async def test_a_headless_agent_asks_before_use(project: Project) -> None:
    project.extra["CLAUDE_CODE_ENTRYPOINT"] = "sdk-cli"
    async with open_cockpit(project) as runtime:
        call = Call(project, payload(project, "PreToolUse"))
        (proposal,) = await pending(runtime)
        await runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)
        answer = (await call.answer())["hookSpecificOutput"]
        assert answer["permissionDecision"] == "allow"
        # In a terminal with a dialog of its own it does not.
        project.extra["CLAUDE_CODE_ENTRYPOINT"] = "cli"
        assert await Call(project, payload(project, "PreToolUse")).answer() is None
        # Nor does one that cockpit runs, whose permissions it answers already.
        project.extra["COCKPIT_TASK"] = "T-1"
        assert await Call(project, payload(project)).answer() is None


async def send(path: str, message: bytes) -> bytes:
    """Send a message to a cockpit's socket, end it there, and return the answer."""
    connection = open_cockpits.connect(path)
    assert connection is not None
    with connection:
        connection.settimeout(PATIENCE_S)
        connection.sendall(message)
        connection.shutdown(1)
        return await asyncio.to_thread(connection.recv, 100)


async def test_only_requests_of_this_project_are_asked(project: Project, tmp_path: Path) -> None:
    """What lies inside the root is judged less risky, so it must be a worktree of the project."""
    (tmp_path / "other").mkdir()
    git(project.root, "worktree", "add", "-q", str(tmp_path / "tree"))

    def request(root: str) -> bytes:
        body = {"event": "PermissionRequest", "agent": "claude", "session": "s", "root": root}
        return json.dumps({**body, "tool": "Bash", "input": BASH}).encode() + b"\n"

    async with open_cockpit(project) as runtime:
        (path,) = open_cockpits.list_sockets(str(project.place.state))
        for message in (b"", b"{", b"[]\n", b'{"agent": 3}\n', b"\x00" * 5_000 + b"\n"):
            assert await send(path, message) == b"", message
        for root in ("/", str(tmp_path / "other"), str(project.root / "src"), "\0", "relative"):
            assert await send(path, request(root)) == b"", root
        await pending(runtime, 0)
        connection = open_cockpits.connect(path)
        assert connection is not None
        with connection:
            connection.sendall(request(str(tmp_path / "tree")))
            (proposal,) = await pending(runtime)
            assert proposal.body["branch"] == "tree"
