"""Actions on the backlog: the screens that show it, and the forms that write it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cockpit.app.actions.chain_actions import ChainActs
from cockpit.app.dialogs.question import Ask, PickOne
from cockpit.app.overlay import Live
from cockpit.app.projection.kanban import Looking
from widgets.forms.pick_list import PickRow

if TYPE_CHECKING:
    from cockpit.app.dialogs.task_form import Draft
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class WorkActs(ChainActs):
    """The part of :class:`~cockpit.app.actions.screen_actions.Acts` that shows and writes the backlog."""

    def __init__(self, screen: CockpitScreen) -> None:
        super().__init__(screen)
        self.looking = Looking()

    def repaint(self) -> None:
        """The journal told something: draw the screens above the cockpit's own, too."""
        self.keep_up()
        for each in self._cockpit.screen_stack:
            if isinstance(each, Live):
                each.paint()

    # Screens

    def board(self) -> None:
        """The board; from there, or from what it opened, back to the cockpit."""
        from cockpit.app.screens.backlog_screen import WorkScreen
        from cockpit.app.screens.board_screen import BoardScreen

        cockpit = self._cockpit
        if isinstance(cockpit.screen, BoardScreen):
            cockpit.screen.dismiss(None)
            return
        if any(isinstance(each, BoardScreen) for each in cockpit.screen_stack):
            while isinstance(cockpit.screen, WorkScreen) and not isinstance(
                cockpit.screen, BoardScreen
            ):
                cockpit.pop_screen()
            return
        cockpit.push_screen(BoardScreen(self._screen))

    def queue(self) -> None:
        """The queue, with its reasons."""
        from cockpit.app.screens.queue_screen import QueueScreen

        if not isinstance(self._cockpit.screen, QueueScreen):
            self._cockpit.push_screen(QueueScreen(self._screen))

    def stats(self) -> None:
        """The measures of chains and their sessions."""
        from cockpit.app.screens.stats_screen import StatsScreen

        if not isinstance(self._cockpit.screen, StatsScreen):
            self._cockpit.push_screen(StatsScreen(self._screen))

    def wip(self) -> None:
        """The work in progress of the task under the cursor."""
        if (task := self.task) is not None:
            self.glance(task.task_id)

    def handoff(self) -> None:
        """What the task under the cursor handed over."""
        from cockpit.app.dialogs.task_memory import HandoffInspector

        if (task := self.task) is not None:
            self._cockpit.push_screen(HandoffInspector(self._screen, task.task_id))

    # What the board shows

    def scope(self) -> None:
        """Pick an epic or a story: only its tasks are shown then."""
        from cockpit.app.screens.board_screen import BoardScreen

        board, work = self._cockpit.screen, self._work
        if not isinstance(board, BoardScreen):
            return
        rows: list[PickRow] = [("", "All tasks", "")]
        for epic in work.epics.values():
            rows.append((epic.epic_id, f"{epic.epic_id} {epic.title}", f"epic · {epic.priority}"))
        for story in work.stories.values():
            under = f"story · {story.epic_id}" if story.epic_id else "story"
            rows.append((story.story_id, f"{story.story_id} {story.title}", under))

        def picked(key: str | None) -> None:
            if key is not None:
                board.look_at(scope=key)

        self._cockpit.push_screen(PickOne("Only the tasks of", rows), picked)

    def seek(self) -> None:
        """Ask for words: only tasks that have them are shown then."""
        from cockpit.app.screens.board_screen import BoardScreen

        board = self._cockpit.screen
        if not isinstance(board, BoardScreen):
            return

        def answered(words: str | None) -> None:
            if words is not None:
                board.look_at(words=words)

        asked = "Words of the id, the title, the type or the story; empty shows all."
        self._cockpit.push_screen(Ask("Filter", asked, value=self.looking.words), answered)

    def group(self) -> None:
        """Tasks of one story together, or in the order in which they come."""
        from cockpit.app.screens.board_screen import BoardScreen

        if isinstance(board := self._cockpit.screen, BoardScreen):
            board.group()

    # Writing

    def new_task(self) -> None:
        """Fill in a form: a new task, of the story that the board shows."""
        from cockpit.app.dialogs import task_form

        story = self.looking.scope if self.looking.scope in self._work.stories else ""
        self._form(task_form.new_task(story))

    def edit_task(self) -> None:
        """Change the task in a form."""
        if (task := self.task) is not None:
            self._cockpit.ask(partial(self._edit_task, task.task_id))

    async def _edit_task(self, task_id: str) -> None:
        from cockpit.app import task_reader
        from cockpit.app.dialogs import task_form

        stored, needs = await task_reader.task(self._cockpit.engine.store, task_id)
        self._form(task_form.change_task(stored, needs))

    def plan(self) -> None:
        """Ask for the file of a plan, and propose what it would put into the backlog."""
        from cockpit.app.actions import plan_command

        cockpit = self._cockpit

        def answered(source: str | None) -> None:
            if source:
                cockpit.do(
                    plan_command.propose(cockpit, f"{plan_command.COMMAND} {source}", source)
                )

        asked = "A Markdown file of the project. What it becomes is proposed as a whole."
        cockpit.push_screen(Ask("Plan", asked), answered)

    def new_story(self) -> None:
        """Fill in a form: a new story, of the epic that the board shows."""
        from cockpit.app.dialogs import task_form

        epic = self.looking.scope if self.looking.scope in self._work.epics else ""
        self._form(task_form.new_story(epic))

    def new_epic(self) -> None:
        """Fill in a form: a new epic."""
        from cockpit.app.dialogs import task_form

        self._form(task_form.new_epic())

    def edit_story(self) -> None:
        """Pick a story, and change it in a form."""
        from cockpit.app.dialogs import task_form

        stories = self._work.stories
        rows = [(each.story_id, f"{each.story_id} {each.title}", each.status)
                for each in stories.values()]  # fmt: skip

        def picked(key: str | None) -> None:
            if key is not None:
                self._form(task_form.change_story(stories[key]))

        self._cockpit.push_screen(PickOne("Change a story", rows, empty="No story yet."), picked)

    def edit_epic(self) -> None:
        """Pick an epic, and change it in a form."""
        from cockpit.app.dialogs import task_form

        epics = self._work.epics
        rows = [(each.epic_id, f"{each.epic_id} {each.title}", f"{each.priority} {each.status}")
                for each in epics.values()]  # fmt: skip

        def picked(key: str | None) -> None:
            if key is not None:
                self._form(task_form.change_epic(epics[key]))

        self._cockpit.push_screen(PickOne("Change an epic", rows, empty="No epic yet."), picked)

    def _form(self, draft: Draft) -> None:
        from cockpit.app.dialogs.form_dialog import FormDialog

        self._cockpit.push_screen(FormDialog(self._screen, draft))
