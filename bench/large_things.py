"""Large things on the screen: a diff of 10,000 lines, a conversation of 10,000 messages, a list of 1,000
proposals and a board of 10,000 tasks. Each is opened and scrolled, beside a plain Textual screen with the
same lines in a ``Log``; diffs are left, too.

Seconds of the processor are counted, so that what else the machine does is not a part of it.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from measure import Row, at, row
from textual.app import App, ComposeResult
from textual.events import Key
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Log

import themes
from widgets.conversation.conversation import Conversation
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.views import FileDiffView, ProposalView, QueueView, TurnView
from widgets.work.kanban import Kanban
from widgets.work.task_card_views import CardView, ColumnView, KanbanView
from widgets.work.task_views import QueuedView
from widgets.work.two_line_list import TwoLineList

LINES = 10_000
MESSAGES = 10_000
PROPOSALS = 1_000
TASKS = 10_000
KEYS = 30
LOOK_S = 0.002
LONGEST_S = 20.0
RUNS = 3
SIZE = (160, 45)
OPEN_MS = 150
KEY_MS = 33
EMPTY = QueueView()


class Stage(App[None]):
    """One widget in the colours of cockpit."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, shown: Widget) -> None:
        super().__init__()
        self._shown = shown
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = themes.DEFAULT
        self.frames = 0

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self.frames += 1

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self._shown

    def on_mount(self) -> None:
        """Take what was loaded out of the collector's rounds, as the application does at its start."""
        gc.collect()
        gc.freeze()


def rows() -> list[Row]:
    """The table of this bench."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    before, after = texts()
    changed = _queue(FileDiffView("src/module.py", before, after))
    created = _queue(FileDiffView("src/module.py", None, after))
    table: list[Row] = []
    plain_open, plain_key = await log_costs(after.splitlines())
    table += [
        row("10,000 lines in a plain Log: opened", 1000 * plain_open, "ms CPU"),
        row("… a key behind it (p95)", 1000 * plain_key, "ms CPU"),
    ]
    for name, queue in (("a diff of 10,000 lines", changed), ("a new file of 10,000", created)):
        opened, key, left = await _panel(queue)
        table += [
            row(f"{name}: opened", 1000 * opened, "ms CPU", most=OPEN_MS),
            row("… ratio to the Log", opened / plain_open, "×"),
            row("… a key behind it (p95)", 1000 * key, "ms CPU", most=KEY_MS),
            row("… ratio to the Log", key / plain_key, "×"),
            row("… left", 1000 * left, "ms CPU", most=OPEN_MS),
        ]
    turns = _turns()
    plain_open, plain_key = await log_costs(
        [text for turn in turns for text in turn.text.split("\n")]
    )
    opened, key = await _conversation(turns)
    table += [
        row("10,000 messages in a plain Log: opened", 1000 * plain_open, "ms CPU"),
        row("… a key behind it (p95)", 1000 * plain_key, "ms CPU"),
        row("10,000 messages: opened", 1000 * opened, "ms CPU"),
        row("… ratio to the Log", opened / plain_open, "×"),
        row("… a key behind it (p95)", 1000 * key, "ms CPU", most=KEY_MS),
        row("… ratio to the Log", key / plain_key, "×"),
    ]
    waiting = [f"P{number} edit src/module_{number}.py" for number in range(PROPOSALS)]
    listed, board = TwoLineList(), Kanban()
    rows_of = [
        QueuedView(f"P{n}", text, sign="?", why="medium risk") for n, text in enumerate(waiting)
    ]
    table += await _besidelog_costs(
        "1,000 waiting proposals",
        waiting,
        listed,
        lambda empty: listed.show(() if empty else rows_of),
    )
    tasks = [f"T-{number} Token expiry edge case {number}" for number in range(TASKS)]
    cards = [CardView(f"T-{number}", text) for number, text in enumerate(tasks)]
    columns = tuple(
        ColumnView(str(place), "ready", tuple(cards[place::4]), len(cards[place::4]))
        for place in range(4)
    )
    table += await _besidelog_costs(
        "10,000 tasks on the board",
        tasks,
        board,
        lambda empty: board.show(KanbanView() if empty else KanbanView(columns)),
    )
    return table


def texts() -> tuple[str, str]:
    """A file of :data:`LINES` lines before and after a change of every seventh."""
    lines = [
        f"def function_{number}(value, other={number}):\n"
        if number % 5 == 0
        else f"    value = compute(value, {number}) + 'text {number}'  # line {number}\n"
        for number in range(LINES)
    ]
    changed = [
        text.replace("compute", "calculate") if place % 7 == 0 else text
        for place, text in enumerate(lines)
    ]
    return "".join(lines), "".join(changed)


def _queue(diff: FileDiffView) -> QueueView:
    front = ProposalView("P1", "action", "write a file", "medium", diff.path, diffs=(diff,))
    return QueueView(front, 0, 1)


def _turns() -> list[TurnView]:
    return [
        TurnView(
            f"m:{number}",
            "agent" if number % 2 else "person",
            f"Message {number} says `name` and **more**.\n\n- one\n- two",
        )
        for number in range(MESSAGES)
    ]


async def _panel(queue: QueueView) -> tuple[float, float, float]:
    panel = ProposalPanel()
    opened, left, keys = [], [], []
    async with Stage(panel).run_test(size=SIZE) as pilot:
        panel.focus()
        for _ in range(RUNS + 1):
            opened.append(await _cost(pilot, lambda: panel.show(queue)))
            keys += await _keys(pilot, "pagedown", "j")
            left.append(await _cost(pilot, lambda: panel.show(EMPTY)))
    # The first one loads the modules of highlighting and compiles their patterns.
    return median(opened[1:]), at(0.95, keys), median(left[1:])


async def _conversation(turns: list[TurnView]) -> tuple[float, float]:
    pane = Conversation()
    async with Stage(pane).run_test(size=SIZE) as pilot:
        pane.focus()
        opened = [await _cost(pilot, lambda: pane.show(turns)) for _ in range(3)]
        return median(opened), at(0.95, await _keys(pilot, "pageup", "up"))


async def _besidelog_costs(
    name: str, lines: list[str], widget: Widget, show: Callable[[bool], None]
) -> list[Row]:
    """Rows of a widget whose content ``show`` puts in, or takes out, and of a Log with the same lines."""
    plain_open, plain_key = await log_costs(lines)
    opened, keys = [], []
    async with Stage(widget).run_test(size=SIZE) as pilot:
        widget.focus()
        for _ in range(RUNS + 1):
            opened.append(await _cost(pilot, lambda: show(False)))
            keys += await _keys(pilot, "pagedown", "j")
            await _cost(pilot, lambda: show(True))
    first = median(opened[1:])
    return [
        row(f"{name} in a plain Log: opened", 1000 * plain_open, "ms CPU"),
        row(f"{name}: opened", 1000 * first, "ms CPU", most=OPEN_MS),
        row("… ratio to the Log", first / plain_open, "×"),
        row("… a key behind it (p95)", 1000 * at(0.95, keys), "ms CPU", most=KEY_MS),
        row("… ratio to the Log", at(0.95, keys) / plain_key, "×"),
    ]


async def log_costs(lines: list[str]) -> tuple[float, float]:
    """CPU seconds of opening the lines in a plain Log, and of a key behind them (p95)."""
    log = Log()
    opened, keys = [], []
    async with Stage(log).run_test(size=SIZE) as pilot:
        log.focus()
        for _ in range(RUNS):
            opened.append(await _cost(pilot, lambda: log.write_lines(lines, scroll_end=False)))
            keys += await _keys(pilot, "pagedown", "down")
            log.clear()
            await pilot.pause()
    return median(opened), at(0.95, keys)


async def _keys(pilot: Pilot[Any], *names: str) -> list[float]:
    presses = [Key(names[number % len(names)], None) for number in range(KEYS)]
    return [await _cost(pilot, partial(pilot.app.post_message, press)) for press in presses]


async def _cost(pilot: Pilot[Any], work: Callable[[], object]) -> float:
    """Seconds of the processor until ``work`` is done and the frame is written that shows it."""
    app = pilot.app
    assert isinstance(app, Stage)
    before, started = app.frames, time.thread_time()
    until = time.monotonic() + LONGEST_S
    work()
    while app.frames == before:
        if time.monotonic() > until:
            raise TimeoutError("nothing was drawn")
        await asyncio.sleep(LOOK_S)
    await pilot.pause()
    return time.thread_time() - started
