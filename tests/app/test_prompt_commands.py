"""Commands of the prompt: what each does, and that an unknown one is sent to nobody."""

from __future__ import annotations

import json

import pytest
from app_world import on_screen, screen_of, settled, until, write
from textual.widgets import Input

from cockpit.app.actions.palette import Command, rank
from cockpit.app.actions.registry import ACTIONS
from cockpit.app.application import CockpitApp
from cockpit.app.commands.prompt_commands import COMMANDS, TABLE, is_command
from cockpit.app.dialogs.help import Help
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.core.clock import SystemClock
from cockpit.core.skills import skill_layers
from cockpit.decide.choose_model import ModelSettings
from cockpit.store.sessions import messages, sessions

pytestmark = pytest.mark.slow

SIZE = (80, 24)

SPEAKS = """
[[turn]]
text = "What is it?"
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""


async def enter(pilot, text: str) -> None:
    """Send ``text`` by Enter."""
    screen_of(pilot).prompt.put(text)
    await pilot.pause()
    await pilot.press("enter")


def notes_of(app: CockpitApp) -> str:
    return " ".join(str(note.message) for note in app._notifications)


def said(runtime, session_id: str) -> list[str]:
    rows = runtime.store.read_now(lambda c: messages.select_for_session(c, session_id))
    return [row.text for row in rows if row.role == "person"]


def test_each_command_has_one_name_and_a_hint():
    assert len(TABLE) == len(COMMANDS)
    for name, hint in COMMANDS:
        assert is_command(name) and hint
    for action in ACTIONS:
        assert not action.command or action.command in TABLE, action.id


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("/help", True),
        ("/theme nord", True),
        ("/frobnicate now", True),
        ("/mcp:prompt x", True),
        ("/usr/bin/env is missing", False),
        ("/", False),
        ("fix /help", False),
        ("/24", False),
    ],
)
def test_what_has_the_form_of_a_command(text, is_one):
    assert is_command(text) is is_one


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("help", "Show keys and commands"),
        ("/new", "Start a new session"),
        ("kanban", "Show the board of all tasks, and back"),
        ("cmmnds", "Show keys and commands"),
        ("why is a fact missing", "Show which facts are in the packet, and why others are not"),
        ("recover after a crash", "Show all sessions, follow and rename them"),
        ("approve two agents", "Show all proposals that wait, approve equal ones"),
        ("api key", "Check the setup: models, agents, sandbox, store"),
        ("cancel", "Interrupt the session; press twice to quit"),
    ],
)
def test_the_palette_finds_actions_by_what_users_call_them(query, title):
    from textual.fuzzy import Matcher

    matcher = Matcher(query)
    commands = [
        Command(
            each.title, print, hint=f"/{each.command}", synonyms=f"{each.command} {each.synonyms}"
        )
        for each in ACTIONS
    ]
    ranked = sorted(commands, key=lambda each: -rank(each, query, matcher.match))
    assert title in [each.title for each in ranked[:4]]
    assert rank(Command("Quit", print), "zzz", lambda _: 0.0) == 0


async def test_commands_of_the_prompt(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    script = tmp_path / "speaks.toml"
    script.write_text(SPEAKS)
    other = tmp_path / "m.toml"
    other.write_text(SPEAKS)
    async with (
        opened(
            SystemClock(), model=ModelSettings(model=f"script:{script}"), policy="reads"
        ) as runtime,
        on_screen(runtime, size=SIZE) as (pilot, app, screen),
    ):
        # Without a session: commands that need one say so and stay in the prompt.
        await enter(pilot, "/estimate")
        await until(pilot, lambda: screen.prompt.text == "/estimate")
        await until(pilot, lambda: "needs a session" in notes_of(app))
        screen.prompt.clear()
        # A command that nobody has starts no session; the nearest name is that of any command.
        await enter(pilot, "/setings")
        await until(pilot, lambda: screen.prompt.text == "/setings")
        await until(pilot, lambda: "Did you mean /settings?" in notes_of(app))
        screen.prompt.clear()
        app.clear_notifications()
        # In the palette "review" begins one in the prompt.
        screen.act("review")
        assert screen.prompt.text.startswith("/review ")
        screen.prompt.clear()
        # Without a session a model is that of new ones; without a name it is asked for.
        await enter(pilot, "/model")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        # What is refused stays typed, beside the reason.
        await write(pilot, "nobody:none", "enter")
        await until(pilot, lambda: "nobody:none" in notes_of(app))
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        field = app.screen.query_one(Input)
        assert field.value == "nobody:none"
        field.value = ""
        await write(pilot, f"script:{other}", "enter")
        await until(pilot, lambda: str(other) in app.welcome.model)
        await enter(pilot, "/help")
        await until(pilot, lambda: isinstance(app.screen, Help))
        await pilot.press("escape")
        await enter(pilot, "/theme cockpit-light")
        await until(pilot, lambda: app.theme == "cockpit-light")
        await enter(pilot, "/theme none-such")
        await until(pilot, lambda: screen.prompt.text == "/theme none-such")
        screen.prompt.clear()
        await enter(pilot, "look at calc.py")
        await until(pilot, lambda: app.session_id)
        first = app.session_id
        assert app.welcome.model == runtime.store.read_now(lambda c: sessions.load(c, first).model)
        await settled(pilot)
        await enter(pilot, "/model")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        await pilot.press("escape")
        # In a session a name is checked, too, and what is wrong stays in the prompt.
        model = runtime.store.read_now(lambda c: sessions.load(c, first)).model
        app.clear_notifications()
        await enter(pilot, "/model nobody:none")
        await until(pilot, lambda: screen.prompt.text == "/model nobody:none")
        screen.prompt.clear()
        assert runtime.store.read_now(lambda c: sessions.load(c, first)).model == model
        await until(pilot, lambda: "'nobody:none' is not a model's name" in notes_of(app))
        assert "Internal" not in notes_of(app)
        # What nobody knows is sent to nobody, and stays in the prompt.
        for text, told in (
            ("/estimte now", "no command /estimte, so nothing was sent. Did you mean /estimate?"),
            ("/help me please", "/help takes nothing behind it"),
        ):
            await enter(pilot, text)
            await until(pilot, lambda text=text: screen.prompt.text == text)
            await until(pilot, lambda told=told: told in notes_of(app))
            screen.prompt.clear()
        assert said(runtime, first) == ["look at calc.py"]
        # A skill is a mention in a message, a task type's command a session of its own.
        await enter(pilot, "/git what changed?")
        await until(pilot, lambda: len(said(runtime, first)) == 2)
        await enter(pilot, "/policy ask")
        await until(
            pilot,
            lambda: runtime.store.read_now(lambda c: sessions.load(c, first)).policy == "ask",
        )
        await enter(pilot, "/policy all")
        await until(pilot, lambda: screen.prompt.text == "/policy all")
        screen.prompt.clear()
        await enter(pilot, f"/export json {tmp_path / 'told.json'}")
        await until(pilot, lambda: "Wrote" in notes_of(app))
        exported = json.loads((tmp_path / "told.json").read_text())
        assert exported["session_id"] == first
        await enter(pilot, "/investigate what add does")
        await until(pilot, lambda: app.session_id != first)
        assert said(runtime, first) == ["look at calc.py", "/git what changed?"]
        await enter(pilot, f"/resume {first}")
        await until(pilot, lambda: app.session_id == first)
        await enter(pilot, "/new")
        await until(pilot, lambda: not app.session_id)


async def test_offline_limits_are_shown_before_a_session_starts(opened, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with (
        opened(SystemClock(), model=ModelSettings(model="offline")) as runtime,
        on_screen(runtime, size=SIZE) as (pilot, app, screen),
    ):
        await enter(pilot, "fix the bug in calc.py")
        await until(pilot, lambda: screen.prompt.text == "fix the bug in calc.py")
        await until(pilot, lambda: "offline rules review changes" in notes_of(app))
        assert runtime.store.read_now(sessions.find_latest) is None
        # Asked once: the second Enter starts it.
        await pilot.press("enter")
        await until(pilot, lambda: app.session_id)
        assert said(runtime, app.session_id) == ["fix the bug in calc.py"]


def test_the_command_of_a_name_comes_first_and_there_is_one_of_each_name():
    names = [each.command for each in ACTIONS if each.command]
    assert len(names) == len(set(names))
    doctor = Command("Check the setup: models, agents, sandbox", print, hint="/doctor")
    agents = Command("Manage external agents", print, hint="/agents")
    assert rank(agents, "/agents", lambda _: 0.0) > rank(doctor, "/agents", lambda _: 0.0)
