"""The real screen under random keys, sizes and arrivals: what is decided was drawn, words go where it says.

Every line that is proposed begins with a word of its own. A frame is what stands on the screen: the test
reads the words in it, and knows nothing of how the screen counts.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from app_git import git
from app_scenes import Scene
from app_world import drawn, screen_of, settled
from examples import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from still_runtime import Still
from textual.pilot import Pilot

from cockpit.act.workspace import open_workspace
from cockpit.agents.acp_client.running_agents import RunningAgents
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.key_menu import KeyMenuDialog
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.core.project_paths import locate_project
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.intake.task_type_files import TaskTypeFiles
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.wave_context import Engine
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals

pytestmark = [pytest.mark.slow, pytest.mark.search]

_WORD = re.compile(r"w\d{5}")
SIZES = ((60, 8), (60, 20), (80, 24), (100, 30), (119, 12), (160, 45), (250, 70))
NAMES = ("alpha", "omega")
"""The task types of the two sessions, which the header shows in any width."""
PHASES = (Phase.explicit, Phase.generate)
"""Without shrinking: it would play hundreds of screens."""


class World:
    """Two sessions, what they propose, and what was decided and sent."""

    def __init__(self, root: Path) -> None:
        self.clock = FixedClock()
        git(root, "init", "-q", "-b", "main", "--template=")
        place = locate_project(root)
        place.prepare()
        self.store = Store.open(place.database, self.clock, CountingIds(), durable=False)
        user = RuntimeSettings(user_dir=root.parent / "user", external_agents=RunningAgents)
        ground = asyncio.run(open_workspace(place.root, repo="acme/api"))
        files = TaskTypeFiles(place, user.user_dir)
        engine = Engine(
            self.store, place, user, files.types, ground, ChangeWaiter(self.store), "acme/api"
        )
        self.runtime = Still(engine, files)
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
        for risk, kind in zip(("medium", "high", "medium"), kinds, strict=True):
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


@settings(
    max_examples=examples(1),
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    size=st.sampled_from(SIZES[1:4]),
    lines=st.sampled_from([3, 22, 45]),
    kinds=st.permutations(KINDS).map(lambda kinds: kinds[:3]),
)
def test_enter_reads_to_the_end_and_approves_what_was_seen(
    size: tuple[int, int], lines: int, kinds: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (root := Path(folder) / "api").mkdir()
        world = World(root)
        asyncio.run(read_all(world, size, lines, kinds))
        world.store.close()


STEPS = st.one_of(
    st.tuples(
        st.just("arrive"), st.sampled_from(KINDS), st.sampled_from([2, 45]), st.integers(0, 1)
    ),
    st.tuples(st.just("press"), st.sampled_from(["enter", "enter", "enter", "escape", "y"])),
    st.tuples(st.just("press"), st.sampled_from(["alt+n", "f4", "f2", "f1", "pagedown", "tab"])),
    st.tuples(st.just("press"), st.sampled_from(["ctrl+p", "alt+h", "ctrl+o", "alt+c"])),
    st.tuples(st.just("attach"), st.integers(0, 1)),
    st.tuples(st.just("type"), st.sampled_from(["no", "fix it"])),
    st.tuples(st.just("resize"), st.sampled_from(SIZES)),
    st.tuples(st.just("expire")),
    st.tuples(st.just("theme"), st.sampled_from(["cockpit-light", "cockpit-dark"])),
    st.tuples(st.just("wait"), st.sampled_from([0.2, 1.0])),
)


async def play(world: World, steps: list[tuple[object, ...]]) -> None:
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


@settings(
    max_examples=examples(2),
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=12, max_size=20))
def test_random_keys_decide_nothing_unseen_and_lose_no_words(
    steps: list[tuple[object, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (root := Path(folder) / "api").mkdir()
        world = World(root)
        asyncio.run(play(world, steps))
        world.store.close()
