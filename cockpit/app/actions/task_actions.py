"""Actions on the task under the cursor: its status, its dependencies, its notes.

Writes go through the backlog service in one transaction on the store's own thread; the screen learns
of them from the journal. Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cockpit.app.actions.action import Action, Condition
from cockpit.app.actions.context import ActionContext
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.host import Host, TaskCursorScreen
from cockpit.app.state.work import SETTLED, TaskState
from widgets.forms.pick_list import PickRow

if TYPE_CHECKING:
    from cockpit.backlog.story_completion import Boundaries
    from cockpit.store.db.transaction import Tx

USER = "person"
"""The user, in the column ``by`` of the journal."""


def task_at_cursor(host: Host) -> TaskState | None:
    """Return the task that keys act on: the one under the cursor of the screen on top."""
    tasks, top = host.state.work.tasks, host.screen
    if isinstance(top, TaskCursorScreen):
        return tasks.get(top.task_id)
    pane = host.main.panes.work
    return tasks.get(pane.at_cursor.rpartition("/")[2]) if pane.has_focus else None


# Writing


def write_to_backlog(host: Host, write: Callable[[Tx], object]) -> None:
    """Run ``write`` in a transaction, in the background; show its error."""

    async def run() -> None:
        notify_completed(host, await host.engine.store.write(write))

    host.request(run)


def notify_completed(host: Host, result: object) -> None:
    """Show a notice when a write completed a story or an epic."""
    from cockpit.backlog.story_completion import Boundaries

    if isinstance(result, Boundaries):
        completed = [result.story_id] if result.story_completed else []
        completed += [result.epic_id] if result.epic_completed else []
        if completed:
            host.show_notice(f"{' and '.join(map(str, completed))} completed")


def unblock_task(tx: Tx, task_id: str) -> Boundaries:
    """Resolve the blocker of a task."""
    from cockpit.backlog import service

    return service.resolve_blocker(tx, task_id, by=USER)


def _set_status(host: Host, status: str) -> None:
    from cockpit.backlog import service

    if (task := task_at_cursor(host)) is not None:
        task_id = task.task_id
        write_to_backlog(host, lambda tx: service.set_status(tx, task_id, status, by=USER))


def start_task(host: Host) -> None:
    """Start the task."""
    _set_status(host, "in_progress")


def submit_for_review(host: Host) -> None:
    """Submit the task for review."""
    _set_status(host, "review")


def unblock(host: Host) -> None:
    """Resolve the blocker of the task."""
    if (task := task_at_cursor(host)) is not None:
        task_id = task.task_id
        write_to_backlog(host, lambda tx: unblock_task(tx, task_id))


# Writing with a line of text


def _ask_then_write(
    host: Host, title: str, question: str, write: Callable[[Tx, str, str], object]
) -> None:
    """Ask for a line of text about the task, then call ``write`` with its id and the text."""
    task = task_at_cursor(host)
    if task is None:
        return
    task_id = task.task_id

    def answer(text: str | None) -> None:
        if text is not None:
            write_to_backlog(host, lambda tx: write(tx, task_id, text))

    about = f"{task.title}\n{question}" if task.title else question
    host.open_screen(Ask(f"{task_id}: {title}", about), answer)


def finish_task(host: Host) -> None:
    """Ask for a summary, then mark the task as done."""
    from cockpit.backlog import service

    _ask_then_write(
        host,
        "done",
        "A summary to remember (optional).",
        lambda tx, task_id, text: service.set_status(tx, task_id, "done", text or None, by=USER),
    )


def block_task(host: Host) -> None:
    """Ask for a reason, then block the task."""
    from cockpit.backlog import service

    _ask_then_write(
        host,
        "blocked",
        "What blocks the task? The next reader needs to know.",
        lambda tx, task_id, text: service.block(tx, task_id, text, by=USER),
    )


def reopen_task(host: Host) -> None:
    """Ask for a reason, then reopen the task."""
    from cockpit.backlog import service

    _ask_then_write(
        host,
        "reopen",
        "What is left to do? (optional)",
        lambda tx, task_id, text: service.reopen(tx, task_id, text or None, by=USER),
    )


def archive_task(host: Host) -> None:
    """Ask for a reason, then archive the task."""
    from cockpit.backlog import service

    _ask_then_write(
        host,
        "archive",
        "Why is the task not needed? (optional)",
        lambda tx, task_id, text: service.archive(tx, task_id, text or None, by=USER),
    )


def add_note(host: Host) -> None:
    """Ask for a text, then add it to the activity of the task."""
    from cockpit.backlog import service

    _ask_then_write(
        host,
        "add a note",
        "The note appears in the activity of the task.",
        lambda tx, task_id, text: service.add_activity(tx, task_id, "note", text, by=USER),
    )


# Dependencies


def add_dependency(host: Host) -> None:
    """Pick the task that has to be done first."""
    from cockpit.backlog import service

    if (task := task_at_cursor(host)) is None:
        return
    rows = [
        (other.task_id, f"{other.task_id} {other.title}", other.status.replace("_", " "))
        for other in host.state.work.tasks.values()
        if other is not task and other.status not in SETTLED and other.task_id not in task.needs
    ]
    _pick_then_write(
        host, task, "depends on", rows, "No other task is open.", service.add_dependency
    )


def remove_dependency(host: Host) -> None:
    """Pick the dependency to remove."""
    from cockpit.backlog import service

    if (task := task_at_cursor(host)) is None:
        return
    tasks = host.state.work.tasks
    rows = [
        (task_id, f"{task_id} {tasks[task_id].title if task_id in tasks else ''}", kind)
        for task_id, kind in task.needs.items()
    ]
    empty = "The task has no dependencies."
    title = "no longer depends on"
    _pick_then_write(host, task, title, rows, empty, service.remove_dependency)


def _pick_then_write(
    host: Host,
    task: TaskState,
    title: str,
    rows: Sequence[PickRow],
    empty: str,
    write: Callable[..., object],
) -> None:
    """Offer other tasks, then call ``write`` with the task and the picked one."""
    task_id = task.task_id

    def answer(other_id: str | None) -> None:
        if other_id is not None:
            write_to_backlog(host, lambda tx: write(tx, task_id, other_id, by=USER))

    host.open_screen(PickOne(f"{task_id} {title}", rows, empty=empty), answer)


# Conditions


def task_is(*statuses: str) -> Condition:
    """Return the condition that the task under the cursor has one of ``statuses``."""
    return lambda context: context.task_status in statuses


def has_task(context: ActionContext) -> bool:
    """Return True with a task under the cursor."""
    return bool(context.task_status)


_OPEN = ("todo", "in_progress", "review")
_TASK = "a task under the cursor"

TASK_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "open_task", "Tasks", "Show the task in full", "open", ("enter",), (), "tasks",
        when=has_task, needs=_TASK, footer=1, footer_when=lambda c: not c.can_attach,
        palette=False,
    ),
    Action(
        "start", "Tasks", "Start the task", "start", (), ("s",), "tasks", run=start_task,
        when=task_is("todo", "review"), needs="a task to do or in review", footer=2,
    ),
    Action(
        "to_review", "Tasks", "Submit the task for review", "review", (), ("v",), "tasks",
        run=submit_for_review, when=task_is("in_progress"), needs="a task in progress", footer=3,
    ),
    Action(
        "done", "Tasks", "Mark the task as done", "done", (), ("d",), "tasks", run=finish_task,
        when=task_is(*_OPEN), needs="an open task", footer=3,
    ),
    Action(
        "block", "Tasks", "Block the task, with a reason", "block", (), ("b",), "tasks",
        run=block_task, when=task_is(*_OPEN), needs="an open task", footer=4,
    ),
    Action(
        "unblock", "Tasks", "Unblock the task", "unblock", (), ("u",), "tasks", run=unblock,
        when=task_is("blocked"), needs="a blocked task", footer=2,
    ),
    Action(
        "reopen", "Tasks", "Reopen the task, with a reason", "reopen", (), ("o",), "tasks",
        run=reopen_task, when=task_is("done", "archived"), needs="a done or archived task",
        footer=2,
    ),
    Action(
        "add_note", "Tasks", "Add a note to the task", "note", (), ("i",), "tasks", run=add_note,
        when=has_task, needs=_TASK,
    ),
    Action(
        "depend", "Tasks", "Add a dependency to the task", "add dependency", (), ("a",), "tasks",
        run=add_dependency, when=has_task, needs=_TASK,
    ),
    Action(
        "independ", "Tasks", "Remove a dependency from the task", "remove dependency", (), ("x",),
        "tasks", run=remove_dependency, when=has_task, needs=_TASK,
    ),
    Action(
        "archive", "Tasks", "Archive the task: it is not needed", "archive", (), ("delete",), "tasks",
        run=archive_task, when=task_is(*_OPEN, "blocked", "done"),
        needs="a task that is not archived",
    ),
)  # fmt: skip
