"""Observing through the whole loop: kills, hung and failing sources, refusals, cancellation, and what
is granted again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from observe_loop import PATIENCE_S, looked, runtime_on, scenario, seen, when
from observe_world import Project

from cockpit.core.project_paths import locate_project
from cockpit.loop.phases.run_observation_jobs import BATCH_JOBS
from cockpit.observe.fan_out import ObserveLimits

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).with_name("observe_kill_driver.py")
FILES = BATCH_JOBS + 50
"""Two batches of jobs."""

HANGING_GH = f"""#!{sys.executable}
import json, os, pathlib, signal, sys
if sys.argv[1:3] == ["pr", "view"]:
    print(json.dumps({{"number": 1, "title": "t", "body": "b", "files": [], "additions": 1}}))
else:
    place = pathlib.Path(__file__).parent
    (place / "mine").write_text(str(os.getpid()))
    (place / "mine").rename(place / "pid")
    signal.pause()
"""


def many(root: Path) -> Project:
    project = Project(root).git_init()
    for number in range(FILES):
        project.write(f"many/m{number:04}.py", f"def number_{number}():\n    return {number}\n")
    project.commit("many")
    return project


async def test_after_a_kill_in_the_middle_only_jobs_without_facts_run_again(tmp_path):
    """What had been read is taken away before the session goes on: nothing reads it a second time,
    and the packets are those of a session that nobody killed."""
    model = scenario(tmp_path, ["file:many/*.py", "log:HEAD"])
    project = many(tmp_path / "project")
    killed = tmp_path / "killed"
    shutil.copytree(project.root, killed, symlinks=True)
    straight = await looked(project.root, model)
    assert [row.status for row in straight[1].jobs] == ["done"] * (FILES + 1)

    died = subprocess.run(
        [sys.executable, str(DRIVER), str(killed), model],
        env={**os.environ, "PYTHONPATH": str(DRIVER.parents[1])},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    with closing(sqlite3.connect(locate_project(killed).database)) as store:
        done = store.execute(
            "SELECT json_extract(provenance_json,'$.path') FROM observed_facts"
            " WHERE source_type='file'"
        ).fetchall()
    assert done, "it died between two batches: at least the log was still to be read"
    for (path,) in done:
        (killed / path).unlink()
    async with runtime_on(killed) as runtime:
        session_id = died.stdout.strip()
        ended = await asyncio.wait_for(runtime.run(session_id), PATIENCE_S)
        assert ended.result["status"] == "done"
        after = seen(runtime.store, session_id)
    assert [row.status for row in after[1].jobs] == ["done"] * (FILES + 1)
    assert [wave.digest for wave in after] == [wave.digest for wave in straight]


@pytest.fixture
def hanging(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pull request that can never be read; gives where the program's id goes."""
    project.git("remote", "add", "origin", "https://github.com/acme/api.git")
    program = tmp_path / "hanging" / "gh"
    program.parent.mkdir()
    program.write_text(HANGING_GH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program.with_name("pid")


def runs(pid_file: Path) -> bool:
    """Whether the program that writes its id there has begun, and is alive."""
    try:
        os.kill(int(pid_file.read_text()), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


async def test_a_hung_source_delays_only_itself(project, tmp_path, hanging):
    model = scenario(tmp_path, ["pr:1", "file:README.md", "tree:."])
    limits = ObserveLimits(job_timeout_s=4.0)  # the others, among other tests, take less
    async with runtime_on(project.root, observe=limits) as runtime:
        others = when(runtime.store, lambda n: n.get("done") == 2 and n.get("planned") == 1)
        sid = await runtime.start("look into it", model=model, policy="reads", interactive=False)
        ended = await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
        assert ended.result["status"] == "done"
        assert others.is_set()
        (_, second) = seen(runtime.store, sid)
    assert not runs(hanging)
    assert second.job("pr:1").status == "timed_out"
    assert second.job("file:README.md").status == second.job("tree:.").status == "done"
    assert "file:README.md" in second.held and "tree:." in second.held
    counted = second.journal["observation.jobs"]
    assert (counted["done"], counted["timed_out"]) == (2, 1)
    assert "pr:1: could not be read: it took longer than" in second.told()


async def test_cancelling_in_the_middle_leaves_nothing_behind_and_the_session_goes_on(
    project: Project, tmp_path: Path, hanging: Path
) -> None:
    model = scenario(tmp_path, ["pr:1", "file:README.md"])
    async with runtime_on(project.root) as runtime:
        half = when(runtime.store, lambda n: n.get("done") == 1 and n.get("planned") == 1)
        sid = await runtime.start("look into it", model=model, policy="reads", interactive=False)
        before = asyncio.all_tasks()
        running = asyncio.create_task(runtime.run(sid))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await half.wait()
                while not runs(hanging):
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert not runs(hanging)
        assert asyncio.all_tasks() <= before
    program = hanging.with_name("gh")
    program.write_text(HANGING_GH.replace("signal.pause()", "sys.exit(1)"))
    async with runtime_on(project.root) as runtime:
        ended = await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
        assert ended.result["status"] == "done"
