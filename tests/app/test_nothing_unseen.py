"""The real screen under random keys, sizes and arrivals: what is decided was drawn, words go where it says.

Every line that is proposed begins with a word of its own. A frame is what stands on the screen: the test
reads the words in it, and knows nothing of how the screen counts.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from app_scenes import Scene
from app_world import drawn, screen_of, settled
from examples import examples
from textual.pilot import Pilot

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.key_menu import KeyMenuDialog
from cockpit.core.clock import FixedClock
from cockpit.loop.runtime import Runtime
from cockpit.store.sessions import proposals

pytestmark = [pytest.mark.slow, pytest.mark.search]

_WORD = re.compile(r"w\d{5}")
SIZES = ((60, 8), (60, 20), (80, 24), (100, 30), (119, 12), (160, 45), (250, 70))
NAMES = ("alpha", "omega")
"""The task types of the two sessions, which the header shows in any width."""


@pytest.fixture
def world(still: Runtime, clock: FixedClock, project: Path) -> World:
    return World(still, clock, project)


class World:
    """Two sessions, what they propose, and what was decided and sent."""

    def __init__(self, still: Runtime, clock: FixedClock, root: Path) -> None:
        self.runtime, self.store, self.clock = still, still.store, clock
        self.scenes = [
            Scene(self.store, root).begin(name, title=name, task_type=name).wave("observing")
            for name in NAMES
        ]
        self.count = 0
        self.words: dict[str, set[str]] = {}
        """The words of each proposal's lines."""
        self.seen: dict[str, set[str]] = {}
        """The words that were on the screen, by the digest of what was in front."""
        self.calls: list[tuple[str, str, str]] = []
        """What was asked of the engine: the verb, the proposal or session, and the words."""

    def propose(self, kind: str, lines: int, which: int, risk: str) -> str:
        """Let a session ask for something of so many lines."""
        self.count += 1
        name = f"p-{self.count}"
        words = [f"w{self.count:02}{place:03}" for place in range(lines)]
        self.words[name] = set(words)
        scene = self.scenes[which]
        if kind == "context":
            scene.ask(name, items=[(f"{word}.py", 10, "situational", "") for word in words])
        elif kind == "fields":
            scene.propose(name, risk=risk, fields=[(word, "a value of it") for word in words])
        elif kind == "body":
            scene.propose(name, risk=risk, body="\n\n".join(f"{word} said so" for word in words))
        elif kind == "notes":
            scene.propose(name, risk=risk, notes=words, diffs=[("a.py", "a\n", "b\n")])
        else:
            wide = "字" * 90 if kind == "wide diff" else "x" * 40
            text = "".join(f"{word} {wide}\n" for word in words)
            scene.propose(name, risk=risk, diffs=[("a.py", "" if kind == "diff" else None, text)])
        return name

    def statuses(self) -> dict[str, str]:
        rows = self.store.read_now(proposals.select_recent)
        return {row.proposal_id: row.status for row in rows}

    def watch(self) -> None:
        """Note what is asked of the engine."""
        for verb in ("approve", "discuss", "reject", "say"):
            setattr(self.runtime, verb, self._noting(verb, getattr(self.runtime, verb)))

    def _noting(self, verb: str, call: Callable[..., object]) -> Callable[..., object]:
        async def note(name: str, *args: str, **fields: object) -> object:
            said = args[0] if args else fields.get("words") or fields.get("reason") or ""
            self.calls.append((verb, name, str(said)))
            return await call(name, *args, **fields)  # type: ignore[misc]

        return note


@asynccontextmanager
async def on_screen(world: World, size: tuple[int, int]) -> AsyncIterator[Pilot[int]]:
    app = CockpitApp(world.runtime)
    world.watch()
    async with app.run_test(size=size) as pilot:
        app.attach(world.scenes[0].session_id)
        await settled(pilot)
        yield pilot


async def look_on(world: World, pilot: Pilot[int]) -> str:
    """Read the frame on the screen; return its first line, which names the session."""
    await settled(pilot)
    rows = ["".join(s.text for strip in line for s in strip) for line in drawn(pilot)]
    screen = screen_of(pilot)
    if pilot.app.screen is screen and screen.queue.front is not None:
        for each in screen.queue.front.together:
            world.seen.setdefault(each.proposal_id, set()).update(_WORD.findall(" ".join(rows)))
    return rows[0]


def check(world: World, header: str, draft: str, after: str) -> None:
    """Check what was decided and sent since the last look, under ``header``."""
    calls, world.calls = world.calls, []
    owner = {
        row.proposal_id: row.session_id for row in world.store.read_now(proposals.select_recent)
    }
    named = [
        scene.session_id
        for scene, name in zip(world.scenes, NAMES, strict=True)
        if f" {name} " in f"{header} "
    ]
    for verb, name, words in calls:
        session_id = name if verb == "say" else owner[name]
        assert session_id in named, f"{verb} {name}: the header names another session: {header}"
        if verb == "approve":
            unseen = world.words[name] - world.seen.get(name, set())
            assert not unseen, f"{name} was approved, and nobody saw {sorted(unseen)[:3]}"
        if words:
            draft = draft.replace(words, "", 1)
    assert draft.strip() == after.strip(), "what was typed was sent, or stands in the prompt"


KINDS = ("context", "fields", "body", "notes", "diff", "wide diff", "new file")


async def read_all(world: World, size: tuple[int, int], lines: int, kinds: Sequence[str]) -> None:
    """Press Enter until each kind of proposal is approved, some with a second key."""
    async with on_screen(world, size) as pilot:
        screen = screen_of(pilot)
        for risk, kind in zip(("medium", "high"), kinds, strict=True):
            name = world.propose(kind, lines, 0, risk)
            for _ in range(lines):
                header = await look_on(world, pilot)
                if world.statuses()[name] != "pending":
                    break
                world.clock.advance(1)
                await pilot.press("enter")
                if screen.key_policy.second is not None:
                    await pilot.press("y")
                await look_on(world, pilot)
                check(world, header, "", "")
            else:
                raise AssertionError(f"Enter never came to the end of {kind} at {size}")


@pytest.mark.parametrize("seed", range(examples(1)))
async def test_enter_reads_to_the_end_and_approves_what_was_seen(world: World, seed: int) -> None:
    dice = random.Random(seed)
    size, lines = dice.choice(SIZES[1:4]), dice.choice([3, 22, 45])
    await read_all(world, size, lines, dice.sample(KINDS, 2))


KEYS = (
    *("enter", "enter", "enter", "escape", "y"),
    *("alt+n", "f4", "f2", "f1", "pagedown", "tab", "ctrl+p", "alt+h", "ctrl+o", "alt+c"),
)


def choose_step(dice: random.Random) -> tuple[object, ...]:
    match dice.randrange(10):
        case 0 | 1:
            return "arrive", dice.choice(KINDS), dice.choice([2, 45]), dice.randrange(2)
        case 2:
            return "attach", dice.randrange(2)
        case 3:
            return "type", dice.choice(["no", "fix it"])
        case 4:
            return "resize", dice.choice(SIZES)
        case 5:
            return dice.choice([("expire",), ("theme", "cockpit-light"), ("theme", "cockpit-dark")])
        case 6:
            return "wait", dice.choice([0.2, 1.0])
        case _:
            return "press", dice.choice(KEYS)


async def play(world: World, steps: Sequence[tuple[object, ...]]) -> None:
    async with on_screen(world, (120, 30)) as pilot:
        app, screen = pilot.app, screen_of(pilot)
        header = await look_on(world, pilot)
        for step in steps:
            draft = screen.prompt.full_text
            typed = ""
            match step:
                case ("arrive", str(kind), int(lines), int(which)):
                    world.propose(kind, lines, which, "medium")
                case ("press", str(key)):
                    # A key in the menu of keys is pressed on the screen below it.
                    if app.screen is not screen and not isinstance(app.screen, KeyMenuDialog):
                        key = "escape"
                    typed = "y" if key == "y" and screen.key_policy.second is None else ""
                    typed = typed if screen.pane == "prompt" else ""
                    await pilot.press(key)
                case ("type", str(text)) if screen.pane == "prompt" and app.screen is screen:
                    typed = text
                    await pilot.press(*("space" if letter == " " else letter for letter in text))
                case ("attach", int(which)):
                    app.attach(world.scenes[which].session_id)
                case ("resize", (int(width), int(height))):
                    await pilot.resize_terminal(width, height)
                case ("expire",):
                    waiting = [n for n, status in world.statuses().items() if status == "pending"]
                    if waiting:
                        world.scenes[0].decide(waiting[0], "expired")
                case ("theme", str(theme)):
                    app.theme = theme
                case ("wait", float(seconds)):
                    world.clock.advance(seconds)
            header_after = await look_on(world, pilot)
            check(world, header, draft + typed, screen.prompt.full_text)
            header = header_after


@pytest.mark.parametrize("seed", range(examples(1)))
async def test_random_keys_decide_nothing_unseen_and_lose_no_words(world: World, seed: int) -> None:
    dice = random.Random(seed)
    await play(world, [choose_step(dice) for _ in range(24)])
