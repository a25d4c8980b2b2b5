"""The mouse does what keys do: every entry of a footer, the keys under a proposal, and nothing else."""

from __future__ import annotations

import pytest
from app_scenes import Scene
from app_world import calm, look, on_screen, screen_of, settled, status_of, until
from textual.containers import VerticalScroll
from textual.widget import Widget

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.block_view import BlockView
from cockpit.app.dialogs.help import Help, HelpText
from cockpit.app.dialogs.key_menu import KeyMenuDialog
from cockpit.app.screens.board_screen import BoardScreen
from widgets.frame.footer import KeyBar
from widgets.proposals.proposal_keys import ProposalKeys
from widgets.proposals.waiting_rows import WaitingRows

pytestmark = pytest.mark.slow


def place_of(bar: Widget, label: str) -> tuple[int, int]:
    """Return where a hint is drawn in its bar."""
    return bar.gutter.left + str(bar.render()).index(label), 0


async def test_what_is_clicked_is_the_key(still, project):
    scene = Scene(still.store, project).begin().wave("observing").ask("p-1")
    app = CockpitApp(still)

    async with app.run_test(size=(160, 34)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        bar = screen.query_one(KeyBar)
        await pilot.click(bar, offset=place_of(bar, "board"))
        await until(pilot, lambda: isinstance(app.screen, BoardScreen))
        bar = app.screen.query_one(KeyBar)
        await pilot.click(bar, offset=place_of(bar, "back"))
        await until(pilot, lambda: app.screen is screen)
        await settled(pilot)
        keys = screen.query_one(ProposalKeys)
        await until(pilot, lambda: "approve" in str(keys.render()))
        if not screen.key_policy.is_armed:
            await pilot.click(keys, offset=place_of(keys, "approve"))
            assert status_of(still, "p-1") == "pending", "a click is no faster than the key"
        await look(pilot)
        await pilot.click(keys, offset=place_of(keys, "approve"))
        await until(pilot, lambda: status_of(still, "p-1") == "approved")
        assert screen_of(pilot) is screen


async def test_each_block_of_the_conversation_is_marked_and_opened(still, project):
    scene = Scene(still.store, project).begin().wave("observing").ask("p-1")
    async with on_screen(still, scene.session_id, size=(100, 16)) as (pilot, app, screen):
        conversation = screen.panes.conversation
        seen = set()
        for y in range(1, conversation.size.height):
            await pilot.click(conversation, offset=(5, y))
            seen.add(conversation.current.key)
        assert len(seen) == len(conversation.turns)
        await pilot.click(conversation, offset=(5, 1), times=2)
        await until(pilot, lambda: isinstance(app.screen, BlockView))


async def test_clicks_beside_footers(still, project):
    other = Scene(still.store, project).begin("fix it", title="Fix it").wave("observing").ask("p-1")
    scene = Scene(still.store, project).begin().wave("observing")
    scene.propose("p-2", risk="high", body="Do it.")
    app = CockpitApp(still)

    async with app.run_test(size=(160, 34)) as pilot:
        app.attach(scene.session_id)
        main = await look(pilot)
        panes = main.panes

        # A row of another session takes you there; a title fills the screen, and gives it back.
        rows = main.query_one(WaitingRows)
        await until(pilot, lambda: rows.size.height and not main.context.list_open)
        await pilot.click(rows)
        await until(pilot, lambda: app.session_id == other.session_id and main.front_id == "p-1")
        await settled(pilot)
        for _ in range(2):
            before = panes.is_zoomed
            await pilot.click(panes.conversation, offset=(4, 0))
            await until(pilot, lambda before=before: panes.is_zoomed != before)

        # The ellipsis of a footer shows all keys; the help runs what is clicked, where it is valid.
        await pilot.resize_terminal(60, 24)
        await settled(pilot)
        bar = main.query_one(KeyBar)
        await pilot.click(bar, offset=(bar.gutter.left + str(bar.render()).index("…"), 0))
        await until(pilot, lambda: isinstance(app.screen, KeyMenuDialog))
        drawn = app.screen._compositor.render_strips()
        y = next(at for at, strip in enumerate(drawn) if "esc back" in strip.text)
        await pilot.click(offset=(drawn[y].text.index("esc back") + 1, y))
        await until(pilot, lambda: app.screen is main)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help))
        text = app.screen.query_one(HelpText)
        head, columns = text._lay_out(text.content_size.width)
        cells = text.content_size.width // len(columns)
        x, place = next(
            (number * cells + 4, len(head) + at)
            for number, column in enumerate(columns)
            for at, (_, name) in enumerate(column)
            if name == "board"
        )
        app.screen.query_one("#help", VerticalScroll).scroll_to(
            y=place, animate=False, immediate=True
        )
        await calm(pilot)
        await pilot.click(text, offset=(x, place))
        await until(pilot, lambda: isinstance(app.screen, BoardScreen))
