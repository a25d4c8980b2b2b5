"""Tools of a project in sessions: offered once approved, called as actions, run as they were approved."""

from __future__ import annotations

import asyncio
import json

import pytest
from tool_world import (
    COUNT,
    approve,
    calling,
    read_proposals,
    read_results,
    run_session,
    wait_for_call,
    write_tool,
)

from cockpit.loop.decisions.edit_action import edit_action, load_editable_text
from cockpit.loop.phases.wave_prompt import render_stored_prompt
from cockpit.loop.tools.approve_tools import ToolChanged, approve_file
from cockpit.loop.tools.list_tools import list_rows
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import outbox

pytestmark = pytest.mark.slow


async def test_a_tool_that_only_reads_is_called_under_the_policy_reads(runtime, script, project):
    write_tool(project)
    await approve(runtime)
    model = script(calling("wc", '{ path = "calc.py", minimum = 3 }'))
    session = await run_session(runtime, model, "reads", "what does calc do?")
    (result,) = await read_results(runtime, session.session_id)
    assert '"words":' in result and "counting calc.py" in result
    (proposal,) = await read_proposals(runtime, session.session_id)
    assert (proposal.body["type"], proposal.risk) == ("own_tool", "low")
    assert proposal.decided_by == "policy:reads"
    # It is a question: no tool that writes is offered.
    prompt, _ = await runtime.store.read(
        lambda c: render_stored_prompt(c, runtime.engine, f"{session.session_id}-w1")
    )
    names = [tool.name for tool in prompt.tools]
    assert "count_words" in names and "add_line" not in names
    rows = await runtime.store.read(
        lambda c: c.execute(
            "SELECT detail_json FROM journal WHERE action=?", (str(Action.TOOLS_OFFERED),)
        ).fetchall()
    )
    assert len(rows) == 1 and "count_words" in rows[0][0] and "add_line" not in rows[0][0]


async def test_a_tool_that_writes_waits_for_the_user(runtime, script, project):
    write_tool(project)
    await approve(runtime)
    model = script(calling("add_line", '{ path = "notes.txt", line = "one" }'))
    session = await run_session(runtime, model, "all")
    (proposal,) = await read_proposals(runtime, session.session_id)
    assert (proposal.risk, proposal.decided_by) == ("medium", "policy:all")
    assert (project / "notes.txt").read_text() == "one\n"
    # Not under a policy of reads.
    _session_id, running, shown = await wait_for_call(runtime, model, "reads")
    assert shown.status == "pending"
    text, suffix = await load_editable_text(runtime.engine, shown.proposal_id)
    assert (json.loads(text)["line"], suffix) == ("one", ".json")
    edited = await edit_action(
        runtime.engine,
        shown.proposal_id,
        shown.shown_digest,
        '{"path": "notes.txt", "line": "two"}',
    )
    await runtime.approve(edited.proposal_id)
    await asyncio.wait_for(running, 60)
    assert (project / "notes.txt").read_text() == "one\ntwo\n"


async def test_a_file_that_changes_after_its_approval_does_not_run(runtime, script, project):
    path = write_tool(project)
    await approve(runtime)
    model = script(calling("add_line", '{ path = "notes.txt", line = "one" }'))
    session_id, running, shown = await wait_for_call(runtime, model, "ask")
    # Between the approval of the call and its run.
    path.write_text(COUNT.replace("open(", "open('evil.txt', 'w') and path.open("))
    await runtime.approve(shown.proposal_id)
    await asyncio.wait_for(running, 60)
    (result,) = await read_results(runtime, session_id)
    assert "changed since the user approved it" in result
    assert not (project / "notes.txt").exists() and not (project / "evil.txt").exists()
    # And the next wave, or session, does not have it.
    usable = await runtime.store.read(runtime.engine.added.catalog.read_usable)
    assert usable == ()
    rows = await runtime.store.read(lambda c: list_rows(c, runtime.engine.added.catalog))
    assert {row.state for row in rows} == {"changed"}
    with pytest.raises(ToolChanged):
        await approve_file(
            runtime.engine.added, "project", "words.py", shown_digest="0" * 64, by="person"
        )


async def test_a_module_that_is_new_beside_the_file_asks_again(runtime, project):
    path = write_tool(project, "try:\n    import extra\nexcept ImportError:\n    pass\n" + COUNT)
    await approve(runtime)
    read = runtime.engine.added.catalog.read_usable
    assert len(await runtime.store.read(read)) == 2
    (path.parent / "extra.py").write_text("raise SystemExit\n")
    assert await runtime.store.read(read) == ()


RUNS = (
    ("count_words", '{ path = "calc.py" }', "confirmed"),
    ("add_line", '{ path = "notes.txt", line = "one" }', "failed_terminal"),
)


async def test_nothing_that_writes_runs_twice(runtime, project, tmp_path, monkeypatch):
    write_tool(project)
    await approve(runtime)

    async def die(*_: object, **__: object) -> None:
        (project / "notes.txt").write_text("one\n")
        raise KeyboardInterrupt

    for name, arguments, expected in RUNS:
        (tmp_path / f"{name}.toml").write_text(calling(name, arguments))
        model = f"script:{tmp_path / name}.toml"
        sid = await runtime.start("implement it", model=model, policy="all", interactive=False)
        with monkeypatch.context() as patched:
            patched.setattr("cockpit.act.own_tools.own_tool_adapter.run_child", die)
            patched.setattr("cockpit.act.dispatch_actions.current_process", lambda: "1:dead")
            with pytest.raises(KeyboardInterrupt):
                await runtime.run(sid)
        (action,) = await runtime.store.read(lambda c, s=sid: outbox.select_for_session(c, s))
        assert action.phase == "dispatched"
        await runtime.run(sid)
        (action,) = await runtime.store.read(lambda c, s=sid: outbox.select_for_session(c, s))
        assert action.phase == expected
        assert (project / "notes.txt").read_text() == "one\n"


async def test_a_tool_of_the_user_is_there_in_every_project(runtime, project, tmp_path):
    folder = tmp_path / "user" / "tools"
    folder.mkdir(parents=True)
    (folder / "words.py").write_text(write_tool(project).read_text())
    await approve(runtime, place="user")
    await approve(runtime)
    usable = await runtime.store.read(runtime.engine.added.catalog.read_usable)
    # The user's names win.
    assert [(each.place, each.name) for each in usable] == [
        ("user", "add_line"),
        ("user", "count_words"),
    ]
