"""Runs a session that shifts its attention in children that die after the Nth commit, then goes on.

``adapt_kill_driver.py PROJECT USER_DIR MODEL FIRST LAST STEP``: one JSON line for every N.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from adapt_world import BUDGET

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.context import profile_changes, profiles
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import sessions, waves


async def run(root: Path, user_dir: Path, model: str, die_after: int | None) -> None:
    settings = RuntimeSettings(user_dir=user_dir, token_budget=BUDGET)
    async with open_runtime(locate_project(root), settings) as runtime:
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1
            if die_after is not None and counted >= die_after:
                os.kill(os.getpid(), signal.SIGKILL)

        runtime.store.on_commit(count)
        last = await runtime.store.read(sessions.find_latest)
        if last is None:
            begun = await runtime.start(
                "implement a watch", model=model, policy="all", interactive=False
            )
        await runtime.run(last.session_id if last else begun)


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
    with Store.open(locate_project(root).database) as store:
        session = store.read_now(lambda c: sessions.select_recent(c, 1))[0]
        run_under = store.read_now(lambda c: waves.select_for_session(c, session.session_id))
        history = store.read_now(lambda c: profiles.select_versions(c, session.profile_id))
        changes = store.read_now(profile_changes.select_changes)
        return {
            "status": session.status,
            "waves": [wave.profile_version for wave in run_under],
            "versions": [one.version for one in history],
            "same": history[0].digest == history[-1].digest,
            "changes": [change.status for change in changes],
            "begun": [
                store.read_now(
                    lambda c, change=change: profile_changes.load_for_version(
                        c, session.profile_id, change.applied_version
                    )
                ).waves_begun
                for change in changes
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
        told = {"n": number, "died": died, "resumed": resumed, **world(root)}
        print(json.dumps(told), flush=True)
        shutil.rmtree(root)
        if died == 0:
            return


if __name__ == "__main__":
    main()
