"""The mouse does what keys do: every entry of a footer, the keys under a proposal, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from app_scenes import Scene
from app_world import look, screen_of, settled, until
from textual.widget import Widget

import cockpit.app
from cockpit.app.application import CockpitApp
from cockpit.app.screens.board_screen import BoardScreen
from cockpit.app.screens.stats_screen import StatsScreen
from cockpit.store.sessions import proposals
from widgets.frame.footer import KeyBar
from widgets.proposals.proposal_panel import ProposalKeys

pytestmark = pytest.mark.slow


def test_every_entry_of_a_footer_can_be_clicked():
    without = []
    for path in sorted(Path(cockpit.app.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "KeyHintView":
                continue
            if len(node.args) < 4 and "press" not in {each.arg for each in node.keywords}:
                without.append(f"{path.name}:{node.lineno}")
    assert without == []


def place_of(bar: Widget, label: str) -> tuple[int, int]:
    """Return where a hint is drawn in its bar."""
    return bar.gutter.left + str(bar.render()).index(label), 0


async def test_what_is_clicked_is_the_key(still, project):
    scene = Scene(still.store, project).begin().wave("observing").ask("p-1")
    app = CockpitApp(still)

    def status() -> str:
        return still.store.read_now(lambda c: proposals.load(c, "p-1")).status

    async with app.run_test(size=(160, 45)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        bar = screen.query_one(KeyBar)
        await pilot.click(bar, offset=place_of(bar, "board"))
        await until(pilot, lambda: isinstance(app.screen, BoardScreen))
        bar = app.screen.query_one(KeyBar)
        await pilot.click(bar, offset=place_of(bar, "back"))
        await until(pilot, lambda: app.screen is screen)
        screen.act("stats")
        await until(pilot, lambda: isinstance(app.screen, StatsScreen))
        bar = app.screen.query_one(KeyBar)
        await pilot.click(bar, offset=place_of(bar, "back"))
        await until(pilot, lambda: app.screen is screen)
        await settled(pilot)
        keys = screen.query_one(ProposalKeys)
        await until(pilot, lambda: "approve" in str(keys.render()))
        if not screen.key_policy.is_armed:
            await pilot.click(keys, offset=place_of(keys, "approve"))
            assert status() == "pending", "a click is no faster than the key"
        await look(pilot)
        await pilot.click(keys, offset=place_of(keys, "approve"))
        await until(pilot, lambda: status() == "approved")
        assert screen_of(pilot) is screen
