"""Files that the user names in typed words are granted by that; nobody else's words grant any."""

from __future__ import annotations

import pytest
from loop_calc import git
from scenario import finish

pytestmark = pytest.mark.slow

WORDS = (
    "fix add in calc.py and see @test_calc.py, not notes.md or .env\nFile calc.py\n  test_calc.py"
)


@pytest.mark.parametrize(
    ("is_typed", "setting", "granted"),
    [
        (True, "grant", {"file:calc.py", "file:test_calc.py"}),
        (True, "ask", set()),
        (False, "grant", set()),
    ],
)
async def test_what_the_user_names_is_read_in_the_first_wave(
    opened, script, project, is_typed, setting, granted
):
    (project / "notes.md").write_text("not tracked\n")
    (project / ".env").write_text("KEY=1\n")
    async with opened(named_files=setting) as runtime:
        sid = await runtime.start(
            WORDS, model=script(finish()), policy="ask", interactive=False, is_typed=is_typed
        )
        await runtime.run(sid)
        query = "SELECT source_ref FROM session_facts WHERE session_id=? AND source_type='file'"
        rows = await runtime.store.read(lambda c: c.execute(query, (sid,)).fetchall())
        assert {ref for (ref,) in rows} == granted
        query = "SELECT count(*) FROM context_requests WHERE decided_by='person:named'"
        (count,) = await runtime.store.read(lambda c: c.execute(query).fetchone())
        assert count == bool(granted)


async def test_a_path_behind_the_first_line_and_a_long_file_grant_nothing(opened, script, project):
    (project / "long.py").write_text("x = 1  # a line of some length\n" * 4_000)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Long")
    async with opened() as runtime:
        sid = await runtime.start(
            "fix long.py\nTraceback:\n  File calc.py",
            model=script(finish()),
            is_typed=True,
            policy="reads",
        )
        await runtime.run(sid)
        query = "SELECT count(*) FROM session_facts WHERE session_id=? AND source_type='file'"
        (count,) = await runtime.store.read(lambda c: c.execute(query, (sid,)).fetchone())
        assert count == 0
