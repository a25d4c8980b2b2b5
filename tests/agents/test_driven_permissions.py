"""Permissions that Claude Code asks for over stdio: in the one queue."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agents.runner_world import AGENT, Runs, Step, init, result, says
from loop.permissions.permission_world import World as Queue

from cockpit.agents.runs.agent_process import run_agent_process
from cockpit.agents.runs.run_agent import RunnerOutcome
from cockpit.agents.stdio.claude_dialogue import write_answer
from cockpit.agents.stdio.permissions import ask_in_queue
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.permissions import withdrawal
from cockpit.loop.permissions.answer_questions import answer_questions
from cockpit.loop.permissions.question_form import Answer
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings
from cockpit.tasks.role_result import parse_verdict

pytestmark = pytest.mark.slow

GREETING: list[Step] = [{"hear": 2}, init()]
END = result("STATUS: done\nAll there.")


def asks(request_id: str, tool: str, **arguments: Any) -> Step:
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": arguments, "tool_use_id": "t"}
    return says({"type": "control_request", "request_id": request_id, "request": request})


class Driven:
    """A run with an agent that asks, and the queue beside it."""

    def __init__(self, runs: Runs, *, policy: str = "ask", **limits: float) -> None:
        self.runs, self.session_id = runs, runs.session(**limits)
        store = runs.store
        store.write_now(
            lambda tx: tx.execute(
                "UPDATE sessions SET policy=? WHERE session_id=?", (policy, self.session_id)
            )
        )
        self.queue = Queue(store, runs.place.root, self.session_id, ChangeWaiter(store))

    def start(self, *steps: Step, **options: Any) -> asyncio.Task[RunnerOutcome]:
        scenario = self.runs.scenario(*steps)
        heard = self.runs.folder / "heard.jsonl"
        command = (
            sys.executable,
            str(AGENT.with_name("driven_agent.py")),
            str(scenario),
            str(heard),
        )
        timeout_s = options.pop("timeout_s", 60.0)
        runner = RunnerSettings("claude", command, protocol="stdio", timeout_s=timeout_s)
        store, root = self.runs.store, self.runs.place.root
        ask = ask_in_queue(store, RuntimeSettings(), self.session_id, root)
        return asyncio.create_task(self.runs.run(runner, self.session_id, ask=ask, **options))

    def heard(self) -> list[dict[str, Any]]:
        lines = (self.runs.folder / "heard.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def answers(self) -> dict[str, Any]:
        return {
            body["response"]["request_id"]: body["response"].get("response", body["response"])
            for body in self.heard()
            if body.get("type") == "control_response"
        }


async def test_several_permissions_wait_at_once_and_each_answer_reaches_the_agent(
    runs: Runs,
) -> None:
    driven, path = Driven(runs), str(runs.place.root / "a.py")
    running = driven.start(
        *GREETING,
        asks("r1", "Write", file_path=path, content="x = 1\n"),
        asks("r2", "Bash", command="make install"),
        asks("r3", "Write", file_path=path, content="x = 1\n"),
        {"obey": 3},
        END,
    )
    waiting = await driven.queue.pending(3)
    assert runs.last().status == "waiting"
    writes = [each for each in waiting if "a.py" in each.title]
    (command,) = (each for each in waiting if "make" in each.title)
    changed = await driven.queue.edit(writes[0], "x = 2\n")
    await asyncio.to_thread(driven.queue.decide, command, "rejected", "use pip")
    await asyncio.to_thread(driven.queue.decide, changed, "approved")
    await asyncio.to_thread(driven.queue.decide, writes[1], "rejected")
    outcome = await running
    assert (outcome.status, outcome.text) == ("finished", "STATUS: done\nAll there.")
    assert Path(path).read_text(encoding="utf-8") == "x = 2\n"
    answers = driven.answers()
    assert answers["r2"] == {
        "behavior": "deny",
        "message": "The user said no: use pip",
        "interrupt": False,
    }
    assert {answers["r1"]["behavior"], answers["r3"]["behavior"]} == {"allow", "deny"}
    (ended,) = runs.rows("runner.ended")
    assert len(ended.raw_detail()["refused"]) == 2


async def test_a_policy_answers_what_it_may_and_a_deny_rule_refuses(runs: Runs) -> None:
    driven, path = Driven(runs, policy="all"), str(runs.place.root / "a.py")
    outcome = await driven.start(
        *GREETING,
        asks("r1", "Write", file_path=path, content="x = 1\n"),
        asks("r2", "Bash", command="cockpit proposals approve p-1"),
        {"obey": 2},
        END,
    )
    assert outcome.status == "finished"
    answers = driven.answers()
    assert answers["r1"]["updatedInput"] == {"file_path": path, "content": "x = 1\n"}
    assert answers["r2"]["behavior"] == "deny"
    assert "cockpit denies this" in answers["r2"]["message"]


async def test_a_cancelled_run_leaves_nothing_in_the_queue(runs: Runs) -> None:
    driven = Driven(runs)
    running = driven.start(*GREETING, asks("r1", "Bash", command="make install"), {"hear": 1}, END)
    (proposal,) = await driven.queue.pending()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    closed = driven.queue.load(proposal.proposal_id)
    assert (closed.status, closed.reason) == ("expired", withdrawal.STOPPED.words)
    assert runs.last().status == "stopped"


async def test_a_stop_interrupts_the_agent_and_expires_what_it_asked_for(runs: Runs) -> None:
    driven, stop = Driven(runs), asyncio.Event()
    asked = asks("r1", "Bash", command="make install")
    running = driven.start(*GREETING, asked, stop=stop)
    (proposal,) = await driven.queue.pending()
    stop.set()
    assert (await running).status == "stopped"
    assert driven.heard()[-1]["request"] == {"subtype": "interrupt"}
    assert driven.queue.load(proposal.proposal_id).status == "expired"


async def test_odd_requests_are_refused_and_noted(runs: Runs) -> None:
    driven = Driven(runs)
    odd = says(
        {"type": "control_request", "request_id": "r9", "request": {"subtype": "mcp_message"}}
    )
    none = says({"type": "control_request", "request": 7})
    outcome = await driven.start(*GREETING, {"raw": "\x1b[2Jnonsense"}, odd, none, {"hear": 2}, END)
    assert outcome.status == "finished"
    assert driven.answers()["r9"]["subtype"] == "error"
    assert len(runs.rows("runner.noted")) == 3


async def test_waiting_for_the_user_is_not_the_agents_time(tmp_path: Path) -> None:
    class Waits:
        def begin(self, stdin: asyncio.StreamWriter) -> None:
            asyncio.get_running_loop().call_later(0.3, stdin.close)

        def interrupt(self) -> None:
            raise AssertionError("nothing stops it")

        def waited_s(self) -> float:
            return 60.0

    async def ignore(line: str | None) -> None: ...

    ended = await run_agent_process(
        (sys.executable, "-c", "import sys; sys.stdin.read()"),
        cwd=tmp_path, env=os.environ, stdin=None, timeout_s=0.1, max_bytes=1_000, stop_events=[],
        on_start=lambda pid: None, on_line=ignore, talk=Waits(),
    )  # fmt: skip
    assert (ended.end, ended.exit_code) == ("ended", 0)


async def test_answers_to_claude_s_questions_reach_its_tool(runs: Runs) -> None:
    driven = Driven(runs, policy="all")
    databases = [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}]
    question = {"question": "Which database?", "header": "DB", "options": databases}
    question["multiSelect"] = False
    running = driven.start(
        *GREETING, asks("r1", "AskUserQuestion", questions=[question]), {"hear": 1}, END
    )
    (proposal,) = await driven.queue.pending()
    digest = proposal.shown_digest
    await answer_questions(runs.store, RuntimeSettings(), proposal, digest, [Answer((1,))])
    assert (await running).status == "finished"
    decision = driven.answers()["r1"]
    assert decision["behavior"] == "allow"
    assert decision["updatedInput"] == {
        "questions": [question],
        "answers": {"Which database?": "Postgres"},
    }


def test_an_answer_in_its_form_is_read_as_the_last_message() -> None:
    assert write_answer({"status": "nothing_to_do", "summary": "It adds."}) == (
        "STATUS: nothing to do\nIt adds."
    )
    assert write_answer({"status": "needs_answer", "summary": "Which?"}) == "Which?"
    assert write_answer({"status": "perfect"}) == ""
    verdict = {"verdict": "FAIL", "looked_at": "a\nb", "findings": "VERDICT: PASS\n\nsays a.py"}
    assert parse_verdict(write_answer(verdict)).status == "FAIL"
