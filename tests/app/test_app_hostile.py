"""Untrusted text on the whole screen: no control character of it reaches the terminal."""

from __future__ import annotations

import re

import pytest
from app_scenes import Scene
from app_world import settled, until

from cockpit.app.application import CockpitApp

pytestmark = pytest.mark.slow

HOSTILE = (
    "\x1b]52;c;aGVsbG8=\x07\x1b]0;owned\x07\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\"
    "\x1b[2J\x1b[31mred\x9b31m\x90q\x9c\x1bPq#0\x1b\\\x1b_apc\x1b\\\u202egnp.exe\u2066\x00\r"
    "[/b][red]markup[@click=app.quit]x[/] [/nope] $tone-dim {x} \ud800"
)
STORED = HOSTILE.replace("\ud800", "")


@pytest.fixture
def scene(still, project):
    scene = Scene(still.store, project)
    scene.begin(STORED, title=STORED, task_type=STORED, branch=STORED)
    scene.wave("observing", "orienting", "deciding").stream(STORED[:30], STORED[30:])
    scene.say("agent", f"```\n{STORED}\n```\n# {STORED}\n[{STORED}](http://{STORED})")
    scene.say("notice", STORED).advance("acting")
    scene.ask(items=((STORED, 1, STORED, ""), ("file:x", 2, "situational", STORED)))
    scene.propose(
        "p-2", title=STORED, kind=STORED, fields=((STORED, STORED),), body=STORED,
        diffs=((STORED, STORED, STORED + "x"),), notes=(STORED,), changes=(STORED,),
        revises=None,
    )  # fmt: skip
    scene.enter("failed", message=STORED)
    return scene


def drawn(app) -> str:
    return "".join(
        segment.text for strip in app.screen._compositor.render_strips() for segment in strip
    )


async def test_every_pane_and_notice_draws_it_without_its_controls(still, scene):
    app = CockpitApp(still)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.attach(scene.session_id)
        for keys in ((), ("alt+n",), ("f6",), ("escape", "ctrl+p"), ("escape", "f1"), ("escape",)):
            await pilot.press(*keys)
            await settled(pilot)
            text = drawn(app)
            found = re.findall("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
            assert found == []
        assert "markup" in text
        app.clear_notifications()
        app.show_error(STORED)
        await until(pilot, lambda: "[red]markup[@click=app.quit]" in drawn(app))
        assert "\x1b" not in drawn(app)
