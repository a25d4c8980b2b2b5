"""What the sandbox costs: the same command confined and not, and a git that reads a checkout, in turns.

CPU is that of this process and of what it started. The ratio of a command that does nothing is the worst
there is; that of one that works for a tenth of a second is what a build sees.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from measure import Row, row

from cockpit.access.reading_sandbox import use_reading_sandbox
from cockpit.access.run_program import run_git, run_program
from cockpit.act.sandbox.read_checkout import CheckoutSandbox
from cockpit.act.sandbox.run_confined import run_confined
from cockpit.act.workspace import Workspace, open_workspace

RUNS = 15
FILES = 200
MOST_COMMAND_MS = 25
MOST_READING_MS = 10
_WORKS = "sum(range(3_000_000))"

Work = Callable[[], Awaitable[object]]


def rows() -> list[Row]:
    """The table of this bench; one row that says why where there is no sandbox."""
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        _make_project(root)
        before = _used()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        ground = await open_workspace(root, environment={**os.environ, "PATH": path})
        detection = _used() - before
        if not ground.sandbox.works:
            return [row(f"no sandbox here: {ground.sandbox.missing}", 0, "")]
        nothing = ("/bin/true",)
        works = ("python3", "-c", _WORKS)
        plain, confined = await _in_turns(
            lambda: _plain(ground, nothing), lambda: _confined(ground, nothing)
        )
        alone, inside = await _in_turns(
            lambda: _plain(ground, works), lambda: _confined(ground, works)
        )
        read, read_inside = await _in_turns(
            lambda: _read(root, confined=False), lambda: _read(root, confined=True)
        )
    return [
        row("detection, once a process", 1000 * detection, "ms CPU"),
        row("a command that does nothing, plain", 1000 * plain, "ms CPU"),
        row(
            "… over that in the sandbox", 1000 * (confined - plain), "ms CPU", most=MOST_COMMAND_MS
        ),
        row("… confined over plain", confined / plain, "×"),
        row("a command that works, plain", 1000 * alone, "ms CPU"),
        row("… confined over plain", inside / alone, "×", most=1.5),
        row(f"git status of {FILES} files, plain", 1000 * read, "ms CPU"),
        row(
            "… over that in the sandbox",
            1000 * (read_inside - read),
            "ms CPU",
            most=MOST_READING_MS,
        ),
        row("… confined over plain", read_inside / read, "×"),
    ]


def _make_project(root: Path) -> None:
    for number in range(FILES):
        (root / f"{number}.txt").write_text(f"{number}\n", encoding="utf-8")
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=B", "-c", "user.email=b@example.invalid", "commit", "-q", "-m", "Files"),
    ):
        subprocess.run(["git", *words], cwd=root, check=True)


async def _plain(ground: Workspace, argv: tuple[str, ...]) -> None:
    done = await run_program(argv, cwd=ground.root, timeout_s=60, env=ground.environment)
    assert done.ok, done.error_text


async def _confined(ground: Workspace, argv: tuple[str, ...]) -> None:
    ended = await run_confined(ground.sandbox, argv, ground.root, ground.environment, timeout_s=60)
    assert ended.finished.ok, ended.finished.error_text


async def _read(root: Path, *, confined: bool) -> None:
    use_reading_sandbox(CheckoutSandbox() if confined else None)
    try:
        assert (await run_git("status", "--porcelain", cwd=root)).ok
    finally:
        use_reading_sandbox(None)


async def _in_turns(*works: Work) -> list[float]:
    """Median CPU seconds of each of ``works``."""
    took: list[list[float]] = [[] for _ in works]
    for turn in range(RUNS + 1):
        for place, work in enumerate(works):
            before = _used()
            await work()
            if turn:
                took[place].append(_used() - before)
    return [median(times) for times in took]


def _used() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))
