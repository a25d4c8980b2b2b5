"""Blocks of the conversation: opened, searched, jumped to, copied; a command's output while it runs."""

from __future__ import annotations

import re

import pytest
from app_scenes import ALL, Scene, to_decide
from app_world import drawn, look, screen_of, until
from textual import events

from cockpit.act.live_output import live_file
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.block_view import BlockView
from cockpit.app.projection.block_detail import describe_block
from cockpit.store.journal.journal import rows
from cockpit.store.sessions import outbox, sessions

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(still, project):
    return Scene(still.store, project)


def text(pilot) -> str:
    return "\n".join("".join(strip.text for strip in row) for row in drawn(pilot))


def dispatch(scene: Scene, title: str = "run pytest -q") -> str:
    def step(tx):
        action = outbox.plan(
            tx, wave_id=scene.wave_id, session_id=scene.session_id, position=5,
            key="k-run", action_type="run", title=title, payload={},
        )  # fmt: skip
        outbox.enqueue(tx, action.action_id, proposal_id="p-action", payload={})
        outbox.dispatch(tx, action.action_id, "me")
        return action.action_id

    return scene.store.write_now(step)


def end(scene: Scene, action_id: str) -> None:
    detail = {
        "argv": ["pytest", "-q"], "exit_code": 1, "stdout": "1 failed\nsee above", "stderr": "",
        "duration_ms": 2_300,
    }  # fmt: skip
    scene.store.write_now(
        lambda tx: outbox.fail(
            tx, action_id, status="failure", summary="pytest: exit 1.", detail=detail
        )
    )


async def test_blocks_open_and_a_command_is_seen_while_it_runs(still, scene):
    to_decide(scene).edit()
    scene.decide("p-action", "approved")
    action_id = dispatch(scene)
    file = live_file(still.store.path, action_id)
    file.parent.mkdir()
    file.write_text("collected 3 items\n" + "a line\n" * 100 + "test_a passed\n")
    app = CockpitApp(still)
    async with app.run_test(size=(120, 40)) as pilot:
        app.attach(scene.session_id)
        await look(pilot)
        await until(pilot, lambda: "│ test_a passed" in text(pilot))
        await pilot.press("alt+c")
        assert screen_of(pilot).pane == "conversation"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BlockView))
        await until(pilot, lambda: "src/http/retry.py  +" in text(pilot))
        assert "approved by you" in text(pilot)
        await pilot.press("G")
        await until(pilot, lambda: "│ test_a passed" in text(pilot))
        assert re.search(r"▶ runs for \d+ s · run pytest -q", text(pilot))
        file.unlink()
        end(scene, action_id)
        await until(pilot, lambda: "│ 1 failed" in text(pilot))
        assert "exit code  1" in text(pilot)
        assert "2.3 s" in text(pilot)
        assert "✗ exit code 1 · took 2.3 s · ended" in text(pilot)
        copied = []
        app.copy_to_clipboard = copied.append
        await pilot.press("c", "p", "y", "escape")
        assert copied[:2] == ["pytest -q", "src/http/retry.py"]
        assert "1 failed\n│ see above" in copied[2]
        await until(pilot, lambda: app.screen is screen_of(pilot))
        await until(pilot, lambda: "│ test_a passed" not in text(pilot))


async def test_the_conversation_is_searched_and_jumped_through(still, scene):
    scene.begin()
    for number in range(30):
        scene.wave(*ALL[:4]).say(
            "agent", f"answer {number} about {'apples' if number % 10 == 3 else 'pears'}"
        )
        scene.advance(*ALL[4:])
    app = CockpitApp(still)
    async with app.run_test(size=(100, 30)) as pilot:
        app.attach(scene.session_id)
        await look(pilot)
        main = screen_of(pilot)
        conversation = main.panes.conversation
        await pilot.press("alt+c", "slash", *"apples", "enter")
        await until(pilot, lambda: conversation.has_focus)
        assert "answer 23 about apples" in conversation.current.text
        await pilot.press("n")
        assert "answer 13" in conversation.current.text
        await pilot.press("n", "N")
        assert "answer 13" in conversation.current.text
        await pilot.press("W")
        assert conversation.current.text.startswith("wave 14")
        await pilot.press("w")
        assert conversation.current.text.startswith("wave 15")
        await pilot.press("alt+c")
        assert main.pane == "prompt"


async def test_keys_at_machine_speed_go_where_the_key_before_them_leads(still, scene):
    scene.begin().wave(*ALL[:4]).say("agent", "An answer.")
    app = CockpitApp(still)
    async with app.run_test(size=(100, 30)) as pilot:
        app.attach(scene.session_id)
        await look(pilot)
        main = screen_of(pilot)
        for key in ("alt+c", "j", "j", "alt+c", "x", "tab", "z"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: main.prompt.text == "x" and main.pane != "prompt")


async def test_ctrl_c_copies_a_selection_before_it_interrupts(still, scene):
    scene.begin().wave(*ALL[:4]).say("agent", "An answer to select.")
    app = CockpitApp(still)
    async with app.run_test(size=(100, 30)) as pilot:
        app.attach(scene.session_id)
        await look(pilot)
        copied = []
        app.copy_to_clipboard = copied.append
        conversation = screen_of(pilot).panes.conversation
        conversation.text_select_all()
        await pilot.press("ctrl+c")
        assert any("An answer to select." in each for each in copied)
        await pilot.press("ctrl+c")
        assert len(copied) == 1
        assert app.interrupted_at > 0 or screen_of(pilot)._note


@pytest.mark.parametrize(
    ("role", "heading"), [("", "you · "), ("spec_reviewer", "task for the spec reviewer · ")]
)
def test_the_task_of_a_role_is_not_said_to_be_yours(still, scene, role, heading):
    session_id = still.store.write_now(
        lambda tx: sessions.create(
            tx, task_type="review_pr", title="T", words="Check T-1.", target={}, model="offline",
            policy="ask", interactive=False, root=scene.root, rev=None, profile_id="default",
            limits={}, project="api", branch="main", role=role,
        ).session_id
    )  # fmt: skip
    first = still.store.read_now(
        lambda c: [row for row in rows(c) if row.session_id == session_id][:1]
    )
    text = describe_block(first, running={}, now=still.store.clock.now()).text
    assert text.startswith(heading) and "Check T-1." in text
