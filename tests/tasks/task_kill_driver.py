"""Does a task in a process that may die: ``task_kill_driver.py PROJECT FOLDER TASK COMMITS``.

After so many commits to the store it kills itself (0: never). Prints the task's status at its end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext


async def main(root: Path, folder: Path, task_id: str, commits: int) -> None:
    place = locate_project(root)
    with Store.open(place.database) as store:
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1
            if counted == commits:
                os.kill(os.getpid(), signal.SIGKILL)

        store.on_commit(count)
        desk = TaskContext(
            store=store,
            place=place,
            settings=RuntimeSettings(user_dir=folder / "config", environment=dict(os.environ)),
            chain_id="ch-1",
            ordinal=1,
            chain_branch="cockpit/ch-1",
            approve="all",
            model=f"script:{folder / 'scenario.toml'}",
        )
        print((await run_task(desk, task_id)).status)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
