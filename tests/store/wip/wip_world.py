"""A backlog in a real store: an epic with a story with two tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from state_for_tests import put_store

from cockpit.backlog import service
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.backlog import tasks, wip
from cockpit.store.db.database import Store
from cockpit.store.journal import journal

# Put together here so that no file of this repository holds anything that looks like a secret.
CANARY = "ghp_" + "A1b2C3d4E5" * 4


class World:
    """``E-1`` with ``S-1`` with ``T-1`` and ``T-2``."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.open(
            put_store(folder / "cockpit.db"), FixedClock(step_s=1.0), CountingIds()
        )
        self.store.write_now(self._made)

    @staticmethod
    def _made(tx: Any) -> None:
        epic = service.create_epic(tx, "Sign-in", by="person")
        story = service.create_story(tx, "Tokens", epic_id=epic.epic_id, by="person")
        for title in ("Add the token", "Let it expire"):
            service.create_task(tx, title, story_id=story.story_id, by="person")

    def update(self, task_id: str, **patch: Any) -> dict[str, Any]:
        return self.store.write_now(lambda tx: wip.update(tx, task_id, patch, by="agent/s-1"))

    def task(self, task_id: str) -> tasks.Task:
        return self.store.read_now(lambda connection: tasks.load(connection, task_id))

    def rows(self, action: str) -> list[Any]:
        found = self.store.read_now(lambda connection: journal.rows(connection))
        return [row for row in found if row.action == action]
