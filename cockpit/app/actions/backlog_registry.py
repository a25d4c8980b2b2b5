"""What a person can do with tasks. The keys work wherever a task stands under the cursor."""

from __future__ import annotations

from cockpit.app.actions.action import Action, Moment, When

_OPEN = ("todo", "in_progress", "review")


def _stands(*statuses: str) -> When:
    def when(moment: Moment) -> bool:
        return moment.task in statuses

    return when


def _task(moment: Moment) -> bool:
    return bool(moment.task)


def _looking(moment: Moment) -> bool:
    """Among tasks, not in the cockpit's own panes: there the key bar has other things to tell."""
    return moment.pane == "tasks"


def _board(moment: Moment) -> bool:
    return moment.board


def _nowhere(_: Moment) -> bool:
    """A form has its keys itself."""
    return False


WORK_ACTIONS: tuple[Action, ...] = (
    Action(
        "open_task", "Tasks", "See the task in full", "open", ("enter",), (), "tasks", when=_task,
        footer=1, told=lambda m: not m.lively, bound=False, palette=False,
    ),
    Action(
        "start", "Tasks", "Start the task", "start", (), ("s",), "tasks",
        when=_stands("todo", "review"), footer=2,
    ),
    Action(
        "to_review", "Tasks", "Put the task up for review", "review", (), ("v",), "tasks",
        when=_stands("in_progress"), footer=3,
    ),
    Action(
        "done", "Tasks", "The task is done", "done", (), ("d",), "tasks", when=_stands(*_OPEN),
        footer=3,
    ),
    Action(
        "block", "Tasks", "The task is blocked: say why", "block", (), ("b",), "tasks",
        when=_stands(*_OPEN), footer=4,
    ),
    Action(
        "unblock", "Tasks", "Nothing blocks the task any more", "unblock", (), ("u",), "tasks",
        when=_stands("blocked"), footer=2,
    ),
    Action(
        "reopen", "Tasks", "Open the task again: say why", "reopen", (), ("o",), "tasks",
        when=_stands("done", "archived"), footer=2,
    ),
    Action(
        "new_task", "Tasks", "Write a new task", "new", (), ("n",), "tasks", footer=5,
        told=_looking,
    ),
    Action(
        "edit_task", "Tasks", "Change the task", "edit", (), ("e",), "tasks", when=_task,
        footer=6, told=_looking,
    ),
    Action(
        "wip", "Tasks", "The task's work in progress", "wip", (), ("w",), "tasks", when=_task,
        footer=7, told=_looking,
    ),
    Action(
        "handoff", "Tasks", "What the task handed over", "handoff", (), ("f",), "tasks",
        when=_task, footer=8, told=_looking,
    ),
    Action(
        "add_note", "Tasks", "Write a note on the task", "note", (), ("i",), "tasks", when=_task,
    ),
    Action(
        "depend", "Tasks", "Let the task wait for another", "depend", (), ("a",), "tasks",
        when=_task,
    ),
    Action(
        "independ", "Tasks", "Let the task wait for another no longer", "depend no more", (),
        ("x",), "tasks", when=_task,
    ),
    Action(
        "archive", "Tasks", "Archive the task: it is not wanted any more", "archive", (), ("A",),
        "tasks", when=_stands(*_OPEN, "blocked", "done"),
    ),
    Action(
        "queue", "Tasks", "The queue: what comes next, and why", "queue", ("f9",), ("r",), "tasks",
        footer=9, told=_looking,
    ),
    Action(
        "scope", "Tasks", "Only the tasks of one epic or story", "scope", (), ("c",), "tasks",
        when=_board, footer=10,
    ),
    Action(
        "seek", "Tasks", "Only tasks with certain words", "filter", (), ("slash",), "tasks",
        when=_board, footer=10,
    ),
    Action(
        "group", "Tasks", "Tasks of one story together, and back", "group", (), ("t",), "tasks",
        when=_board, footer=11,
    ),
    Action(
        "save", "Tasks", "Keep what stands in a form", "save", ("ctrl+s",), when=_nowhere,
        bound=False, palette=False,
    ),
    Action("stats", "Look", "Measures: how sessions of chains did", "measures"),
    Action("plan", "Tasks", "Turn a written plan into epics, stories and tasks", "plan"),
    Action("new_story", "Tasks", "Write a new story", "new story"),
    Action("new_epic", "Tasks", "Write a new epic", "new epic"),
    Action("edit_story", "Tasks", "Change a story", "change a story"),
    Action("edit_epic", "Tasks", "Change an epic, its priority too", "change an epic"),
)  # fmt: skip
