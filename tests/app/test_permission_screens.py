"""Permissions of external agents on the screen: their cards, the rows of the queue, and the two keys."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from app_scenes import Scene
from app_world import SIZES, drawn, look, screen_of, settled, show_proposal, until
from permission_scenes import Agents

import themes
from cockpit.app.application import CockpitApp
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


@pytest.fixture
def picture(still, snap_compare):
    """Compare the screen, following ``session_id``, with its picture."""

    def compare(session_id="", *, size=(160, 45), theme=themes.DEFAULT, keys=()):
        app = CockpitApp(still, theme=theme)

        async def before(pilot):
            if session_id:
                app.attach(session_id)
            await look(pilot)
            for key in keys:
                await pilot.press(key)
                await look(pilot)

        return snap_compare(app, terminal_size=size, run_before=before)

    return compare


@pytest.mark.parametrize("what", ["edit", "command", "server", "questions", "worktree", "several"])
async def test_card(still, pictures, agents, what):
    if what == "several":
        session_id = several(still, agents)
    else:
        session_id = agents.begin("claude", "reset the backoff")
        if what == "worktree":
            agents.finish_work(session_id, "p-1")
        else:
            agents.ask(session_id, "p-1", getattr(agents, what)())
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        app.attach(session_id)
        await pictures(pilot, show_proposal)


@pytest.mark.parametrize("theme", ["cockpit-light", "cockpit-high-contrast"])
def test_several_agents_in_themes(picture, still, agents, theme):
    assert picture(several(still, agents), theme=theme)


async def test_several_agents_wait_in_other_sessions(pictures, still, agents):
    several(still, agents)
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        await pictures(pilot, look)


def test_several_agents_wait_in_one_list(picture, still, agents):
    several(still, agents)
    assert picture(size=(120, 30), keys=["alt+q"])


def several(still, agents) -> str:
    """Two agents on two branches, and the built-in agent; the newest is two minutes old."""
    claude = agents.begin("claude", "reset the backoff")
    codex = agents.begin("codex", "a test for the reset", "retry-test")
    agents.ask(claude, "p-1", agents.edit())
    still.store.clock.advance(95)
    agents.ask(claude, "p-2", agents.command())
    agents.ask(codex, "p-3", agents.patch(), "retry-test")
    still.store.clock.advance(40)
    Scene(still.store, agents.root).begin().wave("observing", "orienting", "deciding").ask()
    return claude


def status(still, proposal_id):
    return still.store.read_now(lambda c: proposals.load(c, proposal_id))


def all_of(still, session_id):
    return still.store.read_now(lambda c: proposals.select_for_session(c, session_id))


@asynccontextmanager
async def run(still, agents, session_id, keys):
    """Press ``keys`` on the card of ``p-1``; texts are typed."""
    app = CockpitApp(still)
    async with app.run_test(size=(120, 40)) as pilot:
        app.attach(session_id)
        await look(pilot)
        for key in keys:
            if key.startswith("type:"):
                for letter in key.removeprefix("type:"):
                    await pilot.press("space" if letter == " " else letter)
                await settled(pilot)
            else:
                await pilot.press(key)
                await settled(pilot)
        await settled(pilot)
        yield pilot


@pytest.mark.parametrize(
    ("keys", "decided", "reason"),
    [
        (["enter"], "approved", ""),
        (["escape", "type:use ninja", "enter"], "rejected", "use ninja"),
        (["escape", "enter"], "rejected", ""),
        (["escape", "escape"], "pending", ""),
    ],
)
async def test_two_keys_answer(still, agents, keys, decided, reason):
    session_id = agents.begin("claude", "reset the backoff")
    agents.ask(session_id, "p-1", agents.edit())
    async with run(still, agents, session_id, keys) as pilot:
        await until(pilot, lambda: status(still, "p-1").status == decided)
    proposal = status(still, "p-1")
    by = "" if decided == "pending" else "person"
    assert (proposal.status, proposal.reason, proposal.decided_by or "") == (decided, reason, by)


@pytest.mark.parametrize(
    ("keys", "decided", "reason"),
    [
        (["enter"], "approved", ""),
        (["escape", "type:shorter", "enter"], "discussed", "shorter"),
        (["ctrl+x", "enter"], "rejected", ""),
        (["escape", "escape"], "pending", ""),
        (["escape", "enter"], "pending", ""),
    ],
)
async def test_two_keys_answer_to_a_whole_change(still, agents, keys, decided, reason):
    session_id = agents.begin("claude", "reset the backoff")
    agents.finish_work(session_id, "p-1")
    async with run(still, agents, session_id, keys) as pilot:
        await until(pilot, lambda: status(still, "p-1").status == decided)
    assert (status(still, "p-1").status, status(still, "p-1").reason) == (decided, reason)


async def test_form_of_questions(still, agents, pictures):
    session_id = agents.begin("claude", "reset the backoff")
    agents.ask(session_id, "p-1", agents.questions())
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        app.attach(session_id)
        await look(pilot)
        while not isinstance(app.screen, AnswerForm):
            await pilot.press("enter")  # in one column the first shows the proposal
            await look(pilot)
        await pilot.press("down", "enter", "space")
        await pictures(pilot)


@pytest.mark.parametrize(
    ("keys", "answers"),
    [
        (["enter", "down", "enter", "space", "ctrl+s"], [[1], "", [0], ""]),
        (["enter", "enter", "space", "down", "space", "enter"], [[0], "", [0, 1], ""]),
        (["enter", "tab", "type:a third", "enter", "space", "enter"], [[], "a third", [0], ""]),
        (
            ["enter", "space", "tab", "type:mine", "ctrl+s", "tab", "tab", "type:x", "ctrl+s"],
            [[], "mine", [], "x"],
        ),
    ],
)
async def test_a_question_is_answered_in_its_form(still, agents, keys, answers):
    session_id = agents.begin("claude", "reset the backoff")
    agents.ask(session_id, "p-1", agents.questions())
    async with run(still, agents, session_id, keys) as pilot:
        await until(pilot, lambda: status(still, "p-1").status == "discussed")
        await until(pilot, lambda: not isinstance(pilot.app.screen, AnswerForm))
    (revision,) = [each for each in all_of(still, session_id) if each.revises == "p-1"]
    one, two = revision.body["answers"]
    assert [one["picked"], one["text"], two["picked"], two["text"]] == answers
    assert (revision.status, revision.decided_by) == ("approved", "person")


@pytest.mark.parametrize(
    "keys", [["enter", "escape"], ["enter", "space", "escape"], ["enter", "ctrl+s"]]
)
async def test_a_form_that_is_left_or_lacks_an_answer_decides_nothing(still, agents, keys):
    session_id = agents.begin("claude", "reset the backoff")
    agents.ask(session_id, "p-1", agents.questions())
    async with run(still, agents, session_id, keys) as pilot:
        await settled(pilot)
        assert status(still, "p-1").status == "pending"
        assert isinstance(pilot.app.screen, AnswerForm) is (keys[-1] == "ctrl+s")


async def test_a_question_whose_protocol_takes_no_answer_says_where_to_answer(still, agents):
    session_id = agents.begin("claude", "reset the backoff")
    agents.ask(session_id, "p-1", agents.questions("hook"))
    async with run(still, agents, session_id, ["enter"]) as pilot:
        await until(
            pilot, lambda: any("own terminal" in n.message for n in pilot.app._notifications)
        )
        assert status(still, "p-1").status == "pending"


async def test_words_that_are_left_leave_the_question(still, agents):
    session_id = agents.begin("claude", "reset the backoff")
    agents.ask(session_id, "p-1", agents.edit())
    async with run(still, agents, session_id, ["escape", "type:no", "escape"]) as pilot:
        assert screen_of(pilot).key_policy.discussing is None
        assert status(still, "p-1").status == "pending"


async def test_a_huge_change_is_drawn_line_by_line_on_the_card_and_in_its_view(still, agents):
    session_id = agents.begin("claude", "write a lot")
    text = "".join(f"line {number} \x1b[31m\n" for number in range(20_000))
    request = read_claude_tool("Write", {"file_path": "big.txt", "content": text})
    agents.ask(session_id, "p-1", request)
    async with run(still, agents, session_id, []) as pilot:
        panel = screen_of(pilot).panes.proposals
        await until(pilot, lambda: panel.reading.lines > 20_000)
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
        await until(pilot, lambda: drawn.size.height > 20_000)
        await pilot.press("G")
        await until(pilot, lambda: "line 19999" in whole_text(pilot))
        assert "\x1b" not in whole_text(pilot)


def whole_text(pilot):
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


async def test_a_permission_is_allowed_from_now_on(still, agents):
    session_id = agents.begin("claude", "call a server")
    agents.ask(session_id, "p-1", agents.server())
    async with run(still, agents, session_id, []) as pilot:
        screen_of(pilot).panes.proposals.focus()
        await look(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickOne))
        await pilot.press("enter")
        await until(pilot, lambda: status(still, "p-1").status == "approved")
        rules = still.engine.settings.user_dir
        await until(pilot, lambda: len(load_rules(rules)) == 1)
    assert load_rules(rules)[0].what == "mcp__tracker__create_issue"


async def test_hostile_words_of_an_agent_are_drawn_harmless(still, agents):
    bad = "\x1b[2Jx\x9b31m\u202ey\r\nz\x07[bold]"
    session_id = agents.begin("claude", bad, bad)
    for number in range(3):
        arguments = {"command": f"echo {bad}", "description": bad}
        agents.ask(session_id, f"p-{number}", read_claude_tool("Bash", arguments), bad)
    agents.ask(session_id, "p-4", read_claude_tool(f"mcp__{bad}__{bad}", {bad: bad}), bad)
    async with run(still, agents, session_id, ["alt+n", "alt+n", "alt+n"]) as pilot:
        for pane in ("f2", "f4", "f5"):
            await pilot.press(pane)
            await look(pilot)
            text = "".join(
                segment.text for row in drawn(pilot) for strip in row for segment in strip
            )
            assert not [each for each in text if each < " " or "\x7f" <= each < "\xa0"]
            assert "\u202e" not in text
            await pilot.press(pane)
