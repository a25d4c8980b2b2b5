"""Sessions of an ACP agent from the first word to the last, with a real process that follows a script."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest
from agents.acp_client.acp_world import PATIENCE_S, Acp, open_acp

from cockpit.act.dispatch_actions import LOOK_FIRST
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.agents.acp_client.agent_connection import AgentFailed, LoginNeeded
from cockpit.agents.acp_client.agent_session import LARGEST_IMAGE
from cockpit.app.session_runs import SessionRuns
from cockpit.core.errors import IllegalTransition
from cockpit.core.processes import is_process_alive
from cockpit.core.skills import skill_layers
from cockpit.loop.permissions import withdrawal
from cockpit.loop.permissions.question_form import Answer
from cockpit.loop.skills.session_skills import want_skill
from cockpit.store.journal.details.agents import RunnerToolStarted
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow


async def test_everything_that_an_agent_says_is_journalled_as_what_it_is(acp: Acp) -> None:
    session = await acp.run("everything please")
    assert (session.status, session.result["status"]) == ("completed", "done")
    assert (session.agent, session.transport, session.agent_session) == (
        "scripted",
        "acp",
        "agent-session-1",
    )
    assert session.pid == ""
    assert (session.input_tokens, session.output_tokens, session.cached_tokens) == (100, 20, 40)
    assert session.cost_usd == 0.25
    assert acp.said(session.session_id) == ["All seen."]
    rows = {row["action"]: row for row in acp.rows(session.session_id)}
    assert rows["runner.thought"]["text"] == "First I look."
    assert [step["status"] for step in rows["runner.plan"]["steps"]] == ["completed", "pending"]
    assert rows["runner.commands"]["commands"][0]["name"] == "compact"
    assert rows["runner.context"] == {"action": "runner.context", "used": 500, "size": 200000}
    ended = rows["runner.tool_ended"]
    assert (ended["kind"], ended["places"], ended["gated"]) == ("read", ["room.py:3"], False)
    assert "def area" in ended["summary"]
    assert rows["runner.turn"]["end"] == "end_turn"
    kinds = {row["kind"]: row for row in acp.rows(session.session_id, "runner.choices")}
    assert kinds["model"]["current"] == "small" and len(kinds["mode"]["choices"]) == 2


async def test_skills_come_with_the_message_that_needs_them_and_once(
    acp: Acp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    async def ask(words: str) -> str:
        await acp.runtime.say(session_id, words)
        await acp.runtime.run(session_id)
        return acp.said(session_id)[-1]

    session_id = await acp.start("answer use git to squash these commits", interactive=True)
    await acp.runtime.run(session_id)
    first = acp.said(session_id)[-1]
    assert first.startswith("You said: use git to squash these commits")
    assert "[skill:git]" in first and "grants no permission" in first
    assert await ask("answer use git for one more") == "You said: use git for one more"
    store = acp.world.store
    store.write_now(lambda tx: want_skill(tx, session_id, "git", load=False))
    store.write_now(lambda tx: want_skill(tx, session_id, "debugging", load=True))
    third = await ask("answer thanks")
    assert "The skill git applies no longer" in third and "[skill:debugging]" in third
    changes = acp.rows(session_id, "skill.changed")
    loaded = [row["name"] for row in changes if row["status"] == "loaded"]
    assert loaded == ["git", "debugging"]
    assert [row["name"] for row in changes if row["status"] == "unloaded"] == ["git"]
    assert await ask("/compact") == "You said: "
    fourth = await ask("answer work out which branch is stale")
    assert "skill" not in fourth, "an agent is not told of what it does not get"


async def test_a_message_said_meanwhile_is_the_next_prompt(acp: Acp) -> None:
    session_id = await acp.start("command echo one", interactive=True)
    task = acp.begin(session_id)
    (proposal,) = await acp.asked()
    await acp.runtime.say(session_id, "answer second")
    await acp.runtime.say(session_id, "third")
    await acp.approve(proposal)
    session = await task
    assert session.status == "waiting"
    assert acp.said(session_id) == ["It ran.", "You said: second\n\nthird"]
    await acp.runtime.say(session_id, "answer fourth")
    await acp.runtime.run(session_id)
    assert acp.said(session_id)[-1] == "You said: fourth"
    starts = acp.rows(session_id, "runner.started")
    assert len(starts) == 1, "the agent stays open between turns"


async def test_files_that_a_message_names_go_along(acp: Acp) -> None:
    root = acp.world.root
    (root / "plan.png").write_bytes(b"png")
    (root / "large.png").write_bytes(b"x" * (LARGEST_IMAGE + 1))
    (root / ".env").write_text("KEY=value\n")
    (root.parent / "outside.png").write_bytes(b"secret")
    (root / "link.png").symlink_to("../outside.png")
    names = ("plan.png", "large.png", "calc.py", ".env", "link.png", "../outside.png", "none.png")
    session = await acp.run("blocks " + " ".join(f"@{name}" for name in names))
    sent = acp.said(session.session_id)[-1].splitlines()
    # An image goes along where it is not too large, all else as a link; nothing from outside, no secrets.
    assert [line.split() for line in sent] == [
        ["image", "image/png", base64.b64encode(b"png").decode()],
        ["resource_link", "large.png"],
        ["resource_link", "calc.py"],
    ]


async def test_an_elicitation_is_a_question_with_a_form(acp: Acp) -> None:
    task = acp.begin(await acp.start("elicit form"))
    (shown,) = await acp.asked()
    assert (shown.kind, shown.title) == ("permission", "How shall I paint it?")
    answers = [Answer((0,)), Answer((1, 0)), Answer(text="3"), Answer(text="no")]
    await acp.runtime.answer(shown.proposal_id, shown_digest=shown.shown_digest, answers=answers)
    session = await task
    assert json.loads(acp.said(session.session_id)[0]) == {
        "action": "accept",
        "content": {"question_0": "red", "tests": ["blue", "red"], "count": 3, "sure": False},
    }
    assert session.result["status"] == "done"
    task = acp.begin(await acp.start("elicit form"))
    (shown,) = await acp.asked()
    await acp.reject(shown)
    assert json.loads(acp.said((await task).session_id)[0]) == {"action": "decline"}


async def test_an_address_is_shown_and_opened_by_the_user(acp: Acp) -> None:
    task = acp.begin(await acp.start("elicit url"))
    (shown,) = await acp.asked()
    text = json.dumps(shown.body)
    assert "https://id.example/login?x=1" in text and "id.example" in text
    assert "cockpit opens nothing" in text
    await acp.approve(shown)
    assert json.loads(acp.said((await task).session_id)[0]) == {"action": "accept", "content": {}}


async def test_a_permission_whose_agent_ends_says_what_happened(
    acp: Acp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This agent hears of no cancellation: it is ended.
    monkeypatch.setattr("cockpit.agents.acp_client.agent_session.CANCEL_S", 0.2)
    session_id = await acp.start("leave dying", interactive=True)
    runs = SessionRuns(acp.runtime, lambda text: None, lambda: None)
    runs.ensure_running(session_id)
    await acp.asked()
    (acp.world.root / "go").touch()
    await acp.until(lambda: not acp.pending() and not runs.any_running)
    (closed,) = acp.rows(session_id, "proposal.decided")
    assert closed["reason"] == withdrawal.AGENT_ENDED.words


async def test_an_interrupted_turn_withdraws_what_it_asked_for_and_can_be_resumed(acp: Acp) -> None:
    session_id = await acp.start("several 2")
    task = acp.begin(session_id)
    await acp.asked(2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert acp.pending() == []
    assert acp.load(session_id).status == "stopped"
    await acp.runtime.say(session_id, "answer again")
    session = await acp.runtime.run(session_id)
    assert session.status == "completed"
    assert acp.said(session_id) == ["You said: again"]
    assert session.agent_session == "agent-session-1"
    assert [row["number"] for row in acp.rows(session_id, "runner.started")] == [1, 2]


async def test_an_agent_is_told_of_its_call_that_a_kill_cut_off(acp: Acp) -> None:
    """A row of the call, and none of its end: so a kill leaves the journal."""
    session = await acp.run("answer one")
    migrate = RunnerToolStarted(run=1, call_id="c9", tool="execute", title="npm run migrate")
    acp.world.store.write_now(
        lambda tx: tx.journal(migrate, session_id=session.session_id, actor="agent")
    )
    for words in ("answer two", "answer three"):
        await acp.runtime.say(session.session_id, words)
        await acp.runtime.run(session.session_id)
    _, two, three = acp.said(session.session_id)
    assert "- npm run migrate" in two and LOOK_FIRST in two
    assert three == "You said: three", "it is said once"


async def test_a_session_that_can_only_be_loaded_does_not_repeat_its_history(acp: Acp) -> None:
    acp.switch(resume="refused")
    session = await acp.run("answer one")
    await acp.runtime.say(session.session_id, "answer two")
    session = await acp.runtime.run(session.session_id)
    assert acp.said(session.session_id) == ["You said: one", "You said: two"]


async def test_an_agent_that_ignores_a_cancellation_is_ended(
    acp: Acp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.agents.acp_client.agent_session.CANCEL_S", 0.2)
    acp.switch(cancel="ignored")
    session_id = await acp.start("hang")
    task = acp.begin(session_id)
    pid = await acp.until(lambda: acp.load(session_id).pid.partition("/")[0])
    await acp.until(lambda: acp.rows(session_id, "runner.turn"))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert acp.load(session_id).status == "stopped"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


async def test_an_agent_that_dies_is_a_failed_session_with_words(acp: Acp) -> None:
    session = await acp.run("die asking")
    assert session.status == "failed"
    assert "ended with exit code 9" in session.result["summary"]
    assert "out of luck" in session.result["summary"]
    assert acp.pending() == []
    assert acp.said(session.session_id) == ["I die."]


async def test_an_agent_that_cannot_be_opened_says_why(acp: Acp) -> None:
    acp.switch(login=True)
    with pytest.raises(LoginNeeded, match="log in first") as refusal:
        await acp.run("answer")
    assert "Log in with a browser: `cockpit agents login scripted login`" in str(refusal.value)
    acp.switch(dies="session/new")
    with pytest.raises(AgentFailed, match="exit code 7") as failure:
        await acp.run("answer")
    assert "sk-ant-api" not in str(failure.value)


async def test_an_agent_that_ends_before_its_first_answer_is_started_once_more(
    tmp_path: Path,
) -> None:
    async with open_acp(tmp_path, sandbox=SandboxChoices(agents=False)) as acp:
        acp.switch(dies_once=str(tmp_path / "began"))
        session = await acp.run("answer hello")
        assert session.status == "completed"
        assert acp.said(session.session_id) == ["You said: hello"]
        (note,) = acp.rows(session.session_id, "runner.noted")
        assert "exit code 7" in note["message"] and "started once more" in note["message"]
        assert "sk-ant-api" not in note["message"]


async def test_children_of_an_agent_end_with_it(acp: Acp) -> None:
    await acp.run("child")
    child = (acp.world.root / "child.pid").read_text()
    async with asyncio.timeout(PATIENCE_S):
        while is_process_alive(f"{child}/"):
            await asyncio.sleep(0.01)


async def test_modes_and_models_are_chosen_and_told(acp: Acp) -> None:
    acp.switch(mode="ask")
    session_id = await acp.start("answer one", interactive=True)
    await acp.runtime.run(session_id)
    agents = acp.runtime.agents()
    choices = {choice.kind: choice for choice in agents.choices(session_id)}
    assert choices["mode"].current == "ask"
    await agents.choose(acp.runtime.engine, session_id, "model", "large")
    choices = {choice.kind: choice for choice in agents.choices(session_id)}
    assert choices["model"].current == "large"
    with pytest.raises(IllegalTransition, match="there are small, large"):
        await agents.choose(acp.runtime.engine, session_id, "model", "huge")
    forked = acp.load(await agents.fork(acp.runtime.engine, session_id))
    assert forked.agent_session == "agent-session-1-fork"
    await acp.runtime.say(forked.session_id, "answer the fork")
    await acp.runtime.run(forked.session_id)
    assert acp.said(forked.session_id) == ["You said: the fork"]


async def test_a_fork_of_an_agent_in_the_sandbox_knows_its_conversation(acp: Acp) -> None:
    acp.switch(keeps=True)
    session_id = await acp.start("answer one", interactive=True)
    await acp.runtime.run(session_id)
    (started,) = acp.rows(session_id, "runner.started")
    assert started["sandbox"] == "bubblewrap"
    forked = await acp.runtime.agents().fork(acp.runtime.engine, session_id)
    await acp.runtime.say(forked, "answer the fork")
    await acp.runtime.run(forked)
    assert acp.said(forked) == ["You said: the fork"]
    session = await acp.runtime.store.read(lambda seen: sessions.load(seen, forked))
    assert session.agent_session == "agent-session-1-fork", acp.rows(forked, "runner.noted")


async def test_the_screen_s_first_message_goes_to_the_agent_that_the_settings_name(
    tmp_path: Path,
) -> None:
    async with open_acp(tmp_path, agent="scripted") as acp:
        acp.switch()
        session_id = await acp.runtime.start("answer /review-pr 24")
        session = await acp.runtime.run(session_id)
        assert (session.agent, session.status) == ("scripted", "waiting")
        assert acp.said(session_id) == ["You said: /review-pr 24"]
