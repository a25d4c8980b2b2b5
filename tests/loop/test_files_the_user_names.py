"""Files that the user names in typed words are granted by that; nobody else's words grant any."""

from __future__ import annotations

import pytest
from loop_calc import git
from loop_runs import pending, running
from scenario import finish

from cockpit.loop.runtime import Runtime
from cockpit.loop.views.event_text import event_line
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.journal import journal
from cockpit.store.journal.details.waves import ContextRequested

pytestmark = pytest.mark.slow

WORDS = (
    "fix add in calc.py and see @test_calc.py, not notes.md or .env\nFile calc.py\n  test_calc.py"
)


async def read_files(runtime: Runtime, sid: str) -> set[str]:
    """The files that a session has facts of."""
    query = "SELECT source_ref FROM session_facts WHERE session_id=? AND source_type='file'"
    return {
        ref for (ref,) in await runtime.store.read(lambda c: c.execute(query, (sid,)).fetchall())
    }


@pytest.mark.parametrize(
    ("is_typed", "granted"),
    [
        (True, {"file:calc.py", "file:test_calc.py"}),
        (False, set()),
    ],
)
async def test_what_the_user_names_is_read_in_the_first_wave(
    opened, script, project, is_typed, granted
):
    (project / "notes.md").write_text("not tracked\n")
    (project / ".env").write_text("KEY=1\n")
    async with opened() as runtime:
        sid = await runtime.start(
            WORDS, model=script(finish()), policy="ask", interactive=False, is_typed=is_typed
        )
        await runtime.run(sid)
        assert await read_files(runtime, sid) == granted
        query = "SELECT count(*) FROM context_requests WHERE decided_by='person:named'"
        (count,) = await runtime.store.read(lambda c: c.execute(query).fetchone())
        assert count == bool(granted)


async def test_a_path_in_pasted_lines_is_proposed_and_a_long_file_is_not(runtime, script, project):
    (project / "long.py").write_text("x = 1  # a line of some length\n" * 4_000)
    (project / "pkg").mkdir()
    (project / "pkg" / "deep.py").write_text("x = 1  # a line of some length\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Long")
    words = (
        f"why?\nTraceback:\n  {project}/calc.py:3\n  long.py test_calc.py /etc/x.py /opt/calc.py"
    )
    words += '\n  File "/usr/lib/python3/dist-packages/pkg/deep.py", line 1'
    async with running(runtime, script(finish()), policy="ask", words=words, is_typed=True) as (
        sid,
        work,
    ):
        proposal = await pending(runtime, "context")
        items = {each["item"]: each["tokens"] for each in proposal.body["items"]}
        assert list(items) == ["file:calc.py", "file:test_calc.py", "file:pkg/deep.py"]
        assert all(5 < tokens < 60 for tokens in items.values())
        await runtime.approve(proposal.proposal_id, narrowed=["file:calc.py"])
        await work
        assert await read_files(runtime, sid) == {"file:calc.py"}


async def test_what_is_discussed_is_told_and_nobody_is_asked_where_nobody_waits(
    runtime, script, project
):
    model = script(finish())
    async with running(runtime, model, policy="ask", words="x\ncalc.py") as (sid, work):
        proposal = await pending(runtime, "context")
        await runtime.discuss(proposal.proposal_id, words="only the test matters")
        await work
        prompt, _ = await runtime.rendered_prompt(f"{sid}-w1")
        assert "only the test matters" in str(prompt.messages)
        assert await read_files(runtime, sid) == set()
    headless = await runtime.start("x\ncalc.py", model=model, policy="ask", interactive=False)
    assert (await runtime.run(headless)).result["status"] == "done"


async def test_what_cockpit_grants_is_journalled_with_its_true_size(runtime, script):
    sid = await runtime.start("fix calc.py", model=script(finish()), is_typed=True)
    await runtime.run(sid)
    rows = await runtime.store.read(lambda c: list(journal.rows(c, session_id=sid)))
    requests = [row for row in rows if row.action == "context.requested"]
    assert [(row.actor, row.read(ContextRequested).purpose) for row in requests] == [
        ("cockpit:frame", "the project's frame"),
        ("person:named", "what you named"),
    ]
    (frame,), (file,) = (row.read(ContextRequested).items for row in requests)
    (line,) = (event_line(row.detail) for row in requests[1:])
    assert line.text == "context that you named: file:calc.py" and "about 0" not in line.remark
    assert 50 < frame.tokens < 700 and 5 < file.tokens < 60
    assert (await runtime.store.read(lambda c: recompile_packet(c, f"{sid}-w1"))).ok
    prompt, _ = await runtime.rendered_prompt(f"{sid}-w1")
    assert "branch main; clean\nlast commits, newest first:\n- Add calc" in str(
        prompt.messages[1].text
    )
