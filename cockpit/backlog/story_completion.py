"""Completion of stories and epics: they finish with their last task and open again with a new one.

Handoffs decay at these boundaries: a finished story's are compacted, a finished epic's are archived. See
``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct, structs

from cockpit.store.backlog import handoffs
from cockpit.store.backlog.epics_and_stories import EPICS, SETTLED, STORIES
from cockpit.store.db.transaction import Tx


class Boundaries(Struct, frozen=True):
    """What a change of a task completed: its story, its epic, or neither."""

    story_completed: bool = False
    epic_completed: bool = False
    story_id: str | None = None
    epic_id: str | None = None

    def body(self) -> dict[str, bool | str | None]:
        """Return the JSON object of commands, tools and the journal."""
        return structs.asdict(self)


BeforeDecay = Callable[[Tx, Boundaries], None]
"""Called when something was completed, before any handoff of it decays: a report reads them whole."""


def update_story_status(tx: Tx, story_id: str | None, *, by: str) -> Boundaries:
    """Bring the story's status, and its epic's, in line with its tasks; says what that completed."""
    if story_id is None:
        return Boundaries()
    story = STORIES.load(tx.connection, story_id)
    counts = tx.execute(
        "SELECT status, count(*) FROM tasks WHERE story_id=? GROUP BY status", (story_id,)
    )
    status = status_from_parts(story.status, counts)
    if status != story.status:
        STORIES.change(tx, story, {"status": status}, by=by)
    return Boundaries(
        status == "done" != story.status,
        update_epic_status(tx, story.epic_id, by=by),
        story_id,
        story.epic_id,
    )


def update_epic_status(tx: Tx, epic_id: str | None, *, by: str) -> bool:
    """Bring the epic's status in line with its stories'; whether that completed it."""
    if epic_id is None:
        return False
    epic = EPICS.load(tx.connection, epic_id)
    counts = tx.execute(
        "SELECT status, count(*) FROM stories WHERE epic_id=? GROUP BY status", (epic_id,)
    )
    status = status_from_parts(epic.status, counts)
    if status != epic.status:
        EPICS.change(tx, epic, {"status": status}, by=by)
    return status == "done" != epic.status


def status_from_parts(status: str, parts: Iterable[tuple[str, int]]) -> str:
    """Return the status of a story or epic with ``status``, from the number of parts at each status.

    Nothing follows from no parts. When all are settled it is done, or archived where none was done;
    a settled one opens again with a part that is open; the first part begun begins it.
    """
    counted = Counter(dict(parts))
    if not counted:
        return status
    begun = counted["in_progress"] + counted["review"] + counted["done"] > 0
    if not set(counted) - set(SETTLED):
        return "done" if counted["done"] else "archived"
    if status in SETTLED or (status == "todo" and begun):
        return "in_progress" if begun else "todo"
    return status


def decay_handoffs(tx: Tx, reached: Boundaries, before_decay: BeforeDecay | None) -> None:
    """Let the handoffs of what was completed decay, after ``before_decay`` has seen them whole."""
    if not (reached.story_completed or reached.epic_completed):
        return
    if before_decay is not None:
        before_decay(tx, reached)
    if reached.story_completed and reached.story_id is not None:
        handoffs.compact_story(tx, reached.story_id)
    if reached.epic_completed and reached.epic_id is not None:
        handoffs.archive_epic(tx, reached.epic_id)
