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
from widgets.proposals.proposal_keys import ProposalKeys
from widgets.proposals.waiting_rows import WaitingRows

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


async def test_a_phone_opens_with_the_queue_and_a_touch_leads_to_a_proposal(still, project):
    """On 46 columns: two proposals of two sessions, two lines each; the queue is back after a decision."""
    Scene(still.store, project).begin().wave("observing").ask("p-1")
    second = Scene(still.store, project).begin("other notes").wave("observing").ask("p-2")
    app = CockpitApp(still)
    async with app.run_test(size=(46, 50)) as pilot:
        screen = await settled(pilot)
        rows = screen.query_one(WaitingRows)
        await until(pilot, lambda: rows.size.height >= 4)
        assert screen.panes.tab == "proposals"
        await pilot.click(rows, offset=(10, 3))  # the second line of the second row
        await until(pilot, lambda: screen.front_id == "p-2")
        assert app.session_id == second.session_id
        still.store.write_now(
            lambda tx: proposals.decide(
                tx,
                "p-2",
                verdict="rejected",
                by="person",
                shown_digest=proposals.load(tx.connection, "p-2").shown_digest,
            )
        )
        await until(pilot, lambda: screen.front_id == "" and rows.display)
        assert screen.panes.tab == "proposals"
        tab = screen.query_one("#tab-conversation")
        await pilot.click(tab)
        await until(pilot, lambda: screen.panes.tab == "conversation")
        await settled(pilot)
        assert screen.panes.tab == "conversation", "who leaves the queue is not led back"
