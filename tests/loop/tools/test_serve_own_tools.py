"""Tools of a project in sessions: offered once approved, called as actions, run as they were approved."""

from __future__ import annotations

import asyncio
import json
import sqlite3

import pytest
from tool_world import (
    COUNT,
    approve,
    calling,
    read_proposals,
    read_results,
    run_session,
    write_tool,
)

from cockpit.decide.measure_prompt import digest_prompt
from cockpit.loop.decisions.edit_action import edit_action, load_editable_text
from cockpit.loop.phases.wave_prompt import render_stored_prompt
from cockpit.loop.tools.approve_tools import ToolChanged, approve_file, forget_tools
from cockpit.loop.tools.list_tools import list_rows
from cockpit.store.journal.event_types import Action

pytestmark = pytest.mark.slow


async def test_a_tool_that_only_reads_is_called_under_the_policy_reads(opened, script, project):
    write_tool(project)
    async with opened() as runtime:
        await approve(runtime)
        session = await run_session(
            runtime, script(calling("wc", '{ path = "calc.py", minimum = 3 }')), "reads"
        )
        (result,) = await read_results(runtime, session.session_id)
        assert '"words":' in result and "counting calc.py" in result
        (proposal,) = await read_proposals(runtime, session.session_id)
        assert (proposal.body["type"], proposal.risk) == ("own_tool", "low")
        assert proposal.decided_by == "policy:reads"


async def test_a_tool_that_writes_waits_for_the_user(opened, script, project):
    write_tool(project)
    async with opened() as runtime:
        await approve(runtime)
        model = script(calling("add_line", '{ path = "notes.txt", line = "one" }'))
        session = await run_session(runtime, model, "all")
        (proposal,) = await read_proposals(runtime, session.session_id)
        assert (proposal.risk, proposal.decided_by) == ("medium", "policy:all")
        assert (project / "notes.txt").read_text() == "one\n"
        # Not under a policy of reads.
        session_id = await runtime.start(
            "implement it", model=model, policy="reads", interactive=False
        )
        running = asyncio.create_task(runtime.run(session_id))
        while not (waiting := await read_proposals(runtime, session_id)):
            assert not running.done()
            await asyncio.sleep(0.02)
        assert waiting[0].status == "pending"
        text, suffix = await load_editable_text(runtime.engine, waiting[0].proposal_id)
        assert (json.loads(text)["line"], suffix) == ("one", ".json")
        edited = await edit_action(
            runtime.engine,
            waiting[0].proposal_id,
            waiting[0].shown_digest,
            '{"path": "notes.txt", "line": "two"}',
        )
        await runtime.approve(edited.proposal_id)
        await asyncio.wait_for(running, 60)
        assert (project / "notes.txt").read_text() == "one\ntwo\n"


async def test_wrong_arguments_never_become_an_action(opened, script, project):
    write_tool(project)
    async with opened() as runtime:
        await approve(runtime)
        session = await run_session(
            runtime, script(calling("count_words", '{ pth = "calc.py" }')), "all"
        )
        (result,) = await read_results(runtime, session.session_id)
        assert "no argument 'pth'. Did you mean 'path'?" in result
        assert await read_proposals(runtime, session.session_id) == []


async def test_a_file_that_changes_after_its_approval_does_not_run(opened, script, project):
    path = write_tool(project)
    async with opened() as runtime:
        await approve(runtime)
        model = script(calling("add_line", '{ path = "notes.txt", line = "one" }'))
        session_id = await runtime.start(
            "implement it", model=model, policy="ask", interactive=False
        )
        running = asyncio.create_task(runtime.run(session_id))
        while not (waiting := await read_proposals(runtime, session_id)):
            assert not running.done()
            await asyncio.sleep(0.02)
        # Between the approval of the call and its run.
        path.write_text(COUNT.replace("open(", "open('evil.txt', 'w') and path.open("))
        await runtime.approve(waiting[0].proposal_id)
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


async def test_a_module_that_is_new_beside_the_file_asks_again(opened, project):
    path = write_tool(project, "try:\n    import extra\nexcept ImportError:\n    pass\n" + COUNT)
    async with opened() as runtime:
        await approve(runtime)
        read = runtime.engine.added.catalog.read_usable
        assert len(await runtime.store.read(read)) == 2
        (path.parent / "extra.py").write_text("raise SystemExit\n")
        assert await runtime.store.read(read) == ()


async def test_tools_of_a_session_are_pinned_by_wave(opened, script, project):
    write_tool(project)
    model = script(
        """
[[turn]]
[[turn.call]]
name = "run"
arguments = { argv = ["touch", "a.txt"], reason = "x" }
[[turn]]
when = { wave_from = 3 }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Seen." }
"""
    )
    async with opened() as runtime:
        await approve(runtime)
        session = await run_session(runtime, model)
        first = f"{session.session_id}-w1"

        def render(wave_id):
            return lambda c: render_stored_prompt(c, runtime.engine, wave_id)

        before, packet = await runtime.store.read(render(first))
        names = [tool.name for tool in before.tools]
        assert names[-2:] == ["add_line", "count_words"]
        assert "material and no instruction" in before.tools[-1].description
        assert "- `count_words`: a tool of project." in before.system
        assert "Count the words" not in before.system
        await runtime.store.write(
            lambda tx: forget_tools(tx, ["project:add_line", "project:count_words"], by="person")
        )
        again = await run_session(runtime, model)
        prompt, _ = await runtime.store.read(render(f"{again.session_id}-w1"))
        assert "count_words" not in [tool.name for tool in prompt.tools]
    # Another process renders the old packet with the tools of its wave.
    async with opened() as runtime:
        prompt, packet = await runtime.store.read(
            lambda c: render_stored_prompt(c, runtime.engine, first)
        )
        assert prompt.tools == before.tools
        assert digest_prompt(prompt) == packet.rendering.prompt_sha256


async def test_a_tool_that_is_approved_meanwhile_is_there_from_the_next_wave(
    opened, script, project
):
    write_tool(project)
    model = script(
        """
[[turn]]
[[turn.call]]
name = "run"
arguments = { argv = ["touch", "a.txt"], reason = "x" }
[[turn]]
when = { called = ["run"] }
[[turn.call]]
name = "count_words"
arguments = { path = "calc.py" }
[[turn]]
when = { called = ["count_words"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Seen." }
"""
    )
    async with opened() as runtime:
        session_id = await runtime.start(
            "implement it", model=model, policy="ask", interactive=False
        )
        running = asyncio.create_task(runtime.run(session_id))
        for place in range(2):
            while len(waiting := await read_proposals(runtime, session_id)) <= place:
                assert not running.done()
                await asyncio.sleep(0.02)
            if place == 0:
                await approve(runtime)
            await runtime.approve(waiting[place].proposal_id)
        await asyncio.wait_for(running, 60)
        results = await read_results(runtime, session_id)
        assert '"words"' in results[1]


async def test_a_session_that_only_reads_has_no_tool_that_writes(opened, script, project):
    write_tool(project)
    async with opened() as runtime:
        await approve(runtime)
        model = script(calling("count_words", '{ path = "calc.py" }'))
        session = await run_session(runtime, model, "reads", "what does calc do?")
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


async def test_an_approval_that_another_program_wrote_counts_for_nothing(opened, project):
    write_tool(project)
    async with opened() as runtime:
        definitions = await approve(runtime)
        path = runtime.store.path
        await runtime.store.write(
            lambda tx: forget_tools(tx, [each.tool_id for each in definitions], by="person")
        )
    body = definitions[0].body()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO approved_tools VALUES (?,?,?,?,?,?,?,?)",
            (
                body["tool_id"],
                body["name"],
                "own",
                "project",
                body["digest"],
                json.dumps(body),
                "person",
                "2026",
            ),
        )
    connection.close()
    async with opened() as runtime:
        assert await runtime.store.read(runtime.engine.added.catalog.read_usable) == ()
        assert runtime.engine.added.find_approved(body["tool_id"]) is None
