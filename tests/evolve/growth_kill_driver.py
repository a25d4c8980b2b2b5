"""Kills a process of a task that lacks a tool at a named moment, and goes on with the session.

The test calls it as a process of its own: ``growth_kill_driver.py PROJECT USER_DIR MODEL MOMENT``. At the
moment (an event type and how many of it) a child dies by SIGKILL; this process goes on, and prints in JSON
what the world looks like then, and what was stored when the child died. With ``evolve`` in
COCKPIT_TEST_GROWTH it is a growth in a session of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import growth_story as story
from msgspec.structs import replace

from cockpit.access import user_presence
from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project
from cockpit.evolve.evolve import EvolveRefused, begin_evolution, evolve, find_growth
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import proposals, sessions

OWN_SESSION = os.environ.get("COCKPIT_TEST_GROWTH") == "evolve"
TOLD = (
    *("evolution.answered", "proposal.created", "proposal.decided"),
    *("action.dispatched", "approval.changed", "action.confirmed", "evolution.ended"),
    "session.completed",
)


async def adopt(runtime: Runtime) -> None:
    """Be the user, who adopts what grew."""
    while True:
        for proposal in await runtime.store.read(proposals.select_pending):
            if proposal.body.get("type") == ADOPT:
                await runtime.approve(proposal.proposal_id)
        await asyncio.sleep(0.02)


async def run(root: Path, user_dir: Path, model: str, moment: tuple[str, int] | None) -> None:
    environment = {"COCKPIT_CONFIG_DIR": str(user_dir)}
    settings = load_settings(None, env=environment, flags={"[model] name": model}).runtime
    async with open_runtime(locate_project(root), replace(settings, skills_most=0)) as runtime:
        if moment is not None:

            def count() -> None:
                (seen,) = runtime.store.read_now(
                    lambda c: c.execute(
                        "SELECT count(*) FROM journal WHERE action=?", (moment[0],)
                    ).fetchone()
                )
                if seen >= moment[1]:
                    os.kill(os.getpid(), signal.SIGKILL)

            runtime.store.on_commit(count)
        if OWN_SESSION:
            await grow_alone(runtime)
            return
        last = await runtime.store.read(sessions.find_latest)
        session_id = last.session_id if last else await runtime.start(story.TASK, policy="all")
        user = asyncio.create_task(adopt(runtime))
        await runtime.run(session_id)
        user.cancel()


async def grow_alone(runtime: Runtime) -> None:
    """Begin a growth in a session of its own, or go on with the one there is."""
    engine = runtime.engine
    if await runtime.store.read(sessions.find_latest) is None:
        session_id = await begin_evolution(engine, "Extract the IP addresses of a .pcab file")
    else:
        try:
            session_id = (await find_growth(engine)).session_id
        except EvolveRefused:
            return  # opening the project has done what was left: the tool is adopted
    user, work = (
        asyncio.create_task(adopt(runtime)),
        asyncio.create_task(evolve(engine, session_id)),
    )
    await asyncio.wait({user, work}, return_when=asyncio.FIRST_COMPLETED)
    if user.done():
        user.result()
    user.cancel()
    await work


def die(root: Path, user_dir: Path, model: str, moment: tuple[str, int]) -> int:
    """Run the session in a forked child; returns its exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(run(root, user_dir, model, moment))
            os._exit(0)
        except BaseException as error:
            print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def world(root: Path) -> dict[str, object]:
    from cockpit.store.db.database import Store

    def read(connection: sqlite3.Connection) -> dict[str, object]:
        rows = journal.rows(connection, limit=5000)
        counts = Counter(row.action for row in rows)
        last = [row for row in rows if row.action == "session.completed"]
        return {
            "actions": [row.action for row in rows if row.action in TOLD],
            "asked": sum(row.action == "model.completed" and not row.wave_id for row in rows),
            "confirmed": counts["action.confirmed"],
            "approved": counts["approval.changed"],
            "summary": last[-1].detail.summary if last else "",
            "chain": verify_chain.verify(connection).ok,
        }

    with Store.open(locate_project(root).database) as store:
        return store.read_now(read)


def main() -> None:
    user_presence.assume_user()
    root, user_dir, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    action, _, count = sys.argv[4].partition("*")
    died = die(root, user_dir, model, (action, int(count or 1)))
    stored = world(root)["actions"]
    asyncio.run(run(root, user_dir, model, None))
    print(json.dumps({"died": died, "stored": stored, **world(root)}))


if __name__ == "__main__":
    main()
