"""Large things in the real program: a store with a diff of 10,000 lines, 1,000 proposals and 10,000 tasks.

The application runs on it without a terminal. The palette is opened over the diff, the list of proposals, the
board and the queue are opened and left; each beside a plain Textual screen with the same lines in a ``Log``.
Counted is the CPU of the whole process, the threads that read the store included, until the frame is written
that shows what was asked for.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from large_things import KEY_MS, KEYS, LONGEST_S, LOOK_S, OPEN_MS, RUNS, SIZE, log_costs, texts
from measure import Row, at, row
from msgspec.structs import replace
from textual.events import Key
from textual.pilot import Pilot
from textual.screen import Screen

from cockpit.app.actions.palette import Palette
from cockpit.app.application import CockpitApp
from cockpit.app.screens.board_screen import BoardScreen
from cockpit.app.screens.lists.proposals_screen import ProposalsScreen
from cockpit.app.screens.queue_screen import QueueScreen
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import tasks, work_queue
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals

PROPOSALS = 1_000
TASKS = 10_000


class Counted(CockpitApp):
    """Counts its frames."""

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012 -- Textual's way

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.frames = 0

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self.frames += 1


def rows() -> list[Row]:
    """The table of this bench."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    table: list[Row] = []
    _, after = texts()
    titles = [f"P{number} edit src/module_{number}.py" for number in range(PROPOSALS)]
    named = [f"T-{number} Token expiry edge case {number}" for number in range(TASKS)]
    floors = [await log_costs(lines) for lines in (after.splitlines(), titles, named)]
    async with _opened(_diff) as pilot:
        table += await _palette(pilot, floors[0])
        # What the diff itself would show, in the list beside it.
        table += await _screen(
            pilot, "the diff in the list of proposals", "alt+q", _proposals, floors[0], "J"
        )
    async with _opened(_waiting) as pilot:
        table += await _screen(pilot, "1,000 proposals", "alt+q", _proposals, floors[1])
    async with _opened(_backlog) as pilot:
        table += await _screen(pilot, "the board with 10,000 tasks", "ctrl+t", _board, floors[2])
        table += await _screen(pilot, "the queue of 10,000 tasks", "f9", _queue, floors[2])
    return table


@asynccontextmanager
async def _opened(fill: Callable[[Tx, str], None]) -> AsyncIterator[Pilot[Any]]:
    """The application on a store that ``fill`` wrote, following the session that it got."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        settings = RuntimeSettings(user_dir=Path(folder))
        async with open_runtime(locate_project(root), settings) as runtime:
            session_id = await runtime.start("investigate", model="offline")
            await runtime.store.write(lambda tx: fill(tx, session_id))
            app = Counted(runtime)
            async with app.run_test(size=SIZE) as pilot:
                app.attach(session_id)
                await _until(lambda: app.feed.ready and app.state.unread is None)
                await pilot.pause()
                gc.collect()
                gc.freeze()
                yield pilot


def _diff(tx: Tx, session_id: str) -> None:
    before, after = texts()
    diff = {"path": "src/module.py", "before": before, "after": after}
    _propose(tx, session_id, "p-diff", "edit src/module.py", "medium", [diff])


def _waiting(tx: Tx, session_id: str) -> None:
    for number in range(PROPOSALS):
        path = f"src/module_{number}.py"
        diff = {"path": path, "before": "value = 1\n", "after": "value = 2\n"}
        _propose(tx, session_id, f"p-{number}", f"edit {path}", "low", [diff])


def _propose(
    tx: Tx, session_id: str, proposal_id: str, title: str, risk: str, diffs: list[dict[str, str]]
) -> None:
    body = {
        "type": "edit_file", "summary": title, "fields": [], "body": "", "diffs": diffs,
        "notes": [], "payload": {"path": diffs[0]["path"]},
    }  # fmt: skip
    proposals.create(
        tx, proposal_id=proposal_id, kind="action", session_id=session_id, wave_id="",
        title=title, body=body, risk=risk,
    )  # fmt: skip


def _backlog(tx: Tx, _: str) -> None:
    states = ("todo", "in_progress", "blocked", "done")
    for number in range(1, TASKS + 1):
        draft = tasks.new_draft(f"Token expiry edge case {number}")
        tasks.insert(tx, replace(draft, status=states[number % 4]), number=number, by="person")
    work_queue.rebuild(tx)


async def _palette(pilot: Pilot[Any], floor: tuple[float, float]) -> list[Row]:
    app, opened, keys, left = pilot.app, [], [], []
    for _ in range(RUNS + 2):
        opened.append(await _cost(pilot, "ctrl+p", lambda: isinstance(app.screen, Palette)))
        for letter in "settings":
            keys.append(await _cost(pilot, letter, lambda: True))
        left.append(await _cost(pilot, "escape", lambda: not isinstance(app.screen, Palette)))
    return _rows("the palette over a diff of 10,000 lines", opened, keys, left, floor)


async def _screen(
    pilot: Pilot[Any],
    name: str,
    key: str,
    is_drawn: Callable[[Screen[Any]], bool],
    floor: tuple[float, float],
    *moves: str,
) -> list[Row]:
    app, opened, keys, left = pilot.app, [], [], []
    moves = moves or ("pagedown", "down")
    for _ in range(RUNS + 1):
        opened.append(await _cost(pilot, key, lambda: is_drawn(app.screen)))
        for number in range(KEYS):
            keys.append(await _cost(pilot, moves[number % len(moves)], lambda: True))
        left.append(await _cost(pilot, "escape", lambda: app.screen is app.main))
    return _rows(name, opened, keys, left, floor)


def _proposals(screen: Screen[Any]) -> bool:
    return isinstance(screen, ProposalsScreen) and bool(screen.rows)


def _board(screen: Screen[Any]) -> bool:
    return isinstance(screen, BoardScreen) and bool(screen.body.view.columns)


def _queue(screen: Screen[Any]) -> bool:
    return isinstance(screen, QueueScreen) and bool(screen.first_focus.rows)


def _rows(
    name: str, opened: list[float], keys: list[float], left: list[float], floor: tuple[float, float]
) -> list[Row]:
    # The first round loads modules.
    first, key = median(opened[1:]), at(0.95, keys[len(keys) // len(opened) :])
    return [
        row(f"{name}: opened", 1000 * first, "ms CPU", most=OPEN_MS),
        row("… ratio to the Log", first / floor[0], "×"),
        row("… a key behind it (p95)", 1000 * key, "ms CPU", most=KEY_MS),
        row("… ratio to the Log", key / floor[1], "×"),
        row("… left", 1000 * median(left[1:]), "ms CPU", most=OPEN_MS),
    ]


async def _cost(pilot: Pilot[Any], key: str, is_there: Callable[[], bool]) -> float:
    """Seconds of the processor from a key until ``is_there`` and the frame after that is written."""
    app = pilot.app
    character = key if len(key) == 1 else None
    before, started = app.frames, time.process_time()
    app.post_message(Key(key, character))
    await _until(lambda: is_there() and app.frames > before)
    await pilot.pause()
    return time.process_time() - started


async def _until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST_S
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError("nothing was drawn")
        await asyncio.sleep(LOOK_S)
