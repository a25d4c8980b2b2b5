"""A project of 50,000 files: a symbol that occurs nowhere beside ``git grep``, and completions of ``@``."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from measure import Row, row

from cockpit.core.project_paths import locate_project
from cockpit.loop.file_completions import FileCompletions
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import parse_item
from cockpit.observe.sources.symbol import SymbolSource

FOLDERS, FILES_EACH = 500, 100
RUNS = 5
LOOK_S = 0.001
_NAME = "NoSuchNameAnywhere"
_TEXT = (
    "def name_{0}_{1}(value):\n    return value + {1}\n\n\nclass Thing{1}:\n    attribute = {0}\n"
)


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        write_project(root)
        ours, git = [], []
        for _ in range(RUNS + 1):
            git.append(measure(lambda: grep(root)))
            ours.append(measure(lambda: asyncio.run(look_up(root))))
        first, warmed, blocked = asyncio.run(complete(root))
    return [
        row("symbol without a hit, CPU with git's", median(ours[1:]), "s"),
        row("git grep, CPU", median(git[1:]), "s"),
        row("symbol / git grep", median(ours[1:]) / median(git[1:]), "×", most=1.2),
        row("@: the first list, nothing listed before", 1000 * first, "ms"),
        row("@: the first list after the start", 1000 * warmed, "ms", most=50),
        row("@: the event loop's longest wait meanwhile", 1000 * blocked, "ms", most=50),
    ]


def write_project(root: Path) -> None:
    """Write and commit the files."""
    for number in range(FOLDERS):
        folder = root / f"package_{number:03}"
        folder.mkdir()
        for file in range(FILES_EACH):
            (folder / f"module_{file:02}.py").write_text(_TEXT.format(number, file) * 6, "utf-8")
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "Files")):
        subprocess.run(["git", *arguments], cwd=root, check=True)


def grep(root: Path) -> None:
    """What a person would run."""
    subprocess.run(["git", "grep", "-lF", _NAME], cwd=root, check=False)


async def look_up(root: Path) -> None:
    """Look the symbol up, in vain."""
    try:
        await SymbolSource().fetch(parse_item(f"symbol:{_NAME}"), ProjectSnapshot.at(root))
    except SourceFailed:
        return
    raise AssertionError("the symbol was there")


def measure(work: object) -> float:
    """CPU seconds of ``work``, programs that it starts included."""
    before = used()
    work()  # type: ignore[operator]
    return used() - before


def used() -> float:
    """CPU seconds of this process and of those that it waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


async def complete(root: Path) -> tuple[float, float, float]:
    """Seconds to the first list without and with the files listed, and the loop's longest wait."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(LOOK_S)
            longest = max(longest, time.perf_counter() - before - LOOK_S)

    watching = asyncio.create_task(watch())
    completions = FileCompletions(locate_project(root))
    took = []
    for _ in range(2):
        before = time.perf_counter()
        assert len(await completions.find("module", 50)) == 50
        took.append(time.perf_counter() - before)
    watching.cancel()
    return took[0], took[1], longest
