"""Run sessions in forked children that die by SIGKILL after the Nth commit, and resume them here.

``kill_driver.py FOLDER`` reads ``stories.json`` there and prints one JSON line for each story and N:
the project in the end.
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
from typing import Any

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.context import profile_changes, profiles
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import outbox, sessions, waves

_DOUBLES = (
    "SELECT count(*) FROM (SELECT 1 FROM action_receipts WHERE terminal=1"
    " GROUP BY idempotency_key HAVING count(*)>1)"
)
_RETURNS = (
    "SELECT json_extract(detail_json, '$.status') FROM journal WHERE action='action.kept'"
    " ORDER BY seq"
)


async def run(root: Path, model: str, words: str, die_after: int | None) -> None:
    settings = RuntimeSettings(user_dir=root.parent / "user")
    async with open_runtime(locate_project(root), settings) as runtime:
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1
            if counted == die_after:
                os.kill(os.getpid(), signal.SIGKILL)

        runtime.store.on_commit(count)
        last = await runtime.store.read(sessions.find_latest)
        session_id = last.session_id if last else ""
        if not last:
            session_id = await runtime.start(words, model=model, policy="all", interactive=False)
        await runtime.run(session_id)


def die(root: Path, model: str, words: str, die_after: int) -> int:
    """Run the session in a forked child, and return its exit code: 0 if it survived."""
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(run(root, model, words, die_after))
            os._exit(0)
        except BaseException as error:
            print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def describe(root: Path) -> dict[str, Any]:
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=root, check=True, capture_output=True, text=True
    )
    with Store.open(locate_project(root).database) as store:
        return {"log": log.stdout.splitlines(), **store.read_now(_describe_store)}


def _describe_store(connection: Any) -> dict[str, Any]:
    session = sessions.select_recent(connection, 1)[0]
    run_waves = waves.select_for_session(connection, session.session_id)
    history = profiles.select_versions(connection, session.profile_id)
    changes = profile_changes.select_changes(connection)
    begun = [
        profile_changes.load_for_version(connection, session.profile_id, each.applied_version)
        for each in changes
    ]
    actions = outbox.select_for_session(connection, session.session_id)
    return {
        "status": session.status,
        "phases": sorted(action.phase for action in actions),
        "waves": [wave.phase for wave in run_waves],
        "doubles": connection.execute(_DOUBLES).fetchone()[0],
        "returns": [action for (action,) in connection.execute(_RETURNS)],
        "profiles": [wave.profile_version for wave in run_waves],
        "versions": [each.version for each in history],
        "is_back": history[0].digest == history[-1].digest,
        "changes": [(each.status, found.waves_begun) for each, found in zip(changes, begun, strict=True)],
        "chain": verify_chain.verify(connection).ok,
    }  # fmt: skip


def main(folder: Path) -> None:
    # Loaded once for all children: they are to die in a session, not while they load.
    count_tokens("loads the vocabulary")
    for name in ("orient.compile_packet", "orient.fact_columns", "decide.offline.script_model"):
        importlib.import_module(f"cockpit.{name}")
    for name, story in json.loads((folder / "stories.json").read_text()).items():
        model, words = f"script:{folder / name}.toml", story["words"]
        for number in story["commits"]:
            root = folder / f"{name}-{number}"
            shutil.copytree(folder / "calc", root)
            died = die(root, model, words, number)
            asyncio.run(run(root, model, words, None))
            file = (root / "calc.py").read_text()
            seen = {"story": name, "n": number, "died": died, "file": file, **describe(root)}
            print(json.dumps(seen), flush=True)
            shutil.rmtree(root)
            if died == 0:
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]))
