"""A proposal is drawn once and whole: nothing stands twice, and what has nothing to show can be approved."""

from __future__ import annotations

from typing import Any

import pytest
from app_scenes import Scene
from app_world import look, until
from textual.containers import VerticalScroll

from cockpit.app.application import CockpitApp
from cockpit.store.sessions import proposals

EMPTY: dict[str, dict[str, Any]] = {
    "nothing": {},
    "spaces": {"body": " \n\t\n"},
    "no visible character": {"body": "\u200b\u2060"},
    "only signs": {"body": "#\n\n-\n\n> \n"},
    "an empty fence": {"body": "```\n```\n"},
    "an empty file": {"diffs": [("a.py", None, "")], "title": "create a.py (+0 −0)"},
    "no change": {"diffs": [("a.py", "a\n", "a\n")], "title": "edit a.py (+0 −0)"},
    "the title has every field": {"fields": [("argv", "make")], "title": "run make"},
}


def drawn(screen) -> str:
    return "\n".join(strip.text for strip in screen._compositor.render_strips())


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
@pytest.mark.parametrize("shape", EMPTY)
async def test_what_has_nothing_to_show_says_so_and_is_approved(still, project, shape, size):
    scene = Scene(still.store, project).begin().wave("observing")
    scene.propose("p-1", **EMPTY[shape])
    app = CockpitApp(still)
    async with app.run_test(size=size) as pilot:
        app.attach(scene.session_id)
        screen = await look(pilot)
        if shape in ("nothing", "spaces", "the title has every field"):
            assert "Nothing more to show" in drawn(screen)
        assert screen.key_policy.is_armed, drawn(screen)
        await pilot.press("enter")
        await until(
            pilot,
            lambda: still.store.read_now(lambda c: proposals.load(c, "p-1")).status == "approved",
        )


async def test_page_down_in_the_prompt_reads_a_proposal_on(still, project):
    scene = Scene(still.store, project).begin().wave("observing")
    scene.propose("p-1", body="\n\n".join(f"word{place}" for place in range(150)))
    app = CockpitApp(still)
    async with app.run_test(size=(100, 30)) as pilot:
        app.attach(scene.session_id)
        screen = await look(pilot)
        scroll = screen.panes.proposals.query_one("#proposal-scroll", VerticalScroll)
        assert not screen.key_policy.is_read
        for _ in range(150):
            if screen.key_policy.is_read:
                break
            assert screen.pane == "prompt"
            before = scroll.scroll_offset.y
            await pilot.press("pagedown")
            await until(pilot, lambda before=before: scroll.scroll_offset.y > before)
            await look(pilot)
        assert screen.key_policy.is_read
        await pilot.press("pageup")
        await until(pilot, lambda: scroll.scroll_offset.y < scroll.max_scroll_y)


@pytest.mark.parametrize(
    ("title", "fields", "diffs", "once"),
    [
        (
            "edit src/http/retry.py (+1 −1)",
            [("path", "src/http/retry.py"), ("lines", "+1 −1")],
            [("src/http/retry.py", "a\n", "b\n")],
            ["src/http/retry.py", "+1 −1"],
        ),
        ("edit a file", [("path", "src/x.py")], [("src/x.py", "a\n", "b\n")], ["src/x.py", "+1"]),
        (
            "run make check-everything",
            [("argv", "make check-everything"), ("cwd", ".")],
            [],
            ["make check-everything"],
        ),
    ],
)
async def test_a_path_or_request_stands_once(still, project, title, fields, diffs, once):
    scene = Scene(still.store, project).begin().wave("observing")
    scene.propose("p-1", title=title, fields=fields, diffs=diffs)
    app = CockpitApp(still)
    async with app.run_test(size=(160, 45)) as pilot:
        app.attach(scene.session_id)
        screen = await look(pilot)
        panel = screen.panes.proposals.region
        shown = "\n".join(
            strip.text[panel.x : panel.right]
            for strip in screen._compositor.render_strips()[panel.y : panel.bottom]
        )
        for words in once:
            assert shown.count(words) == 1, shown
