"""The mouse reaches each row of each list, and each block of the conversation; nothing else is left out."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest
from app_scenes import Scene
from app_world import calm, screen_of, settled, until
from textual.widget import Widget

import cockpit.app
import widgets
from cockpit.app.actions.context import LISTS
from cockpit.app.actions.list_actions import _load_class
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.block_view import BlockView
from cockpit.app.screens.lists.list_screen import ListScreen
from widgets.work.task_views import QueuedView
from widgets.work.two_line_list import TwoLineList

CLICKED = {
    "BandMeter": "widgets/test_band_meter.py",
    "Conversation": "app/test_mouse_rows.py",
    "Dialog": "app/test_every_action.py",
    "FactList": "widgets/test_fact_list.py",
    "FileDiff": "widgets/test_file_diff.py",
    "HelpText": "app/test_every_action.py",
    "Kanban": "widgets/test_kanban.py",
    "KeyBar": "app/test_every_action.py",
    "KeyMenuDialog": "app/test_every_action.py",
    "KeyMenu": "app/test_every_action.py",
    "Panes": "app/test_every_action.py",
    "ProposalKeys": "app/test_mouse.py",
    "TwoLineList": "app/test_mouse_rows.py",
    "Tab": "app/test_layout.py",
    "Timeline": "widgets/test_frame.py",
    "WaitingRows": "app/test_every_action.py",
    "WordBar": "app/test_first_words.py",
    "WorkPane": "widgets/test_work_pane.py",
}
"""Each widget that takes clicks, and the tests that click it."""


def find_clickable() -> set[str]:
    """Return the names of the classes that handle a click."""
    names = set()
    for package in (widgets, cockpit.app):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            for name, kind in inspect.getmembers(module, inspect.isclass):
                is_ours = kind.__module__ == module.__name__ and issubclass(kind, Widget)
                if is_ours and "on_click" in vars(kind):
                    names.add(name)
    return names


def test_each_widget_that_takes_clicks_is_clicked_by_a_test(request):
    assert find_clickable() == set(CLICKED)
    tests = request.path.parents[1]
    for name, path in CLICKED.items():
        text = (tests / path).read_text("utf-8")
        assert ".click(" in text, name


@pytest.mark.parametrize("name", LISTS)
async def test_each_row_of_a_list_takes_the_cursor_and_opens(still, project, monkeypatch, name):
    Scene(still.store, project).begin().wave("observing").ask("p-1")
    opened: list[str] = []

    # A class of its own: the handlers of the others are looked up once in a process (textual_shortcuts).
    class Watched(_load_class(name)):
        def on_two_line_list_opened(self, event):
            opened.append(event.key)
            event.prevent_default()

        def on_two_line_list_moved(self, event):
            event.prevent_default()

    # The rows are the test's own: a screen that reads its own again would put them in their place.
    monkeypatch.setattr(ListScreen, "_read_soon", lambda _: None)
    app = CockpitApp(still)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = Watched(app)
        await app.open_screen(screen)
        await calm(pilot)
        rows = screen.body
        assert isinstance(rows, TwoLineList)
        rows.show([QueuedView(f"row {place}", f"row {place}") for place in range(5)])
        await pilot.pause()
        for place in (3, 0, 4, 1, 2):
            await pilot.click(rows, offset=(6, rows.gutter.top + 2 * place))
            assert rows.cursor == place
            await pilot.click(rows, offset=(6, rows.gutter.top + 2 * place + 1), times=2)
            await until(pilot, lambda: opened)
            assert opened == [f"row {place}"]
            opened.clear()


async def test_each_block_of_the_conversation_is_marked_and_opened(still, project):
    scene = Scene(still.store, project).begin().wave("observing").ask("p-1")
    app = CockpitApp(still)
    async with app.run_test(size=(120, 40)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        conversation = screen.panes.conversation
        seen = set()
        for y in range(1, conversation.size.height):
            await pilot.click(conversation, offset=(5, y))
            seen.add(conversation.current.key)
        assert len(seen) == len(conversation.turns)
        await pilot.click(conversation, offset=(5, 1), times=2)
        await until(pilot, lambda: isinstance(app.screen, BlockView))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen_of(pilot))
