"""Record the demo as an animated SVG: real frames of the real screen, played by CSS.

``python docs/record_demo.py [FILE]`` walks through the demo's review without a terminal, takes a picture
after each step and writes them as one SVG file, ``docs/images/demo.svg`` by default. Browsers and GitHub
play it without scripts.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from cockpit.access import user_presence
from cockpit.app.application import CockpitApp
from cockpit.app.key_policy import ARM_S
from cockpit.commands.demo.demo_guide import DISCUSS_WORDS, guide
from cockpit.commands.demo.sample_project import Sample, make_sample
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings

SIZE = (120, 34)
"""Columns and lines of the recorded terminal."""

TARGET = Path(__file__).resolve().parent / "images" / "demo.svg"
_PATIENCE_S = 60.0
_LOOK_S = 0.1
_NOTICE_S = 1.0
"""Longer than the guide's next line takes to be drawn."""

Shoot = Callable[[float], Awaitable[None]]
"""Takes a picture that is shown for so many seconds."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture and how long it is shown, in seconds."""

    svg: str
    seconds: float


async def record() -> list[Frame]:
    """Play the demo's review in a project of its own and return its frames."""
    frames: list[Frame] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COCKPIT_STATE_DIR"] = f"{folder}/state"
        sample = await make_sample(Path(folder) / "parcel")
        async with play(sample, SIZE) as pilot:

            async def shoot(seconds: float) -> None:
                await pilot.pause(0.2)
                frames.append(Frame(pilot.app.export_screenshot(title="cockpit"), seconds))

            await review(pilot, shoot)
    return frames


@asynccontextmanager
async def play(sample: Sample, size: tuple[int, int]) -> AsyncIterator[Pilot[int]]:
    """Open the demo's screen on ``sample``, with its guide, and give the keys to it."""
    settings = RuntimeSettings(user_dir=sample.root.parent / "user")
    async with open_runtime(locate_project(sample.root), settings) as runtime:
        session_id = await runtime.start(f"review main..{sample.branch}", model="offline")
        guiding = asyncio.create_task(guide(runtime.store))
        try:
            async with CockpitApp(runtime, session_id=session_id).run_test(size=size) as pilot:
                yield pilot
        finally:
            guiding.cancel()
            await asyncio.gather(guiding, return_exceptions=True)


async def review(pilot: Pilot[int], shoot: Shoot) -> None:
    """Press the keys that the guide asks for, from the first request to the finished review."""
    broad = await until_ready(pilot, "context")
    await shoot(4.0)
    await pilot.press("escape")
    await shoot(1.5)
    await type_slowly(pilot, DISCUSS_WORDS, shoot)
    await pilot.press("enter")
    narrow = await until_ready(pilot, "context", after=broad)
    await shoot(3.5)
    await approve(pilot, narrow, shoot)
    text = await until_ready(pilot, "action")
    await shoot(4.5)
    await approve(pilot, text, shoot)
    await until(pilot, lambda: _is_done(pilot))
    await pilot.pause(_NOTICE_S)
    await shoot(4.0)
    await pilot.press("f3")
    await shoot(3.5)


async def until_ready(pilot: Pilot[int], kind: str, *, after: str = "") -> str:
    """Wait until Enter counts for a proposal of ``kind`` that came after ``after``; return its name."""
    policy = _demo(pilot).main.key_policy
    await until(
        pilot,
        lambda: (
            policy.is_seen
            and policy.front is not None
            and policy.front.kind == kind
            and policy.front.proposal_id != after
        ),
    )
    await pilot.pause(ARM_S)
    assert policy.front is not None
    return policy.front.proposal_id


async def approve(pilot: Pilot[int], proposal_id: str, shoot: Shoot) -> None:
    """Press Enter, which reads on first, until the proposal is decided."""
    policy = _demo(pilot).main.key_policy
    while policy.front is not None and policy.front.proposal_id == proposal_id:
        is_read = policy.is_armed
        await pilot.press("enter")
        if is_read:
            await until(
                pilot, lambda: policy.open is None or policy.open.proposal_id != proposal_id
            )
            return
        await pilot.pause(2 * ARM_S)
        await shoot(1.5)


def _demo(pilot: Pilot[int]) -> CockpitApp:
    assert isinstance(pilot.app, CockpitApp)
    return pilot.app


def _is_done(pilot: Pilot[int]) -> bool:
    session = _demo(pilot).session
    return session is not None and session.status == "completed"


async def until(pilot: Pilot[int], holds: Callable[[], bool]) -> None:
    """Wait until ``holds``; raise TimeoutError after a minute."""
    async with asyncio.timeout(_PATIENCE_S):
        while not holds():
            await pilot.pause(_LOOK_S)


async def type_slowly(pilot: Pilot[int], text: str, shoot: Shoot) -> None:
    """Type ``text`` with a picture after every third of it."""
    third = -(-len(text) // 3)
    for start in range(0, len(text), third):
        await pilot.press(*(key_of(char) for char in text[start : start + third]))
        await shoot(0.6)


def key_of(char: str) -> str:
    """The key that types ``char``, as Textual names it."""
    return {" ": "space", "/": "slash", ".": "full_stop", ",": "comma"}.get(char, char)


def animated(frames: list[Frame]) -> str:
    """One SVG that shows the frames one after another, forever."""
    width, height = (float(size) for size in _viewbox(frames[0].svg))
    total = sum(frame.seconds for frame in frames)
    rules, groups, start = [], [], 0.0
    for number, frame in enumerate(frames):
        begin, end = 100 * start / total, 100 * (start + frame.seconds) / total
        before = "" if number == 0 else f"0%{{visibility:hidden}}{begin:.3f}%{{visibility:visible}}"
        first = "0%{visibility:visible}" if number == 0 else ""
        rules.append(f"@keyframes f{number}{{{first}{before}{end:.3f}%,100%{{visibility:hidden}}}}")
        rules.append(f".f{number}{{animation:f{number} {total:.1f}s step-end infinite}}")
        groups.append(f'<g class="f f{number}">{_slim(frame.svg)}</g>')
        start += frame.seconds
    style = "".join([".f{visibility:hidden}.f0{visibility:visible}", *rules])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">\n'
        f"<style>{style}</style>\n" + "\n".join(groups) + "\n</svg>\n"
    )


def _viewbox(svg: str) -> tuple[str, str]:
    match = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', svg)
    if match is None:
        raise ValueError("The picture has no size.")
    return match[1], match[2]


def _slim(svg: str) -> str:
    """The picture without downloaded fonts, comments and indentation."""
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", svg).strip()


def main() -> int:
    """Record and write the file named on the command line; return the exit code."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    # The keys decide in a project that exists for this recording only, with nobody at a terminal.
    user_presence.explain_absence = lambda: ""
    frames = asyncio.run(record())
    target.write_text(animated(frames), encoding="utf-8")
    print(f"{target}: {len(frames)} frames, {target.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
