"""What small models do: they print calls, invent tools, and give one text where a list is due."""

from __future__ import annotations

import json

from loop_runs import read_details, run_to_end
from scenario import turn

from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.sessions import plans, waves


def printed(name: str, **arguments: object) -> str:
    return json.dumps({"name": name, "arguments": arguments})


async def test_printed_calls_are_made_and_an_unknown_tool_is_answered(runtime, script, project):
    read = printed("request_context", purpose="p", question="q", scope="file:calc.py")
    edit = printed("edit_file", path="calc.py", old="a - b", new="a + b")
    end = printed("finish", status="done", summary="ok")
    turns = (
        turn(text=f"```json\n{read}\n```"),
        turn("current_directory", 'called = ["request_context"]'),
        turn(when='contains = ["The nearest is request_context"]', text=edit),
        turn(when='called = ["edit_file"]', text=f"<tool_call>{end}</tool_call>"),
    )
    ended = await run_to_end(runtime, script("".join(turns)))
    assert ended.result == {"status": "done", "summary": "ok"}, ended.result
    assert "a + b" in (project / "calc.py").read_text()
    done = await read_details(runtime, ended.session_id, ModelCompleted)
    assert [each.calls_as_text or 0 for each in done] == [1, 0, 1, 1]
    first = (await runtime.store.read(lambda c: waves.select_for_session(c, ended.session_id)))[0]
    plan = await runtime.store.read(lambda c: plans.find(c, first.wave_id))
    assert plan.text == "", "the call is told once"


async def test_a_printed_call_of_no_offered_tool_stays_text(runtime, script):
    ended = await run_to_end(runtime, script(turn(text=printed("sing", song="x"))))
    assert ended.result["status"] == "needs_answer"
