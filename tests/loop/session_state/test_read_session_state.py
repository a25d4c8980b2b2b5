"""The state of a session: when a read is redundant, and that another process derives the same."""

from __future__ import annotations

import pytest
from loop.conftest import FIX

from cockpit.backlog.service import create_task
from cockpit.loop.session_state.read_session_state import FileChanged, FileRead, SessionState
from cockpit.loop.session_state.state_overview import read_state_overview
from cockpit.store.db.transaction import Tx

pytestmark = pytest.mark.slow

READ = FileRead("a.py", "sha", 1, 9, wave=2, is_current=True, in_packet=True)


@pytest.mark.parametrize(
    ("reads", "changes", "redundant"),
    [
        ((), (), False),
        ((READ,), (), True),
        ((FileRead("a.py", "sha", 1, 9, 2, is_current=False, in_packet=True),), (), False),
        ((FileRead("a.py", "sha", 1, 9, 2, is_current=True, in_packet=False),), (), False),
        ((READ,), (FileChanged("a.py", "edit_file", 2),), False),
        ((READ,), (FileChanged("a.py", "edit_file", 1),), True),
        ((READ,), (FileChanged("a.py", "agent"),), False),
        ((READ,), (FileChanged("b.py", "edit_file", 2),), True),
    ],
)
def test_a_read_is_redundant_only_while_its_newest_version_is_in_the_packet(
    reads, changes, redundant
):
    state = SessionState("s-1", reads, changes)
    assert state.is_redundant_read("a.py") is redundant
    assert not state.is_redundant_read("never.py")


async def test_a_handover_shows_what_earlier_sessions_of_the_task_left(opened, script):
    fix = script(FIX.replace(r"\"test\", \"-d\", \".\"", r"\"python3\", \"-m\", \"unittest\""))
    async with opened(policy="all") as runtime:
        first = await runtime.start("Fix the bug in calc.py", model=fix, interactive=False)
        await runtime.run(first)
        second = await runtime.start("Go on with calc.py", model=fix, interactive=False)
        store = runtime.store
        read = await store.read(lambda c: read_state_overview(c, second))
        assert (read.rows, read.earlier) == ((), ()), "sessions without a task hand nothing over"

        def join(tx: Tx) -> None:
            task = create_task(tx, "Fix calc", by="person")
            tx.execute("UPDATE sessions SET task_id=?", (task.task_id,))

        await store.write(join)
        read = await store.read(lambda c: read_state_overview(c, second))
        rows = {(row.section, row.name): row for row in read.rows}
        assert read.earlier == (first,)
        assert {row.session_id for row in read.rows} == {first}
        assert ("changed", "calc.py") in rows and ("read", "calc.py") in rows
        assert rows["read", "calc.py"].state == "", "it is in no packet of the session itself"
        assert [row.section for row in read.rows][-1] == "tests"
