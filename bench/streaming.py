"""What drawing an answer costs while it streams at 200 tokens a second, and typing beside Textual's own.

The real application on a real store, drawn without a terminal: a model that plays a written answer runs a
session, so that its fragments pass through the journal, the projection and the conversation's widgets.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from measure import Row, row
from textual.app import App
from textual.events import Key
from textual.widgets import TextArea

from cockpit.app.application import CockpitApp
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings

RATE = 200
WINDOW_S = 5.0
WINDOWS = 6
KEYS = 150
SIZE = (150, 42)
MOST_SHARE = 0.25
MOST_GROWTH = 1.2
MOST_TYPING = 1.5

_WORDS = "The change reads the file once and keeps **what** it `needs` of it until the next wave begins. "


class _Screen(CockpitApp):
    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012


class _Editor(App[None]):
    def compose(self):  # type: ignore[no-untyped-def]
        yield TextArea(id="prompt")

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        shares = asyncio.run(measure_streaming(Path(folder)))
    ours, theirs = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(asyncio.run(measure_screen_typing(Path(folder))))
        theirs.append(asyncio.run(type_into(_Editor(), lambda app: app.query_one(TextArea))))
    return [
        row("streaming 200 tokens/s, share of a processor, worst 5 s", max(shares), "", most=MOST_SHARE),
        row("… last over first third of the answer",
            median(shares[-2:]) / median(shares[:2]), "×", most=MOST_GROWTH),
        row("a key in the prompt, CPU", 1000 * median(ours), "ms"),
        row("a key in Textual's TextArea, CPU", 1000 * median(theirs), "ms"),
        row("typing, prompt / TextArea", median(ours) / median(theirs), "×", most=MOST_TYPING),
    ]  # fmt: skip


def write_answer(tokens: int) -> str:
    """A long answer: paragraphs, with a list or some code now and then."""
    words = _WORDS.split()
    parts: list[str] = []
    for number in range(tokens):
        parts.append(words[number % len(words)])
        if number % 60 == 59:
            parts.append("\n\n")
        if number % 300 == 149:
            parts.append("\n\n- one thing\n- another thing\n- a third\n\n")
        if number % 300 == 269:
            parts.append("\n\n```python\ndef area(a, b):\n    return a * b\n```\n\n")
    return " ".join(parts).replace("\n ", "\n")


async def measure_streaming(folder: Path) -> list[float]:
    """Shares of a processor, in each window of :data:`WINDOW_S` seconds."""
    root = folder / "project"
    root.mkdir()
    answer = write_answer(round(RATE * WINDOW_S * (WINDOWS + 2)))
    script = folder / "answer.toml"
    script.write_text(f"pace = {1 / RATE}\n[[turn]]\ntext = {json.dumps(answer)}\n", "utf-8")
    settings = RuntimeSettings(user_dir=folder)
    async with open_runtime(locate_project(root), settings) as runtime:
        session_id = await runtime.start(
            "Explain the change.", task_type="investigate", model=f"script:{script}"
        )
        app = _Screen(runtime, session_id=session_id)
        async with app.run_test(size=SIZE) as pilot:
            while not any(turn.streaming for turn in app.main.panes.conversation.turns):
                await pilot.pause(0.05)
            shares = []
            for _ in range(WINDOWS):
                began, used = time.perf_counter(), time.process_time()
                await asyncio.sleep(WINDOW_S)
                shares.append((time.process_time() - used) / (time.perf_counter() - began))
            assert any(turn.streaming for turn in app.main.panes.conversation.turns)
            return shares


async def measure_screen_typing(folder: Path) -> float:
    """CPU seconds of a key in the screen's prompt."""
    root = folder / "project"
    root.mkdir()
    async with open_runtime(locate_project(root), RuntimeSettings(user_dir=folder)) as runtime:
        return await type_into(_Screen(runtime), lambda app: app.main.prompt)


async def type_into(app: App[object], prompt: Callable[[App[object]], TextArea]) -> float:
    """CPU seconds from a key to the end of all that it causes, on average."""
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.5)
        text = prompt(app)
        before = time.process_time()
        for number in range(KEYS):
            letter = "abcdefgh "[number % 9]
            app.post_message(Key("space" if letter == " " else letter, letter))
            await pilot.pause()
        used = time.process_time() - before
        assert len(text.text) == KEYS, text.text
        return used / KEYS
