"""Pictures of the eight main states at six sizes, and of an edit in each theme but the default."""

from __future__ import annotations

import pytest
from app_scenes import AFTER, BEFORE, THOUGHTS, Scene, to_decide
from app_world import SIZES, look, on_screen, settled, until
from chain_scenes import running
from permission_scenes import Agents, several
from wave_scenes import walk
from work_scenes import story

import themes

pytestmark = pytest.mark.slow

MANY = "".join(f"def check_{n}(client):\n    assert client.retry({n})\n\n\n" for n in range(6))
DECIDING = ("observing", "orienting", "deciding")
KEYS = {"board": "ctrl+t right", "proposals": "alt+q", "chains": "f5 alt+w right"}
STATES = ("welcome", "conversation", "request", "diff", "proposals", "board", "chains")


@pytest.mark.parametrize("state", STATES)
async def test_main_states(still, project, picture, state):
    scene = Scene(still.store, project)
    match state:
        case "conversation":
            walk(scene.begin(), 7)
            scene.say("agent", THOUGHTS)
        case "request":
            walk(scene.begin(), 1, last=DECIDING)
            scene.say("agent", "I need three files before I judge this.").ask()
        case "diff":
            walk(scene.begin(), 3, last=DECIDING).say("agent", THOUGHTS)
            scene.propose(
                fields=(("file", "src/http/retry.py"), ("change", "3 lines")),
                diffs=(("src/http/retry.py", BEFORE, AFTER + MANY),),
            )
        case "proposals":
            several(still, Agents(still.store, project))
        case "board":
            story(still.store)
        case "chains":
            running(still.store, project)
    async with on_screen(still, scene.session_id, size=SIZES[0]) as (pilot, _, _):
        for key in KEYS.get(state, "").split():
            await pilot.press(key)
            await settled(pilot)
        await picture(pilot, "", SIZES, look if state in ("request", "diff") else settled)
        if state == "conversation":
            await pilot.press("f3")
            await picture(pilot, "bands", SIZES[::-1], settled)


async def test_themes(still, project, picture):
    scene = to_decide(Scene(still.store, project)).say("agent", THOUGHTS).advance("acting").edit()
    async with on_screen(still, scene.session_id, size=(120, 36), ready=look) as (pilot, app, _):
        for theme in themes.THEMES:
            if theme.name == themes.DEFAULT:
                continue  # all other pictures are in it
            app.theme = theme.name
            await until(pilot, lambda theme=theme: app.theme == theme.name)
            await picture(pilot, theme.name, ready=settled)
