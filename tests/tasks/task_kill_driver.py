"""Does a task in processes that may die: ``task_kill_driver.py PROJECT FOLDER TASK TESTS``.

Every line of stdin, ``[COMMITS, PATH]`` in JSON, asks for a process. After so many commits to the store it
kills itself (0: never); ``PATH`` is where it finds programs. Answers ``[EXIT_CODE, TOLD]``: the process tells
the task's status at its end.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
from pathlib import Path

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.db.database import Store
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext, WorkSettings


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
        task_context = TaskContext(
            store=store,
            place=place,
            settings=RuntimeSettings(user_dir=folder / "config", environment=dict(os.environ)),
            chain_id="ch-1",
            ordinal=1,
            chain_branch="cockpit/ch-1",
            approve="all",
            model=f"script:{folder / 'scenario.toml'}",
            work=WorkSettings(test_command=sys.argv[4]),
        )
        print((await run_task(task_context, task_id)).status)


def fork(commits: int, path: str) -> tuple[int, str]:
    """Do the task in a forked process; returns its exit code and what it told."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writing, 1)
        os.close(writing)
        os.environ["PATH"] = path
        asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], commits))
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as told:
        text = told.read()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), text.strip()


if __name__ == "__main__":
    # Loaded once for all children: they are to die in a task, not while they load.
    count_tokens("loads the vocabulary")
    for name in ("orient.compile_packet", "orient.fact_columns", "decide.offline.script_model"):
        importlib.import_module(f"cockpit.{name}")
    for line in sys.stdin:
        print(json.dumps(fork(*json.loads(line))), flush=True)
