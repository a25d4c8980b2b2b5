"""Blocks of the conversation: opened, searched, jumped to, copied; a command's output while it runs."""

from __future__ import annotations

import re

import pytest
from app_scenes import ALL, Scene, to_decide
from app_world import look, on_screen, screen_of, until
from app_world import whole_text as text
from textual import events

from cockpit.act.live_output import live_file
from cockpit.app.dialogs.block_view import BlockView
from cockpit.store.sessions import outbox

pytestmark = pytest.mark.slow


def dispatch(scene: Scene, title: str = "run pytest -q") -> str:
    def step(tx):
        action = outbox.plan(
            tx, wave_id=scene.wave_id, session_id=scene.session_id, position=5,
            key="k-run", action_type="run", title=title, payload={},
        )  # fmt: skip
        outbox.enqueue(tx, action.action_id, proposal_id=None, payload={})
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
    async with on_screen(still, scene.session_id, size=(120, 40), ready=look) as (pilot, app, _):
        await until(pilot, lambda: "│ test_a passed" in text(pilot))
        await pilot.press("alt+c")
        await until(pilot, lambda: screen_of(pilot).pane == "conversation")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BlockView))
        await until(pilot, lambda: "src/http/retry.py  +" in text(pilot))
        await until(pilot, lambda: "approved by you" in text(pilot))
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
        await until(pilot, lambda: len(copied) == 3)
        assert copied[:2] == ["pytest -q", "src/http/retry.py"]
        assert "1 failed\n│ see above" in copied[2]
        await until(pilot, lambda: app.screen is screen_of(pilot))
        await until(pilot, lambda: "│ test_a passed" not in text(pilot))


async def test_keys_at_machine_speed_go_where_the_key_before_them_leads(still, scene):
    scene.begin().wave(*ALL[:4]).say("agent", "An answer.")
    async with on_screen(still, scene.session_id, size=(100, 30), ready=look) as (pilot, app, _):
        main = screen_of(pilot)
        for key in ("alt+c", "j", "j", "alt+c", "x", "tab", "z"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: main.prompt.text == "x" and main.pane != "prompt")
