"""One table of states: what stands in it, that the documentation has it, and that there is no second one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import cockpit
from cockpit.loop.views.event_text import event_line, name_speaker
from cockpit.loop.views.state_signs import state_sign, state_signs
from cockpit.store.journal.details.proposals import ProposalDiscussed
from cockpit.store.journal.details.sessions import SessionCompleted
from cockpit.store.journal.details.waves import ModelRetried
from cockpit.store.sessions.proposals import EDITED

ROOT = Path(cockpit.__file__).parent
SIGNS = frozenset("▶■□◑✗✘✔◌")
SPELLED = re.compile(rf"[{''.join(sorted(SIGNS))}]|\\[uUN]")
"""A sign in the text of a module, or a character by its number or name: without, it need not be parsed."""


def test_a_state_has_one_sign_and_one_colour_wherever_it_stands():
    looks = {}
    for states in state_signs().values():
        for state, look in states.items():
            looks.setdefault(state, set()).add((look.sign, look.tone))
    assert looks["blocked"] == {("■", "bad")}
    assert {len(looks[each]) for each in ("running", "blocked", "failed", "stopped")} == {1}
    by_look = {}
    for states in state_signs().values():
        for look in states.values():
            by_look.setdefault(look.sign, set()).add(look.tone)
    assert by_look["■"] == {"bad"}
    assert by_look["✔"] == {"good"}


def test_an_unknown_state_is_shown_by_its_name():
    assert (state_sign("task", "on_hold").sign, state_sign("task", "on_hold").word) == (
        "·",
        "on hold",
    )


def test_the_end_of_a_session_has_the_sign_of_its_state():
    for status, sign in (("done", "✔"), ("blocked", "■"), ("limit", "!"), ("needs_answer", "?")):
        line = event_line(SessionCompleted(status=status, summary="why"))
        assert line is not None
        assert line.sign == sign


def test_retries_are_counted():
    line = event_line(ModelRetried(model="m", reason="overloaded", attempt=3, wait_s=4.0))
    assert line is not None
    assert line.plain("") == "↻ overloaded · failed 3 times, again in 4 s"


def test_nobody_typed_the_task_of_a_role():
    assert name_speaker("person") == "you"
    assert name_speaker("person", "quality_reviewer") == "task for the quality reviewer"


def test_the_documentation_has_the_table():
    page = (ROOT.parent / "docs/reference/screen.md").read_text(encoding="utf-8")
    for kind, states in state_signs().items():
        for look in states.values():
            row = f"| {kind} | {look.sign} | {look.word} |"
            assert row in page, row


def test_no_other_module_has_a_table_of_signs():
    """A dictionary from states to signs anywhere else would disagree with this one sooner or later."""
    others = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.name == "state_signs.py" or "learn" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        if not SPELLED.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Dict):
                continue
            signs = [
                each.value
                for value in node.values
                for each in ast.walk(value)
                if isinstance(each, ast.Constant) and each.value in SIGNS
            ]
            if len(signs) > 1:
                others.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert others == []


def test_an_edit_is_called_an_edit():
    line = event_line(
        ProposalDiscussed(
            proposal_id="p-1", kind="action", title="run", decided_by="person", shown_digest="d",
            words=EDITED,
        )
    )  # fmt: skip
    assert line is not None
    assert line.text == "edited by you"
