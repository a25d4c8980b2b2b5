"""``cockpit acp`` with the SDK's client over a real process: prompts, questions, sessions, failures."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import pytest
import run_cockpit
from acp import RequestError
from acp_client import PATIENCE_S, Client, connect
from commands.cli_world import Project
from state_for_tests import state_of

from cockpit.access import user_presence
from cockpit.access.principals import PERSON
from cockpit.config.load_settings import load_settings
from cockpit.core.project import project_trust
from cockpit.loop.decisions.decide_proposal import Decision, decide_proposal
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import messages, proposals, sessions

pytestmark = pytest.mark.slow


def open_store(project: Project) -> Store:
    return Store.open(state_of(project.root) / "cockpit.db")


def read_sessions(project: Project) -> dict[str, str]:
    """The statuses of all sessions, by their ids; the journal must verify."""
    with open_store(project) as store:
        assert not store.read_now(verify_chain.verify).broken
        listed = store.read_now(lambda connection: sessions.select_recent(connection, 9))
    return {each.session_id: each.status for each in listed}


async def decide(project: Project, proposal_id: str, decision: Decision) -> None:
    """What the user does elsewhere."""
    settings = load_settings(None, env={}).runtime
    with open_store(project) as store:
        await store.write(lambda tx: decide_proposal(tx, settings, proposal_id, decision, PERSON))


async def test_a_prompt_is_run_and_its_proposals_are_asked_about(project: Project) -> None:
    async with connect(project, model=project.script()) as editor:
        session = await editor.open()
        answer = await editor.prompt(session, "/feature Write notes")
        client = editor.client
        assert answer.stop_reason == "end_turn"
        assert answer.usage.total_tokens > 0
        context, edit = client.questions
        assert context.kind == "read"
        assert [place.path for place in context.locations] == [
            str(project.root / "shapes.py"),
            str(project.root / "room.py"),
        ]
        assert edit.kind == "edit"
        (diff,) = [part for part in edit.content if part.type == "diff"]
        assert (diff.path, diff.new_text) == (str(project.root / "notes.md"), "# Notes\n")
        assert [option.kind for option in client.options] == [
            "allow_once",
            "reject_once",
            "reject_once",
        ]
        assert "I need two files before I judge this." in client.said()
        assert "Notes written." in client.said()
        assert {call["status"] for call in client.calls().values()} == {"completed"}
        assert (project.root / "notes.md").read_text() == "# Notes\n"
        # A policy is a mode: under this one no read is asked for.
        made = await editor.connection.new_session(cwd=str(project.root))
        modes = [mode.id for mode in made.modes.available_modes]
        assert modes == ["ask", "trusted", "reads", "all"]
        assert made.modes.current_mode_id == "ask"
        await editor.connection.set_session_mode(session_id=made.session_id, mode_id="reads")
        await editor.prompt(made.session_id, "/feature Write notes")
        assert [call.kind for call in client.questions[2:]] == ["edit"]
        with pytest.raises(RequestError, match="cannot be chosen"):
            await editor.connection.set_session_mode(session_id=made.session_id, mode_id="wild")
    assert read_sessions(project).keys() == {session, made.session_id}


async def test_a_rejection_and_the_next_message_reach_the_agent(project: Project) -> None:
    def choose(call: Any) -> str:
        return "reject" if call.kind == "edit" else "allow"

    async with connect(project, model=project.script(), client=Client(choose)) as editor:
        session = await editor.open()
        await editor.prompt(session, "/feature Write notes")
        edit = editor.client.questions[-1]
        assert editor.client.calls()[edit.tool_call_id]["status"] == "failed"
        assert not (project.root / "notes.md").exists()
        editor.client.choose = lambda _: "allow"
        answer = await editor.prompt(session, "Leave the notes out.")
        assert answer.stop_reason == "end_turn"
    with open_store(project) as store:
        said = store.read_now(lambda c: messages.select_for_session(c, session))
        assert "Leave the notes out." in [each.text for each in said if each.role == "person"]
        decided = store.read_now(lambda c: proposals.load(c, edit.tool_call_id))
    assert (decided.status, decided.decided_by) == ("rejected", "person")


async def test_a_decision_elsewhere_withdraws_the_question(project: Project) -> None:
    """Of one of two sessions that run at once; the turn of the other is cancelled."""
    client = Client(hold=asyncio.Event())
    async with connect(project, model=project.script(), client=client) as editor:
        session, other = await editor.open(), await editor.open()
        turn = asyncio.create_task(editor.prompt(session, "/feature Write notes"))
        await client.until(lambda: client.questions)
        first = client.questions[0].tool_call_id
        cancelled = asyncio.create_task(editor.prompt(other, "/feature Write notes"))
        await client.until(lambda: len(client.questions) == 2)
        await editor.connection.cancel(session_id=other)
        assert (await cancelled).stop_reason == "cancelled"
        await decide(project, first, "approved")
        await client.until(lambda: len(client.questions) == 3)
        assert client.calls()[first]["status"] == "completed"
        await decide(project, client.questions[2].tool_call_id, "rejected")
        assert (await turn).stop_reason == "end_turn"
        client.hold.set()  # late answers: both were decided
        assert (await editor.connection.list_sessions(cwd=str(project.root))).sessions
    assert not (project.root / "notes.md").exists()


async def test_cancelled_and_lost_turns_are_resumed_by_another_process(project: Project) -> None:
    client = Client(hold=asyncio.Event())
    async with connect(project, model=project.script(), client=client) as editor:
        session, lost = await editor.open(), await editor.open()
        turn = asyncio.create_task(editor.prompt(session, "/feature Write notes"))
        await client.until(lambda: client.questions)
        await editor.connection.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        turn = asyncio.create_task(editor.prompt(lost, "/feature Write more notes"))
        await client.until(lambda: len(client.questions) == 2)
        await editor.vanish()
        turn.cancel()
        client.hold.set()
    assert read_sessions(project) == {session: "stopped", lost: "stopped"}
    async with connect(project, model=project.script()) as editor:
        entries = (await editor.connection.list_sessions(cwd=str(project.root))).sessions
        assert {(each.session_id, each.cwd) for each in entries} == {
            (name, str(project.root)) for name in (session, lost)
        }
        await editor.connection.load_session(cwd=str(project.root), session_id=session)
        client = editor.client
        assert "Write notes" in client.said("user_message_chunk")
        assert "I need two files" in client.said()
        frame, asked = client.calls().values()
        assert (frame["status"], asked["status"]) == ("completed", "pending")
        assert not client.questions
        assert (await editor.prompt(session, "Go on.")).stop_reason == "end_turn"
        assert len(client.questions) == 2
        assert (project.root / "notes.md").read_text() == "# Notes\n"
        await editor.connection.resume_session(cwd=str(project.root), session_id=lost)
        assert (await editor.prompt(lost, "Go on.")).stop_reason == "end_turn"
        assert "Write more notes" not in client.said("user_message_chunk")


async def test_folders_that_are_not_opened_are_refused_with_words(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = project.config.parent / "elsewhere"
    outside.mkdir()
    monkeypatch.setattr(project_trust, "REQUIRED", True)
    (project.root / ".cockpit").mkdir()
    strange = project.config.parent / "strange" / ".cockpit"
    strange.mkdir(parents=True)
    (strange / "config.toml").write_text('[approval]\npolicy = "ask"\n', encoding="utf-8")
    async with connect(project, model="offline", approve="ask") as editor:
        for cwd, words in (
            (str(strange.parent), r"You have not trusted .*config.toml.*cockpit trust"),
            ("shapes.py", "absolute path"),
            (str(outside / "gone"), "There is no folder"),
            (str(outside), "is not a project"),
        ):
            with pytest.raises(RequestError, match=words):
                await editor.connection.new_session(cwd=cwd)
        with pytest.raises(RequestError, match="No session 's-none' is open"):
            await editor.prompt("s-none", "Hello")
        with pytest.raises(RequestError, match="There is no session s-none"):
            await editor.connection.load_session(cwd=str(project.root), session_id="s-none")
        made = await editor.connection.new_session(cwd=str(project.root))
        with pytest.raises(RequestError, match="The prompt is empty"):
            await editor.prompt(made.session_id, "  ")
        assert [mode.id for mode in made.modes.available_modes] == ["ask"]
        with pytest.raises(RequestError, match="can be ask"):
            await editor.connection.set_session_mode(session_id=made.session_id, mode_id="all")


def test_garbage_is_answered_or_ignored_and_a_client_that_dies_does_not_keep_the_server(
    project: Project,
) -> None:
    lines = [
        b"no json",
        b"[1, 2]",
        b'{"jsonrpc":"2.0","method":7,"id":1}',
        b'{"jsonrpc":"2.0","method":"session/prompt","id":2,"params":[]}',
        b'{"jsonrpc":"2.0","method":"session/new","id":3,"params":{"cwd":5}}',
        b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":{}}}',
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","method":"\xff\xfe","id":4}',
        b'{"jsonrpc":"2.0","method":"initialize","id":5,"params":{"protocolVersion":9}}',
    ]
    with subprocess.Popen(
        [*run_cockpit.PROGRAM, "acp"],
        cwd=project.root,
        env=project.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        answers: dict[object, str] = {}
        while not {3, 5} <= answers.keys():
            answer = process.stdout.readline().decode()
            answers[json.loads(answer).get("id")] = answer
        assert '"protocolVersion":1' in answers[5] and "absolute path" in answers[3]
        line = b'{"jsonrpc":"2.0","method":"initialize","id":%d,"params":{}}\n'
        process.stdin.write(b"".join(line % number for number in range(600)))
        process.stdin.close()
        assert process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(PATIENCE_S) == 0


HOSTILE = """
[[turn]]
text = "\\u001b]0;owned\\u0007Look: \\u202eevil"
[[turn.call]]
name = "run"
arguments = { argv = ["rm", "-rf", "shapes.py"], reason = "clean \\u001b[2Jup" }
[[turn]]
when = { called = ["run"] }
text = "So be it."
"""


async def test_hostile_text_is_cleaned_and_high_risk_is_named(project: Project) -> None:
    client = Client(choose=lambda _: "discuss")
    async with connect(project, model=project.script(HOSTILE), client=client) as editor:
        session = await editor.open()
        assert (await editor.prompt(session, "/feature Clean up")).stop_reason == "end_turn"
        await client.until(lambda: client.updates)
        everything = "".join(update.model_dump_json() for update in client.updates)
        (question,) = client.questions
        answer = await editor.prompt(session, "Because I need that file.")
        assert answer.stop_reason == "end_turn"
        everything += question.model_dump_json()
        assert question.title.startswith("HIGH RISK: ")
        assert question.kind == "execute"
        assert "Look: evil" in client.said()
        assert not any(sign in everything for sign in ("\\u001b", "\\u202e", "\u202e", "\x1b"))


async def test_an_agent_cannot_approve_by_serving_itself(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_presence, "_is_assumed", False)
    monkeypatch.setenv("CLAUDECODE", "1")
    async with connect(project, model=project.script()) as editor:
        client = editor.client
        made = await editor.connection.new_session(cwd=str(project.root))
        assert [mode.id for mode in made.modes.available_modes] == ["ask"]
        with pytest.raises(RequestError, match="cannot be chosen"):
            await editor.connection.set_session_mode(session_id=made.session_id, mode_id="all")
        turn = asyncio.create_task(editor.prompt(made.session_id, "/feature Write notes"))
        await client.until(lambda: "cannot be decided here" in client.said())
        assert not client.questions
        with open_store(project) as store:
            assert len(store.read_now(proposals.select_pending)) == 1
        await editor.connection.cancel(session_id=made.session_id)
        assert (await turn).stop_reason == "cancelled"
