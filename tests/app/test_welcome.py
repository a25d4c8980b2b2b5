"""The text before the first session: it says what is there, and tells of nothing that is not."""

from __future__ import annotations

import subprocess

import pytest
from app_scenes import Scene
from app_world import on_screen, settled, text_of, until

from cockpit.app.screens.welcome_facts import suggest_review
from cockpit.app.state.welcome import build_welcome
from cockpit.backlog import service
from cockpit.core.clock import SystemClock
from cockpit.decide.choose_model import ModelSettings
from cockpit.loop.external_agent_interface import AgentEntry
from widgets.text.detail import wrap_row
from widgets.views import WorkPaneView

pytestmark = pytest.mark.slow

NOTHING = WorkPaneView()


def text(rows, width: int = 70) -> str:
    return "\n".join(piece.plain for row in rows for piece in wrap_row(row, width))


@pytest.mark.parametrize(
    ("model", "agents", "says", "says_not"),
    [
        ("", None, ["Model    …", "Agents   …"], ["none"]),
        ("offline rules", (), ["none: rules", "ANTHROPIC_API_KEY", "none installed"], ["explain"]),
        ("offline rules", ("Codex",), ["Codex", "/agent"], ["none installed"]),
        ("anthropic:x", (), ["anthropic:x", "explain", "/plan"], ["API_KEY"]),
        ("anthropic:x", tuple("abcdefg"), ["a, b, c, d and 3 more"], []),
    ],
)
def test_what_is_there(model, agents, says, says_not):
    shown = text(build_welcome(model, agents, NOTHING, 0))
    for words in ("You decide", "Try", "wave", *says):
        assert words in shown
    for words in says_not:
        assert words not in shown


@pytest.mark.parametrize(
    ("is_installed", "says"),
    [(True, "Claude Code has each new session"), (False, "Claude Code is not installed")],
)
def test_an_agent_has_new_sessions(is_installed, says):
    agent = AgentEntry("claude", "Claude Code", is_installed, True)
    shown = text(build_welcome("anthropic:x", ("Codex",), NOTHING, 0, agent))
    assert says in shown and "anthropic" not in shown and "/plan" not in shown


async def test_a_model_that_cannot_be_used_is_said_in_clear_words(opened, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with (
        opened(SystemClock(), model=ModelSettings(model="anthropic:x")) as runtime,
        on_screen(runtime, size=(120, 34)) as (pilot, app, screen),
    ):
        drawn = text_of(app)
        assert "cannot be used" in drawn and "ANTHROPIC_API_KEY" in drawn
        assert "none installed" in drawn, "the agents are said all the same"
        screen.prompt.put("explain calc.py")
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: app._notifications)
        notes = " ".join(str(note.message) for note in app._notifications)
        assert "ANTHROPIC_API_KEY" in notes and "Internal" not in notes
        await until(pilot, lambda: screen.prompt.text == "explain calc.py")
        screen.prompt.put("/model offline")
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: app.welcome.model == "offline")
        await settled(pilot)
        assert "cannot be used" not in text_of(app)


async def test_it_tells_what_happened_since_the_screen_was_open_last(still, project):
    scene = Scene(still.store, project).begin("fix it", title="Fix it").wave("observing")
    tasks = [
        still.store.write_now(lambda tx, t=t: service.create_task(tx, t, by="person"))
        for t in ("a", "b")
    ]
    async with on_screen(still, size=(120, 40)) as (pilot, app, _):
        assert app.welcome.since == "", "nobody was here before"
    still.store.write_now(lambda tx: service.set_status(tx, tasks[0].task_id, "done", by="agent"))
    still.store.write_now(lambda tx: service.block(tx, tasks[1].task_id, "no key", by="agent"))
    scene.fail("no answer").ask("p-1")
    async with on_screen(still, size=(120, 40)) as (pilot, app, _):
        await until(pilot, lambda: app.welcome.since)
        assert (
            app.welcome.since == "1 session failed · 1 task done, 1 task blocked · 1 proposal made"
        )
        await until(pilot, lambda: "you were here last: 1 session failed" in text_of(app))


@pytest.mark.parametrize(
    ("steps", "suggests"),
    [
        ("", ""),
        ("commit", None),
        ("commit commit", "HEAD~1..HEAD"),
        ("commit commit branch", "HEAD~1..HEAD"),
        ("commit branch commit", "main..HEAD"),
    ],
)
def test_the_range_that_is_suggested_can_be_reviewed(tmp_path, steps, suggests):
    words = {
        "commit": ("commit", "-q", "--allow-empty", "-m", "x"),
        "branch": ("checkout", "-q", "-b", "fix"),
    }
    for each in (("init", "-q", "-b", "main"), *(words[step] for step in steps.split())):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        subprocess.run(("git", *identity, *each), cwd=tmp_path, check=True)
    assert suggest_review(tmp_path) == suggests
    assert suggest_review(tmp_path / "none") == ""
