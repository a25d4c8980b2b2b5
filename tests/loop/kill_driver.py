"""Runs a session in forked children that kill themselves after the Nth commit, then goes on.

Called by the test as a process of its own: ``kill_driver.py PROJECT USER_DIR MODEL FIRST LAST STEP``.
For every N it makes a fresh clone, lets a child die there by SIGKILL, goes on in its own process, and prints
one JSON line of what the world looks like then.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import outbox, sessions, waves


async def run(root: Path, user_dir: Path, model: str, die_after: int | None) -> None:
    settings = RuntimeSettings(user_dir=user_dir)
    async with open_runtime(locate_project(root), settings) as runtime:
        if die_after is not None:
            counted = 0

            def count() -> None:
                nonlocal counted
                counted += 1
                if counted >= die_after:
                    os.kill(os.getpid(), signal.SIGKILL)

            runtime.store.on_commit(count)
        last = await runtime.store.read(sessions.find_latest)
        session_id = (
            last.session_id
            if last
            else await runtime.start("fix add", model=model, policy="all", interactive=False)
        )
        await runtime.run(session_id)


def die(root: Path, user_dir: Path, model: str, die_after: int) -> int:
    """Run the session in a forked child; returns its exit code, which is 0 when it came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(run(root, user_dir, model, die_after))
            os._exit(0)
        except BaseException as error:
            print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def resume(root: Path, user_dir: Path, model: str) -> int:
    """Go on with the session here: a fork copies each page that it writes to, and nobody is killed."""
    try:
        asyncio.run(run(root, user_dir, model, None))
    except Exception as error:
        print(f"resumed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def world(root: Path) -> dict[str, object]:
    from cockpit.store.db.database import Store

    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=root, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    with Store.open(locate_project(root).database) as store:
        session = store.read_now(lambda c: sessions.select_recent(c, 1))[0]
        actions = store.read_now(lambda c: outbox.select_for_session(c, session.session_id))
        doubles = store.read_now(
            lambda c: c.execute(
                "SELECT count(*) FROM (SELECT 1 FROM action_receipts WHERE terminal=1"
                " GROUP BY idempotency_key HAVING count(*)>1)"
            ).fetchone()[0]
        )
        return {
            "status": session.status,
            "result": session.result,
            "log": log,
            "file": (root / "calc.py").read_text(),
            "phases": [action.phase for action in actions],
            "types": [action.action_type for action in actions],
            "waves": [
                wave.phase
                for wave in store.read_now(
                    lambda c: waves.select_for_session(c, session.session_id)
                )
            ],
            "doubles": doubles,
            "returns": [
                action
                for (action,) in store.read_now(
                    lambda c: c.execute(
                        "SELECT action FROM journal WHERE action IN ('action.held',"
                        "'action.resumed','action.released') ORDER BY seq"
                    ).fetchall()
                )
            ],
            "chain": store.read_now(verify_chain.verify).ok,
        }


def main() -> None:
    # Loaded once for all children: they are to die in a session, not while they load.
    count_tokens("loads the vocabulary")
    for name in ("orient.compile_packet", "orient.fact_columns", "decide.offline.script_model"):
        importlib.import_module(f"cockpit.{name}")
    project, user_dir, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    first, last, step = (int(word) for word in sys.argv[4:7])
    for number in range(first, last + 1, step):
        root = project.parent / f"kill-{number}"
        shutil.copytree(project, root)
        died = die(root, user_dir, model, number)
        resumed = resume(root, user_dir, model)
        print(
            json.dumps({"n": number, "died": died, "resumed": resumed, **world(root)}), flush=True
        )
        shutil.rmtree(root)
        if died == 0:
            return


if __name__ == "__main__":
    main()
