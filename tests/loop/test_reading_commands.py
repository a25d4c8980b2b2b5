"""A command that only reads is asked for, masked and stored like any other context."""

from __future__ import annotations

import asyncio

from cockpit.store.context import facts
from cockpit.store.sessions import context_requests, outbox, proposals

SCENARIO = """
[[turn]]
[[turn.call]]
name = "run"
arguments = { command = "%s", reason = "see what add does" }
[[turn]]
when = { called = ["run"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Seen." }
"""


async def finished(runtime, model, policy):
    session_id = await runtime.start("fix calc", model=model, policy=policy, interactive=False)
    return session_id, await asyncio.wait_for(runtime.run(session_id), 60)


def exchange(connection, session_id):
    """Return the result of the command, as the model reads it."""
    (fact_id,) = connection.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=? AND source_type='exchange'",
        (session_id,),
    ).fetchone()
    return facts.load_texts(connection, [fact_id])[fact_id].full


async def test_a_command_that_reads_waits_on_the_panel_of_context(opened, script, project):
    (project / "calc.py").write_text("KEY = 'ghp_" + "a1B2" * 9 + "'\n\n\ndef add(a, b): ...\n")
    async with opened() as runtime:
        model = script(SCENARIO % "cat calc.py")
        session_id, ended = await finished(runtime, model, "reads")
        assert ended.result["status"] == "done"

        def stored(connection):
            (proposal,) = proposals.select_for_session(connection, session_id)
            (request,) = context_requests.select_by_status(connection, session_id, "fetched")
            ((fact_id,),) = connection.execute(
                "SELECT fact_id FROM session_facts WHERE session_id=? AND source_type='file'",
                (session_id,),
            ).fetchall()
            text = facts.load_texts(connection, [fact_id])[fact_id].full
            actions = outbox.select_for_session(connection, session_id)
            return proposal, request, text, actions, exchange(connection, session_id)

        proposal, request, text, actions, result = await runtime.store.read(stored)
        assert (proposal.kind, proposal.decided_by) == ("context", "policy:reads")
        assert (request.purpose, request.approved) == ("see what add does", ("file:calc.py",))
        assert actions == []  # nothing ran
        assert "def add" in text
        assert "ghp_" not in text + result
        assert "so instead you asked for file:calc.py" in result


async def test_a_command_whose_file_the_gateway_refuses_says_why(opened, script):
    async with opened() as runtime:
        session_id, _ = await finished(runtime, script(SCENARIO % "head /etc/hosts"), "all")
        result = await runtime.store.read(lambda c: exchange(c, session_id))
        assert "it is absolute; name it from the project's root" in result


async def test_a_command_that_no_scope_item_replaces_says_why(opened, script):
    async with opened() as runtime:
        session_id, ended = await finished(
            runtime, script(SCENARIO % "git show HEAD:calc.py"), "all"
        )
        result = await runtime.store.read(lambda c: exchange(c, session_id))
        assert "Ask for file:calc.py, or for diff:HEAD in calc.py" in result
        assert await runtime.store.read(lambda c: proposals.select_for_session(c, session_id)) == []
        assert ended.status == "completed"
