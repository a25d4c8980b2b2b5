"""The memory of a task: limited however long it is, and hostile text is only text."""

from __future__ import annotations

from cockpit.app.state.task_rows import LISTED_MOST, READ_MOST, handoff_rows, wip_rows
from cockpit.app.state.work import TaskState
from cockpit.store.backlog.handoffs import Handoff

TASK = TaskState("T-1")


def told(rows) -> str:
    return "\n".join(value.plain if value else name for name, value in rows)


def handoff(text: str) -> Handoff:
    fields = dict.fromkeys(Handoff.__struct_fields__, "")
    return Handoff(
        **{**fields, "files_changed": (text[:9],), "summary": text[:9], "full_details": text}
    )


def test_long_lists_and_texts_are_cut_and_that_is_said():
    many = LISTED_MOST + 7
    wip = {
        "phase": "testing",
        "files_modified": [f"src/{n}.py" for n in range(many)],
        "decisions": [{"decision": f"decision {n}", "reason": ""} for n in range(many)],
        "errors": [{"type": "e", "file": "", "message": f"message {n}"} for n in range(many)],
    }
    text = told(wip_rows(TASK, wip))
    assert "src/0.py" in text
    assert f"src/{many - 1}.py" not in text
    assert "… 7 more" in text
    assert "decision 6\n" not in text
    assert f"decision {many - 1}" in text
    assert f"message {many - 1}" in text
    assert text.count("… 7 earlier") == 2
    rows = handoff_rows(TASK, handoff("x" * (READ_MOST + 5)), details=True)
    assert "5 more characters: `cockpit tasks handoff T-1`" in told(rows)


def test_no_escape_of_a_task_reaches_the_terminal():
    bad = "\x1b]52;c;x\x07\u202e[red]"
    wip = {
        "phase": bad, "next_step": bad, "context": bad, "last_commit": bad, "files_modified": [bad],
        "decisions": [{"decision": bad, "reason": bad}],
        "errors": [{"type": bad, "file": bad, "message": bad}],
        "test_results": {"ran": True, "failing_test": bad},
    }  # fmt: skip
    text = told([*wip_rows(TASK, wip), *handoff_rows(TASK, handoff(bad), details=True)])
    assert text.count("[red]") > 9
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
