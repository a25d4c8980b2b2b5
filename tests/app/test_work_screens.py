"""The backlog on the screen: browsed and changed with real keys, fed by the journal."""

from __future__ import annotations

import pytest
import work_scenes
from app_world import on_screen, settled, text_of, until, write

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.backlog_form import FormDialog
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.dialogs.task_memory import HandoffDialog
from cockpit.app.screens.board_screen import BoardScreen
from cockpit.app.screens.queue_screen import QueueScreen
from cockpit.app.screens.task_screen import TaskScreen
from cockpit.backlog import service
from cockpit.store.backlog import dependencies, handoffs, task_activity, tasks
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.journal import journal

pytestmark = pytest.mark.slow

WIDE = (150, 42)


def load(still, task_id: str) -> tasks.Task:
    return still.store.read_now(lambda connection: tasks.load(connection, task_id))


@pytest.fixture
def filled(still):
    work_scenes.story(still.store)
    return still


async def on_board(pilot, app):
    await settled(pilot)
    await pilot.press("ctrl+t")
    await until(pilot, lambda: isinstance(app.screen, BoardScreen))
    await settled(pilot)
    return app.screen


async def to_card(pilot, board: BoardScreen, task_id: str) -> None:
    """Walk to a card with the arrow keys, as a person does."""
    columns = board.body.view.columns
    column = next(n for n, each in enumerate(columns) if task_id in [c.key for c in each.cards])
    while board.body.spot.column != column:
        await pilot.press("right" if board.body.spot.column < column else "left")
    place = [card.key for card in columns[column].cards].index(task_id)
    while board.task_id != task_id:
        await pilot.press("j" if board.body.spot.card < place else "k")


async def ask_for(pilot, app, key: str, words: str = "") -> None:
    """Press a key that asks for words, and answer."""
    await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, (Ask, PickOne)))
    await write(pilot, words, "enter")


async def test_keys_of_the_board_change_tasks_show_some_of_them_and_link_them(filled):
    app = CockpitApp(filled)

    def needs(task_id):
        found = filled.store.read_now(lambda c: dependencies.select_prerequisites(c, task_id))
        return [each.depends_on_task_id for each in found]

    async with app.run_test(size=WIDE) as pilot:
        board = await on_board(pilot, app)

        def counts():
            return [each.count for each in board.body.view.columns]

        await pilot.press("s")
        await until(pilot, lambda: load(filled, "T-3").status == "in_progress")
        await until(pilot, lambda: board.body.view.columns[1].count == 3)
        assert board.task_id == "T-3"  # the cursor goes with its card
        await ask_for(pilot, app, "b")
        await until(pilot, lambda: len(app._notifications) == 1)
        assert "what blocks it" in next(iter(app._notifications)).message
        assert load(filled, "T-3").status == "in_progress"
        app.clear_notifications()
        await ask_for(pilot, app, "b", "no clock")
        await until(pilot, lambda: load(filled, "T-3").blocker == "no clock")
        await until(pilot, lambda: "no clock" in text_of(app))
        await pilot.press("s", "d", "o")  # none of them is valid for a blocked task
        assert app.screen is board
        await pilot.press("u")
        await until(pilot, lambda: load(filled, "T-3").status == "in_progress")
        await until(pilot, lambda: board.context.task_status == "in_progress")
        await pilot.press("v")
        await until(pilot, lambda: board.context.task_status == "review")
        await ask_for(pilot, app, "d", "all read")
        await until(pilot, lambda: board.context.task_status == "done")
        notes = filled.store.read_now(lambda c: task_activity.select_for_task(c, "T-3"))
        assert [(each.description, each.actor) for each in notes] == [("all read", "person")]
        await ask_for(pilot, app, "o")
        await until(pilot, lambda: load(filled, "T-3").status == "todo")
        rows = filled.store.read_now(journal.rows)
        mine = [r for r in rows if r.action == "task.status_changed" and r.actor == "person"]
        assert [row.raw_detail()["to"] for row in mine] == [
            "in_progress", "blocked", "in_progress", "review", "done", "todo",
        ]  # fmt: skip

        # One epic or story, words, groups.
        await until(pilot, lambda: counts() == [5, 2, 1, 1, 1])
        await ask_for(pilot, app, "c", "e-2")
        await until(pilot, lambda: counts() == [1, 0, 1, 0, 0])
        await until(pilot, lambda: "only E-2 Documentation" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: counts() == [5, 2, 1, 1, 1])
        await ask_for(pilot, app, "slash", "tokens EXPIRE")
        await until(pilot, lambda: counts() == [2, 1, 0, 0, 1])
        await pilot.press("escape", "t")
        headings = [card.heading for card in board.body.view.columns[0].cards if card.heading]
        assert headings == [
            "S-1 Tokens expire when they say", "S-3 A guide for operators",
            "S-2 Sign-in is rate limited",
        ]  # fmt: skip
        assert counts() == [5, 2, 1, 1, 1]
        await pilot.press("t")

        # A dependency is added and taken away; a cycle is refused.
        await to_card(pilot, board, "T-9")
        await ask_for(pilot, app, "a", "T-8")
        await until(pilot, lambda: needs("T-9") == ["T-8"])
        await until(pilot, lambda: "waits for T-8" in text_of(app))
        await to_card(pilot, board, "T-8")
        await ask_for(pilot, app, "a", "T-9")
        await until(pilot, lambda: len(app._notifications) == 1)
        assert "T-8" in next(iter(app._notifications)).message
        await to_card(pilot, board, "T-9")
        await ask_for(pilot, app, "x")
        await until(pilot, lambda: needs("T-9") == [])
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app._main)


async def test_a_task_its_handoff_and_the_queue_are_seen_in_full_and_live(filled):
    async with on_screen(filled, size=WIDE) as (pilot, app, _):
        drawn = text_of(app)
        assert "1/10 tasks   2 ready   ▶ 2 in progress   ■ 1 blocked" in drawn
        assert "T-2  ▶ testing       12✓ 1✗  next: Fix failing test - token expir" in drawn
        assert "T-10 ■ blocked" in drawn
        assert "the proxy's headers" in drawn
        assert "T-1  ✔ handoff" in drawn

        board = await on_board(pilot, app)
        await to_card(pilot, board, "T-2")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen))
        await settled(pilot)
        drawn = " ".join(text_of(app).split())
        for words in (
            "▶ T-2 Token expiry edge case", "in progress", "bug", "P0", "estimate 3 h",
            "story S-1 Tokens expire when they say", "read the clock once per request",
            "Done when", "a test at the second", "relates to ○ T-3", "unblocks ◌ T-4",
            "phase testing", "12✓ 1✗", "uncommitted changes", "Failures",
            "quality 1", "the clock is read twice", "12 of 13 tests pass", "decision",
        ):  # fmt: skip
            assert words in drawn, words
        filled.store.write_now(
            lambda tx: service.add_activity(tx, "T-2", "note", "seen by both", by="agent")
        )
        await until(pilot, lambda: "seen by both" in text_of(app))
        await ask_for(pilot, app, "i", "look at the refresh too")
        await until(pilot, lambda: "look at the refresh too" in text_of(app))
        await pilot.press("escape")

        await until(pilot, lambda: app.screen is board)
        await to_card(pilot, board, "T-1")
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, HandoffDialog))
        await until(pilot, lambda: "two runs wait alike" in text_of(app))
        await until(pilot, lambda: "src/http/retry.py" in text_of(app))
        assert "validateToken" not in text_of(app)
        await pilot.press("d")
        await until(pilot, lambda: "I traced the expiry through `validateToken`" in text_of(app))
        await pilot.press("d")
        filled.store.write_now(lambda tx: handoffs.compact_story(tx, "S-1"))
        await until(pilot, lambda: "its details went with its story" in text_of(app))
        assert "show details" not in text_of(app)
        filled.store.write_now(lambda tx: handoffs.archive_epic(tx, "E-1"))
        await until(pilot, lambda: "archived with its epic" in text_of(app))
        assert "two runs wait alike" in text_of(app)
        await pilot.press("escape")

        await until(pilot, lambda: app.screen is board)
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen))
        queue = app.screen
        await until(pilot, lambda: len(queue.first_focus.rows) == 9)
        drawn = text_of(app)
        assert "○ T-3   Read the clock once per request" in drawn
        assert "can start now" in drawn
        assert "waits for T-5 · priority P0 · 1 task behind it" in drawn
        assert "Place      1" in drawn and "Can start" in drawn
        await pilot.press("home", "s")
        await until(pilot, lambda: load(filled, "T-3").status == "in_progress")
        await until(pilot, lambda: queue.first_focus.rows[0].key == "T-9")
        assert queue.task_id == "T-3"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen))


async def test_tasks_stories_and_epics_are_written_in_forms(filled):
    async with on_screen(filled, size=WIDE) as (pilot, app, screen):
        board = await on_board(pilot, app)

        async def fill(*fields: str) -> FormDialog:
            await until(pilot, lambda: isinstance(app.screen, FormDialog))
            form = app.screen
            for field in fields:
                await (pilot.press(field[1:]) if field[:1] == "!" else write(pilot, field))
            return form

        # What cannot be kept is told, and nothing is lost.
        await pilot.press("n")
        form = await fill("A title", "!tab", "!tab", "S-99", "!ctrl+s")
        await until(pilot, lambda: "There is no story S-99" in text_of(app))
        await fill("!tab", "soon", "!ctrl+s")
        await until(pilot, lambda: "write a number of hours" in text_of(app))
        assert form.form.values["title"] == "A title"
        await pilot.press("escape")
        assert app.screen is form
        await until(pilot, lambda: "Unsaved changes" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is board)
        assert filled.store.read_now(lambda c: len(tasks.select(c))) == 10

        await pilot.press("n")
        await fill("Rotate the key", "!tab", "!right", "!tab", "s-3", "!tab", "1.5", "!enter")
        await fill("T-8, 9", "!enter", "ops, auth", "!enter", "!enter")
        await fill("every\nmonth", "!tab", "it ran", "!ctrl+s")
        await until(pilot, lambda: app.screen is board)
        made = load(filled, "T-11")
        assert (made.title, made.task_type, made.story_id) == ("Rotate the key", "bug", "S-3")
        assert (made.estimate_hours, made.packages) == (1.5, ("auth", "ops"))
        assert (made.description, made.acceptance_criteria) == ("every\nmonth", "it ran")
        needs = filled.store.read_now(lambda c: dependencies.select_prerequisites(c, "T-11"))
        assert {each.depends_on_task_id for each in needs} == {"T-8", "T-9"}
        await until(pilot, lambda: board.body.view.columns[0].count == 6)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)

        async def change(action: str, name: str, *fields: str) -> None:
            screen.act(action)
            if name:
                await until(pilot, lambda: isinstance(app.screen, PickOne))
                await write(pilot, name, "enter")
            await fill(*fields, "!ctrl+s")
            await until(pilot, lambda: app.screen is screen)
            await settled(pilot)

        await change("new_story", "", "Keys rotate", "!tab", "E-1")
        await change("edit_story", "keys", "!tab", "!backspace", "2")
        story = filled.store.read_now(lambda connection: STORIES.load(connection, "S-4"))
        assert (story.title, story.epic_id) == ("Keys rotate", "E-2")
        await change("edit_epic", "docu", "!tab", "!right")
        epic = filled.store.read_now(lambda connection: EPICS.load(connection, "E-2"))
        assert epic.priority == "P0"


async def test_every_screen_draws_at_any_size(filled):
    """Each in a terminal that is too small for it, and in a wide one."""
    app = CockpitApp(filled)
    async with app.run_test(size=(20, 6)) as pilot:
        board = await on_board(pilot, app)
        await to_card(pilot, board, "T-2")
        width = 20
        for keys in (
            ("t",),
            ("enter",),
            ("escape", "w"),
            ("escape", "f"),
            ("escape", "f9"),
            ("e",),
        ):
            await pilot.press(*keys)
            for columns in (width, 160 - width):
                await pilot.resize_terminal(columns, columns // 4 + 1)
                await settled(pilot)
                assert len(text_of(app).split("\n")) == columns // 4 + 1
            width = columns
            assert width < 100 or "T-2" in text_of(app)
