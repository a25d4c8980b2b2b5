"""What the engine itself costs a wave, with a model that answers at once."""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from pathlib import Path

from measure import Row, row

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings

WAVES = 60
SCENARIO = """
[[turn]]
text = "Once more."
[[turn.call]]
name = "request_context"
arguments = {{ purpose = "bench", question = "what is in it?", scope = ["file:a.py"], escalation = "" }}
[[turn]]
when = {{ wave_from = {last} }}
[[turn.call]]
name = "finish"
arguments = {{ status = "done", summary = "done" }}
"""


def rows() -> list[Row]:
    """The table of this bench."""
    asyncio.run(_run(3))
    ours, theirs, wall = asyncio.run(_run(WAVES))
    return [
        row("engine overhead of a wave", ours, "ms CPU", most=10),
        row("the programs a wave runs (git)", theirs, "ms CPU"),
        row("a wave with an instant model, whole", wall, "ms"),
    ]


async def _run(count: int) -> tuple[float, float, float]:
    """Milliseconds a wave: CPU of this process, CPU of its programs, wall."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        (root / "a.py").write_text("print('a')\n", encoding="utf-8")
        script = Path(folder) / "scenario.toml"
        script.write_text(SCENARIO.format(last=count), encoding="utf-8")
        settings = RuntimeSettings(
            policy="all", limits=Limits(max_waves=count + 5), user_dir=Path(folder)
        )
        async with open_runtime(locate_project(root), settings) as runtime:
            session_id = await runtime.start(
                "investigate", model=f"script:{script}", interactive=False
            )
            cpu, wall = time.process_time(), time.perf_counter()
            children = _children()
            session = await runtime.run(session_id)
            took = time.process_time() - cpu, _children() - children, time.perf_counter() - wall
            (made,) = await runtime.store.read(
                lambda connection: connection.execute("SELECT count(*) FROM wave_runs").fetchone()
            )
    if session.result.get("status") != "done" or made != count:
        raise RuntimeError(f"the bench's session ended {session.result} after {made} waves")
    own, programs, whole = (1000 * part / count for part in took)
    return own, programs, whole


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
