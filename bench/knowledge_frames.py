"""Frames of the real screen while its process indexes 5,000 chunks, and how soon a changed file is found.

The real application on a real store, drawn without a terminal: letters are typed into the prompt, and the
time is taken from a letter to the frame that shows it. Meanwhile a search of the knowledge screen indexes a
project of 5,000 sections in a thread, then files are followed. The time for which the system gave the
screen's thread no processor is told apart: that is the machine's load, not the index.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from keypress import LOOK_S, Watched
from measure import Row, at, row
from textual.events import Key

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings

SECTIONS = 5_000
KEYS = 100
CHANGES = 5
BETWEEN_S = 0.01
SIZE = (150, 42)
PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Frame:
    """Seconds from a key to its frame, and those of them in which the thread had a processor or slept."""

    waited: float
    ours: float


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        idle, busy, chunks, took, found = asyncio.run(_run(Path(folder)))
    table = [row("chunks indexed beside the screen", chunks, "", least=SECTIONS)]
    table += [row("… in", took, "s"), row("frames drawn meanwhile", len(busy), "", least=20)]
    for name, frames, bar in (("nothing else runs", idle, None), ("it indexes", busy, 33.0)):
        ours = [1000 * frame.ours for frame in frames]
        waited = [1000 * frame.waited for frame in frames]
        table += [
            row(f"key → frame while {name} (p95)", at(0.95, ours), "ms", most=bar),
            row(f"key → frame while {name} (longest)", max(ours), "ms", most=bar),
            row("… with the waits for a processor (p95)", at(0.95, waited), "ms"),
            row("… with the waits for a processor (longest)", max(waited), "ms"),
        ]
    table.append(row("a changed file is found after (median)", median(found), "s", most=1))
    return table


async def _run(
    folder: Path,
) -> tuple[Sequence[Frame], Sequence[Frame], int, float, Sequence[float]]:
    project = folder / "project"
    project.mkdir()
    for number in range(SECTIONS // 10):
        parts = [
            f"## Part {number}.{part}\n\nWhat {number} and {part} have in common, in {part} lines.\n"
            for part in range(10)
        ]
        (project / f"doc-{number:04}.md").write_text("\n".join(parts), "utf-8")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    settings = RuntimeSettings(user_dir=folder)
    async with open_runtime(locate_project(project), settings) as runtime:
        app = Watched(runtime)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause(1)
            for _ in range(KEYS):
                await _type(app, "a")
            idle = [await _type(app, "b") for _ in range(KEYS)]
            started = time.perf_counter()
            searching = asyncio.create_task(_search(runtime))
            busy: list[Frame] = []
            while not searching.done():
                busy.append(await _type(app, "c"))
            chunks, ended = await searching
            found = [await _find_change(runtime, project, number) for number in range(CHANGES)]
            return idle, busy, chunks, ended - started, found


async def _type(app: Watched, letter: str) -> Frame:
    """Type a letter, and wait for the frame that shows it."""
    prompt = app.main.prompt
    before = prompt.text
    app.painted.clear()
    denied, started = _denied_s(), time.perf_counter()
    app.post_message(Key(letter, letter))
    while prompt.text == before or not app.painted:
        await asyncio.sleep(LOOK_S)
    waited = app.painted[-1] - started
    ours = waited - (_denied_s() - denied)
    await asyncio.sleep(BETWEEN_S)
    return Frame(waited, max(0.0, ours))


def _denied_s() -> float:
    """Seconds for which this thread could have run and had no processor; 0 where the system does not say."""
    try:
        fields = Path("/proc/thread-self/schedstat").read_text("ascii").split()
    except OSError:
        return 0.0
    return int(fields[1]) / 1e9


async def _search(runtime: Runtime) -> tuple[int, float]:
    desk = await runtime.knowledge()
    await desk.search("what do they have in common")
    return (await desk.read_state()).counts.chunks, time.perf_counter()


async def _find_change(runtime: Runtime, project: Path, number: int) -> float:
    """Seconds from a file's change to the moment at which the index has it, with nobody asking for it."""
    librarian = runtime.engine.librarian
    await asyncio.sleep(1)
    word = f"zebra{number}"
    started = time.perf_counter()
    (project / f"doc-{number:04}.md").write_text(f"# Changed\n\nA new word: {word}.\n", "utf-8")
    while time.perf_counter() - started < PATIENCE_S:
        if await librarian.search(word, limit=1, threshold=0.5):
            break
        await asyncio.sleep(0.02)
    return time.perf_counter() - started
