"""Actions on the backlog: its screens, the filter of the board, and the forms that write it.

Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.actions.task_actions import has_task, task_at_cursor
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.host import Host
from widgets.forms.pick_list import PickRow, mark_current

if TYPE_CHECKING:
    from cockpit.app.dialogs.backlog_form import Draft
    from cockpit.app.screens.board_screen import BoardScreen


# Screens


def toggle_board(host: Host) -> None:
    """Open the board; on the board, or on a screen that it opened, go back."""
    from cockpit.app.screens.backlog_screen import BacklogScreen
    from cockpit.app.screens.board_screen import BoardScreen

    if isinstance(host.screen, BoardScreen):
        host.screen.dismiss(None)
        return
    if any(isinstance(screen, BoardScreen) for screen in host.screen_stack):
        while isinstance(host.screen, BacklogScreen) and not isinstance(host.screen, BoardScreen):
            host.pop_screen()
        return
    host.open_screen(BoardScreen(host))


def open_queue(host: Host) -> None:
    """Open the queue, with its reasons."""
    from cockpit.app.screens.queue_screen import QueueScreen

    if not isinstance(host.screen, QueueScreen):
        host.open_screen(QueueScreen(host))


def open_measures(host: Host) -> None:
    """Open the measures of chains and their workers."""
    from cockpit.app.screens.stats_screen import StatsScreen

    if not isinstance(host.screen, StatsScreen):
        host.open_screen(StatsScreen(host))


def show_wip(host: Host) -> None:
    """Show the work in progress of the task under the cursor."""
    from cockpit.app.dialogs.task_memory import WipDialog

    if (task := task_at_cursor(host)) is not None:
        host.open_screen(WipDialog(host, task.task_id))


def show_handoff(host: Host) -> None:
    """Show the handoff of the task under the cursor."""
    from cockpit.app.dialogs.task_memory import HandoffDialog

    if (task := task_at_cursor(host)) is not None:
        host.open_screen(HandoffDialog(host, task.task_id))


# The filter of the board


def _board(host: Host) -> BoardScreen | None:
    from cockpit.app.screens.board_screen import BoardScreen

    return host.screen if isinstance(host.screen, BoardScreen) else None


def pick_scope(host: Host) -> None:
    """Pick an epic or a story: the board shows only its tasks."""
    if (board := _board(host)) is None:
        return
    work = host.state.work
    rows: list[PickRow] = [("", "All tasks", "")]
    for epic in work.epics.values():
        rows.append((epic.epic_id, f"{epic.epic_id} {epic.title}", f"epic · {epic.priority}"))
    for story in work.stories.values():
        hint = f"story · {story.epic_id}" if story.epic_id else "story"
        rows.append((story.story_id, f"{story.story_id} {story.title}", hint))

    def choose(scope: str | None) -> None:
        if scope is not None:
            board.filter_tasks(scope=scope)

    host.open_screen(
        PickOne(
            "Show only the tasks of",
            mark_current(rows, host.board_filter.scope),
            first=host.board_filter.scope,
        ),
        choose,
    )


def ask_filter(host: Host) -> None:
    """Ask for text: the board shows only tasks that contain it."""
    if (board := _board(host)) is None:
        return

    def choose(text: str | None) -> None:
        if text is not None:
            board.filter_tasks(text=text)

    question = "Text in the id, title, type or story. Leave it empty to show all tasks."
    host.open_screen(Ask("Filter", question, value=host.board_filter.words), choose)


def toggle_groups(host: Host) -> None:
    """Group the tasks of one story together, or show them in their order."""
    if (board := _board(host)) is not None:
        board.toggle_groups()


# Forms


def create_task(host: Host) -> None:
    """Open a form for a new task, of the story that the board shows."""
    scope = host.board_filter.scope
    story_id = scope if scope in host.state.work.stories else ""
    host.request(partial(_open_task_form, host, story_id=story_id))


def edit_task(host: Host) -> None:
    """Open a form to edit the task."""
    if (task := task_at_cursor(host)) is not None:
        host.request(partial(_open_task_form, host, task.task_id))


async def _open_task_form(host: Host, task_id: str = "", *, story_id: str = "") -> None:
    from cockpit.app import task_reader
    from cockpit.app.dialogs import backlog_form

    store = host.engine.store
    task_and_needs = await task_reader.read_task(store, task_id) if task_id else (None, ())
    types = await task_reader.read_task_types(host.engine.place)
    _open_form(
        host, backlog_form.task_draft(host.state.work, types, *task_and_needs, story_id=story_id)
    )


def create_story(host: Host) -> None:
    """Open a form for a new story, of the epic that the board shows."""
    from cockpit.app.dialogs import backlog_form

    scope, work = host.board_filter.scope, host.state.work
    epic_id = scope if scope in work.epics else ""
    _open_form(host, backlog_form.story_draft(work, epic_id=epic_id))


def create_epic(host: Host) -> None:
    """Open a form for a new epic."""
    from cockpit.app.dialogs import backlog_form

    _open_form(host, backlog_form.epic_draft())


def pick_story_to_edit(host: Host) -> None:
    """Pick a story, and open a form to edit it."""
    from cockpit.app.dialogs.backlog_form import story_draft

    work = host.state.work
    rows = [(key, f"{key} {each.title}", each.status) for key, each in work.stories.items()]
    empty = "No stories yet. “Create a story” in the palette adds one."
    _pick_to_edit(
        host, "Edit a story", rows, empty, lambda key: story_draft(work, work.stories[key])
    )


def pick_epic_to_edit(host: Host) -> None:
    """Pick an epic, and open a form to edit it."""
    from cockpit.app.dialogs.backlog_form import epic_draft

    epics = host.state.work.epics
    rows = [
        (key, f"{key} {each.title}", f"{each.priority} {each.status}")
        for key, each in epics.items()
    ]
    empty = "No epics yet. “Create an epic” in the palette adds one."
    _pick_to_edit(host, "Edit an epic", rows, empty, lambda key: epic_draft(epics[key]))


def _pick_to_edit(
    host: Host, title: str, rows: Sequence[PickRow], empty: str, draft: Callable[[str], Draft]
) -> None:
    def edit(key: str | None) -> None:
        if key is not None:
            _open_form(host, draft(key))

    host.open_screen(PickOne(title, rows, empty=empty), edit)


def _open_form(host: Host, draft: Draft) -> None:
    from cockpit.app.dialogs.backlog_form import FormDialog

    host.open_screen(FormDialog(host, draft))


def import_plan(host: Host) -> None:
    """Ask what to build, or for the file of a plan, and let it become one proposal."""

    def propose(source: str | None) -> None:
        if source:
            host.send_message(f"/plan {source}")

    question = "What to build, or a Markdown file of the project. Its tasks become one proposal."
    host.open_screen(Ask("Plan", question), propose)


# Conditions


def _on_task_screen(context: ActionContext) -> bool:
    """Return True on screens of tasks: in the panes the footer has other keys to show."""
    return context.pane == "tasks"


def _on_board(context: ActionContext) -> bool:
    return context.on_board


_TASK = "a task under the cursor"

BACKLOG_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "board", "Look", "Show the board of all tasks, and back", "board", ("ctrl+t",),
        run=toggle_board, footer=12, command="board",
        synonyms="backlog kanban tasks",
    ),
    Action(
        "stats", "Look", "Show the measures of chains", "measures", run=open_measures,
        command="stats", synonyms="cost usage tokens statistics money",
    ),
    Action(
        "new_task", "Tasks", "Create a task", "new", (), ("n",), "tasks", run=create_task,
        footer=5, footer_when=_on_task_screen,
    ),
    Action(
        "edit_task", "Tasks", "Edit the task", "edit", (), ("e",), "tasks", run=edit_task,
        when=has_task, needs=_TASK, footer=6, footer_when=_on_task_screen,
    ),
    Action(
        "wip", "Tasks", "Show the work in progress of the task", "wip", (), ("w",), "tasks",
        run=show_wip, when=has_task, needs=_TASK, footer=7, footer_when=_on_task_screen,
    ),
    Action(
        "handoff", "Tasks", "Show the handoff of the task", "handoff", (), ("f",), "tasks",
        run=show_handoff, when=has_task, needs=_TASK, footer=8, footer_when=_on_task_screen,
    ),
    Action(
        "queue", "Tasks", "Show the queue: which task is next, and why", "queue", ("f9",), (),
        "tasks", run=open_queue, footer=9, footer_when=_on_task_screen, command="queue",
        synonyms="next order",
    ),
    Action(
        "scope", "Tasks", "Show only the tasks of one epic or story", "scope", (), ("c",), "tasks",
        run=pick_scope, when=_on_board, needs="the board", footer=10,
    ),
    Action(
        "seek", "Tasks", "Filter the tasks by text", "filter", (), ("slash",), "tasks",
        run=ask_filter, when=_on_board, needs="the board", footer=10,
    ),
    Action(
        "group", "Tasks", "Group the tasks by story, and back", "group", (), ("t",), "tasks",
        run=toggle_groups, when=_on_board, needs="the board", footer=11,
    ),
    Action(
        "save", "Tasks", "Save a form", "save", ("ctrl+s",), when=lambda _: False,
        needs="an open form", palette=False,
    ),
    Action(
        "plan", "Tasks", "Plan: turn words or a written plan into tasks", "plan",
        run=import_plan, command="plan", synonyms="import todo split",
    ),
    Action("new_story", "Tasks", "Create a story", "new story", run=create_story),
    Action("new_epic", "Tasks", "Create an epic", "new epic", run=create_epic),
    Action("edit_story", "Tasks", "Edit a story", "edit story", run=pick_story_to_edit),
    Action("edit_epic", "Tasks", "Edit an epic or its priority", "edit epic", run=pick_epic_to_edit),
)  # fmt: skip
