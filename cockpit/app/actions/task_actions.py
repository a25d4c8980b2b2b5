"""Actions on one task: how it stands, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cockpit.app.dialogs.question import Ask, PickOne
from cockpit.app.overlay import OverScreen, OverTasks
from cockpit.app.projection.backlog import SETTLED, TaskState, Work
from widgets.forms.pick_list import PickRow
from widgets.text.clean import clean

if TYPE_CHECKING:
    from cockpit.backlog.completion import Boundaries
    from cockpit.store.db.transaction import Tx

_TELL_S = 4.0


class TaskActs(OverScreen):
    """The part of :class:`~cockpit.app.actions.screen_actions.Acts` that changes the task under the cursor.

    What is written goes through the backlog's services, in one transaction on the store's own thread;
    the screen learns of it from the journal.
    """

    @property
    def _work(self) -> Work:
        return self._cockpit.feed.state.work

    @property
    def task(self) -> TaskState | None:
        """The task that keys are about: the one under the cursor of the screen on top."""
        top = self._cockpit.screen
        if isinstance(top, OverTasks):
            return self._work.tasks.get(top.task_id)
        board = self._screen.panes.board
        return self._work.tasks.get(board.at_cursor.rpartition("/")[2]) if board.has_focus else None

    @property
    def task_status(self) -> str:
        """How the task under the cursor stands; empty without one."""
        task = self.task
        return task.status if task is not None else ""

    def start(self) -> None:
        """Start the task."""
        from cockpit.app.actions import task_writes

        self._now(task_writes.start)

    def to_review(self) -> None:
        """Put the task up for review."""
        from cockpit.app.actions import task_writes

        self._now(task_writes.to_review)

    def unblock(self) -> None:
        """Nothing blocks the task any more."""
        from cockpit.app.actions import task_writes

        self._now(task_writes.unblock)

    def done(self) -> None:
        """Ask for words, then finish the task."""
        from cockpit.app.actions import task_writes

        self._asked("done", "What should be remembered of it? (may stay empty)", task_writes.done)

    def block(self) -> None:
        """Ask why, then block the task."""
        from cockpit.app.actions import task_writes

        self._asked(
            "blocked", "What stops it? Whoever looks next needs to know.", task_writes.block
        )

    def reopen(self) -> None:
        """Ask why, then open the task again."""
        from cockpit.app.actions import task_writes

        self._asked("open again", "What is left to do? (may stay empty)", task_writes.reopen)

    def archive(self) -> None:
        """Ask why, then put the task away."""
        from cockpit.app.actions import task_writes

        self._asked("archived", "Why is it not wanted? (may stay empty)", task_writes.archive)

    def add_note(self) -> None:
        """Ask for words, and keep them with the task."""
        from cockpit.app.actions import task_writes

        self._asked("a note", "It will stand in the task's activity.", task_writes.note)

    def depend(self) -> None:
        """Pick the task that has to be done first."""
        from cockpit.app.actions import task_writes

        if (task := self.task) is not None:
            rows = [
                (each.task_id, f"{each.task_id} {each.title}", each.status.replace("_", " "))
                for each in self._work.tasks.values()
                if each is not task
                and each.status not in SETTLED
                and each.task_id not in task.needs
            ]
            self._picked(task, "waits for", rows, "no other task is open", task_writes.depend)

    def independ(self) -> None:
        """Pick the dependency that is to go."""
        from cockpit.app.actions import task_writes

        if (task := self.task) is not None:
            tasks = self._work.tasks
            rows = [
                (other, f"{other} {tasks[other].title if other in tasks else ''}", how)
                for other, how in task.needs.items()
            ]
            words = "waits no longer for"
            self._picked(task, words, rows, "it depends on nothing", task_writes.independ)

    def _now(self, step: Callable[[Tx, str], Boundaries]) -> None:
        if (task := self.task) is not None:
            task_id = task.task_id
            self._keep(lambda tx: step(tx, task_id))

    def _asked(self, word: str, words: str, step: Callable[[Tx, str, str], object]) -> None:
        """Ask for a line of words about the task, then do ``step`` with them."""
        task = self.task
        if task is None:
            return
        task_id = task.task_id

        def answered(said: str | None) -> None:
            if said is not None:
                self._keep(lambda tx: step(tx, task_id, said))

        about = f"{task.title}\n{words}" if task.title else words
        self._cockpit.push_screen(Ask(f"{task_id}: {word}", about), answered)

    def _picked(
        self,
        task: TaskState,
        words: str,
        rows: Sequence[PickRow],
        empty: str,
        step: Callable[[Tx, str, str], object],
    ) -> None:
        """Offer other tasks, then do ``step`` with the one that was picked."""
        task_id = task.task_id

        def chosen(other: str | None) -> None:
            if other is not None:
                self._keep(lambda tx: step(tx, task_id, other))

        self._cockpit.push_screen(PickOne(f"{task_id} {words}", rows, empty=empty), chosen)

    def _keep(self, step: Callable[[Tx], object]) -> None:
        self._cockpit.ask(partial(self._kept, step))

    async def _kept(self, step: Callable[[Tx], object]) -> None:
        found = await self._cockpit.engine.store.write(step)
        self.tell_reached(found)

    def tell_reached(self, found: object) -> None:
        """Tell of a story or an epic that was completed by what was just written."""
        from cockpit.backlog.completion import Boundaries

        if isinstance(found, Boundaries):
            ended = [found.story_id] if found.story_completed else []
            ended += [found.epic_id] if found.epic_completed else []
            if ended:
                words = f"{' and '.join(map(str, ended))} completed"
                self._cockpit.notify(clean(words), timeout=_TELL_S, markup=False)
