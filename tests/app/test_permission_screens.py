"""Permissions of external agents on the screen: their cards, the rows of the queue, and the two keys."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from app_world import look, on_screen, settled, text_of, until, write
from permission_scenes import Agents

from cockpit.app.dialogs.answer_form import AnswerForm
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.app.dialogs.whole_change import WholeChange
from cockpit.loop.permissions.permission_rules import load_rules
from cockpit.loop.permissions.read_tool_request import read_claude_tool
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow


@pytest.fixture
def agents(still, project):
    return Agents(still.store, project)


def status(still, proposal_id):
    return still.store.read_now(lambda c: proposals.load(c, proposal_id))


def all_of(still, session_id):
    return still.store.read_now(lambda c: proposals.select_for_session(c, session_id))


async def press(pilot, keys: Sequence[str]) -> None:
    """Press ``keys``; texts are written."""
    for key in keys:
        words = key.partition("type:")[2]
        await (write(pilot, words) if words else pilot.press(key))
    await settled(pilot)


async def reaches(pilot, still, proposal_id: str, wanted: str) -> None:
    await until(pilot, lambda: status(still, proposal_id).status == wanted)


async def follow(pilot, session_id: str) -> None:
    """Follow a session, with an empty prompt, until its proposal is armed."""
    pilot.app.main.prompt.put("")
    pilot.app.attach(session_id)
    await look(pilot)


ANSWERS = (
    ("edit", (["enter"], "approved", "")),
    ("edit", (["escape", "type:ninja", "enter"], "rejected", "ninja")),
    ("edit", (["escape", "type:no", "escape"], "pending", ""), (["escape", "enter"], "rejected", "")),
    ("change", (["escape", "enter"], "pending", ""),
     (["type:shorter", "enter"], "discussed", "shorter")),
)  # fmt: skip


async def test_two_keys_answer_and_one_more_answers_from_now_on(still, agents):
    async with on_screen(still, size=(100, 30)) as (pilot, _, screen):
        for number, (what, *steps) in enumerate(ANSWERS):
            session_id, name = agents.begin("claude", f"task {number}"), f"p-{number}"
            if what == "change":
                agents.finish_work(session_id, name)
            else:
                agents.ask(session_id, name, agents.edit())
            await follow(pilot, session_id)
            for place, (keys, decided, reason) in enumerate(steps):
                if place:
                    screen.prompt.put("")
                    await look(pilot)
                await press(pilot, keys)
                await reaches(pilot, still, name, decided)
                by = "" if decided == "pending" else "person"
                found = status(still, name)
                assert (found.reason, found.decided_by or "") == (reason, by), (what, keys)

        # From now on.
        session_id = agents.begin("claude", "call a server")
        agents.ask(session_id, "p-server", agents.server())
        await follow(pilot, session_id)
        screen.panes.proposals.focus()
        await look(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickOne))
        await pilot.press("enter")
        await reaches(pilot, still, "p-server", "approved")
        rules = still.engine.settings.user_dir
        await until(pilot, lambda: len(load_rules(rules)) == 1)
    assert load_rules(rules)[0].what == "mcp__tracker__create_issue"


FORMS = (
    (["enter", "down", "enter", "space", "ctrl+s"], [[1], "", [0], ""]),
    (
        ["enter", "space", "tab", "type:mine", "ctrl+s", "tab", "tab", "type:x", "ctrl+s"],
        [[], "mine", [], "x"],
    ),
)


async def test_a_question_is_answered_in_its_form(still, agents):
    """A form that lacks an answer or is left decides nothing; one without answers says where they go."""
    async with on_screen(still, size=(100, 30)) as (pilot, app, _):
        for number, (keys, answers) in enumerate(FORMS):
            session_id, name = agents.begin("claude", f"task {number}"), f"p-{number}"
            agents.ask(session_id, name, agents.questions())
            await follow(pilot, session_id)
            if number == 0:
                await press(pilot, ["enter", "ctrl+s"])
                assert isinstance(app.screen, AnswerForm)
                await press(pilot, ["escape"])
                assert not isinstance(app.screen, AnswerForm)
                assert status(still, name).status == "pending"
                await look(pilot)
            await press(pilot, keys)
            await reaches(pilot, still, name, "discussed")
            await until(pilot, lambda: not isinstance(app.screen, AnswerForm))
            (revision,) = [each for each in all_of(still, session_id) if each.revises == name]
            one, two = revision.body["answers"]
            assert [one["picked"], one["text"], two["picked"], two["text"]] == answers
            assert (revision.status, revision.decided_by) == ("approved", "person")
        hook = agents.begin("claude", "hook")
        agents.ask(hook, "p-hook", agents.questions("hook"))
        await follow(pilot, hook)
        await press(pilot, ["enter"])
        await until(pilot, lambda: any("own terminal" in n.message for n in app._notifications))
        assert status(still, "p-hook").status == "pending"


async def test_a_huge_change_is_drawn_line_by_line_on_the_card_and_in_its_view(still, agents):
    session_id = agents.begin("claude", "write a lot")
    text = "".join(f"line {number} \x1b[31m\n" for number in range(3_000))
    request = read_claude_tool("Write", {"file_path": "big.txt", "content": text})
    agents.ask(session_id, "p-1", request)
    async with on_screen(still, session_id, size=(120, 40), ready=look) as (pilot, _, screen):
        panel = screen.panes.proposals
        await until(pilot, lambda: panel.reading.lines > 3_000)
        assert not panel.reading.is_whole
        panel.focus()
        await look(pilot)
        await pilot.press("enter")
        await look(pilot)
        assert status(still, "p-1").status == "pending", "it was not read to its end"
        assert panel.reading.shown < 200
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, WholeChange))
        (drawn,) = pilot.app.screen.query("FileDiff")
        await until(pilot, lambda: drawn.size.height > 3_000)
        await pilot.press("G")
        await until(pilot, lambda: "line 2999" in text_of(pilot.app))
        assert "\x1b" not in text_of(pilot.app)
