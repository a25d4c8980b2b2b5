"""Notes, session state, knowledge and task types on the screen, over a session that really ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_scenes import Scene
from app_world import calm, on_screen, screen_of, settled, text_of, until, write
from chains.measures.chain_days import Days, three_days
from msgspec.structs import replace
from textual.widgets import Input

from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.sandbox.bubblewrap import Sandbox, detect
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.file_view import FileView
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.screens.lists.doctor_screen import CheckRow, DoctorScreen
from cockpit.app.screens.lists.knowledge_screen import Source
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.app.screens.lists.tools_screen import ToolsScreen
from cockpit.app.screens.stats_screen import StatsScreen
from cockpit.core.errors import Stale
from cockpit.core.skills import skill_layers
from cockpit.decide.choose_model import ModelSettings
from cockpit.loop.runtime import Runtime
from cockpit.loop.skills.session_skills import take_in_skills
from cockpit.loop.tools.added_tools import open_added_tools
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.knowledge import embed_text
from cockpit.store.journal.details.waves import ContextRefused
from cockpit.store.notes import notes
from cockpit.store.sessions import sessions, waves

pytestmark = pytest.mark.slow

SIZE = (120, 40)

SCENARIO = """
[[turn]]
when = { not_called = ["request_context"] }
[[turn.call]]
name = "request_context"
arguments.purpose = "fix add"
arguments.question = "what does add do?"
arguments.scope = ["file:calc.py", "file:guide.md"]

[[turn]]
when = { called = ["request_context"], not_called = ["edit_file"] }
[[turn.call]]
name = "edit_file"
arguments = { path = "calc.py", old = "a - b", new = "a + b" }

[[turn]]
when = { called = ["edit_file"], not_called = ["run"] }
[[turn.call]]
name = "run"
arguments = { argv = ["python3", "-m", "unittest", "-q", "test_calc"], reason = "try it" }

[[turn]]
when = { called = ["run"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "add adds" }
"""
GUIDE = """\
# Rounding

## Money

Amounts are rounded half to even, never up.

## Weights

Weights are rounded up to whole grams.
"""
TEST = """\
import unittest
import calc

class Adds(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)
"""
USER_TYPE = """\
+++
name = "bug"
policy = "ask"
non_negotiables = ["Write the failing test first"]
[extend]
dod = ["**Noted**: the cause is in CHANGELOG.md"]
+++
"""
GUARD = """\
TOOLS = ("edit_file",)


def check(call, session):
    \"\"\"Refuse to change the guide.\"\"\"
    return "The guide is written by hand." if "guide" in str(call) else None
"""
OWN_TYPE = """\
+++
name = "migration"
dod = ["**Reversible**: a way back was tried"]
+++
"""


@pytest.fixture
async def ran(still, project, tmp_path, monkeypatch) -> Runtime:
    """A runtime with one session that read, changed, tested and ended; with notes and task types."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "user"))
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    monkeypatch.setattr(embed_text, "is_installed", lambda: False)
    (project / "guide.md").write_text(GUIDE)
    (project / "test_calc.py").write_text(TEST)
    folder = tmp_path / "user" / "task-types"
    folder.mkdir(parents=True)
    (folder / "bug.md").write_text(USER_TYPE)
    (folder / "migration.md").write_text(OWN_TYPE)
    own = tmp_path / "user" / "guards"
    own.mkdir()
    (own / "no_guide.py").write_text(GUARD)
    (folder / "broken.md").write_text("+++\nname = 'x'\ncolour = 'red'\n+++\n")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    engine = still.engine
    model = ModelSettings(model=f"script:{scenario}")
    settings = replace(engine.settings, model=model, policy="all", sandbox="off")
    # The pictures count tokens of what the command said: the same on machines with a sandbox and without.
    ground = replace(engine.ground, sandbox=await detect({"PATH": ""}))
    still.engine = replace(engine, settings=settings, ground=ground)
    sid = await still.start("use git to fix add in calc.py", interactive=False)
    await Runtime.run(still, sid)

    def write(tx) -> None:
        notes.write(tx, "decision", "Amounts are in cents, never in floats.")
        wish = notes.write(tx, "question", "Should weights be rounded half to even as well?")
        notes.forget(tx, wish.note_id, "answered in guide.md")
        message = "Nothing was read: file:calc.py:1-2 is in your context already, unchanged."
        refused = ContextRefused(message=message, request={}, guard="redundant_read")
        tx.journal(refused, session_id=sid, actor="engine")

    still.store.write_now(write)
    return still


async def read(pilot, name: str, rows: int = 1) -> ListScreen:
    """Wait for the screen of a list, and for its rows and their detail."""

    def is_there() -> bool:
        screen = pilot.app.screen
        here = getattr(screen, "PANE", "") == name and len(screen.rows) >= rows
        return here and not screen._reading and not screen._reading_detail

    await until(pilot, is_there)
    await calm(pilot)
    return pilot.app.screen


def say(pilot, text: str) -> None:
    pilot.app.main.prompt.put(text)


async def test_lists_open_from_the_prompt_and_their_verbs_decide(ran, project, picture) -> None:
    session = ran.store.read_now(sessions.find_latest)
    app = CockpitApp(ran, session_id=session.session_id)

    def stored() -> dict[str, str]:
        rows = ran.store.read_now(lambda c: notes.select(c, ("proposed", "kept", "forgotten")))
        return {note.text: note.status for note in rows}

    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        say(pilot, "/notes")
        await pilot.press("enter")
        screen = await read(pilot, "notes", 2)
        await picture(pilot, "notes")
        taught = screen.row.text
        assert "runs tests" in taught
        # Another cockpit changes the note that is shown here: a decision on the old text is refused.
        shown = screen.row
        ran.store.write_now(lambda tx: notes.edit(tx, shown.note_id, "Run make test."))
        with pytest.raises(Stale):
            await screen.do("keep", shown)
        await until(pilot, lambda: any(row.text == "Run make test." for row in screen.rows))
        # Keep, edit, write and merge notes.
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await write(pilot, "Cents alone.", "enter")
        await until(pilot, lambda: stored().get("Cents alone.") == "kept")
        await read(pilot, "notes", 3)
        await pilot.press("slash")
        await write(pilot, "cents alone", "enter")
        await until(pilot, lambda: screen.row is not None and screen.row.text == "Cents alone.")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await write(pilot, " Yes.", "enter")
        await until(pilot, lambda: stored().get("Cents alone. Yes.") == "kept")
        await until(pilot, lambda: screen.row is not None and screen.row.text.endswith("Yes."))
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        await pilot.press("enter")
        await until(pilot, lambda: stored()["Cents alone. Yes."] == "forgotten")
        await pilot.press("escape", "h")
        await until(pilot, lambda: len(screen.rows) == 4)
        assert {row.reason.split()[0] for row in screen.rows if row.reason} == {
            "merged",
            "answered",
        }
        kept = next(row for row in screen.rows if row.status == "kept" and row.kind == "decision")
        assert kept.seen == 2
        await pilot.press("home", "x", "y")
        await until(pilot, lambda: list(stored().values()).count("forgotten") == 3)
        await pilot.press("q")
        await until(pilot, lambda: app.screen is app.main)

        # A question in the prompt; its first passage opens at its lines, and goes to the next packet.
        say(pilot, "/knowledge how are weights rounded")
        await pilot.press("enter")
        screen = await read(pilot, "knowledge", 2)
        await picture(pilot, "knowledge")
        assert (screen.row.ref, screen.row.start) == ("guide.md", 7)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FileView))
        await until(pilot, lambda: "▌ Weights are" in app.screen._detail.plain)
        await pilot.press("o")
        await until(pilot, lambda: any("editor" in note.message for note in app._notifications))
        await pilot.press("escape", "a")
        await until(pilot, lambda: any("next packet" in n.message for n in app._notifications))
        await pilot.press("escape")
        await until(pilot, lambda: screen.rows and isinstance(screen.rows[0], Source))
        (docs,) = [row for row in screen.rows if row.kind == "docs"]
        assert docs.documents == 2
        await until(pilot, lambda: "guide.md" in screen._detail.plain)
        (project / "new.md").write_text("# New\n\nNothing yet.\n")
        await pilot.press("r")
        await until(pilot, lambda: screen.rows[0].documents == 3)

        # From list to list; the state of the session opens a file that it changed.
        await pilot.press("alt+i")
        screen = await read(pilot, "session_state", 5)
        await picture(pilot, "session-state")
        assert len(app.screen_stack) == 2
        states = {(row.section, row.name): row for row in screen.rows}
        assert states["read", "calc.py"].state == "in packet"
        assert states["changed", "calc.py"].text == "by edit file, wave 2"
        assert states["tests", "python3 -m unittest -q test_calc"].state == "passed"
        assert states["skill", "git"].text.startswith("you mentioned it")
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, FileView))
        await until(pilot, lambda: "a + b" in app.screen._detail.plain)
        await pilot.press("escape", "alt+y")
        screen = await read(pilot, "task_types", 10)
        await picture(pilot, "task-types")
        first = screen.rows[0]
        assert (first.kind.name, first.first, first.kind.source_layer) == (
            "bug",
            "built-in",
            "user",
        )
        assert {change.key for change in first.changes} == {"dod", "non_negotiables", "policy"}
        assert "broken.md" in screen._detail.plain
        await pilot.press("alt+g")
        screen = await read(pilot, "guards", 9)
        await picture(pilot, "guards")
        redundant = next(row for row in screen.rows if row.name == "redundant_read")
        assert redundant.refused == 1
        await pilot.press("slash")
        await write(pilot, "redundant", "enter")
        await until(pilot, lambda: "Nothing was" in screen._detail.plain)
        await pilot.press("escape", "end", "enter", "n")
        assert screen.row.own.state == "not approved", "any other key withdraws the question"
        await pilot.press("enter", "y")
        await until(pilot, lambda: screen.row.own.state == "approved")
        assert "def check(call, session)" in screen._detail.plain
        await pilot.press("x", "y")
        await until(pilot, lambda: screen.row.own.state == "not approved")


async def test_sessions_are_found_renamed_and_followed(still, scene, picture):
    scene.begin("round to even", title="Round to even").wave("observing").say("agent", "I look.")
    other = Scene(still.store, scene.root).begin("write the guide", title="Write the guide")
    other.wave("observing").say("agent", "The guide has three parts:\n\n1. how\n2. why\n3. when")
    async with on_screen(still, size=SIZE) as (pilot, app, _):
        await pilot.press("f6")
        screen = await read(pilot, "sessions", 2)
        await picture(pilot, "sessions")
        await pilot.press("slash")
        await write(pilot, "nothing-such", "enter")
        await until(pilot, lambda: screen.row is None)
        await pilot.press("escape", "end", "e")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        app.screen.query_one(Input).value = "Rounds\x1b[2J to even"
        await pilot.press("enter")
        await until(pilot, lambda: screen.row is not None and "Rounds" in screen.row.title)
        followed = screen.row.session_id
        await pilot.press("enter")
        await until(pilot, lambda: app.session_id == followed and app.screen is not screen)


async def test_settings_are_changed_in_the_users_file(still, tmp_path, monkeypatch, picture):
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "user"))
    file = tmp_path / "user" / "config.toml"
    async with on_screen(still, size=SIZE) as (pilot, app, _):
        await pilot.press("alt+comma")
        screen = await read(pilot, "settings", 20)
        await picture(pilot, "settings")

        async def to(name: str) -> None:
            await pilot.press("slash")
            await write(pilot, name, "enter")
            await until(pilot, lambda: screen.row is not None and screen.row.key.name == name)

        await to("max_waves")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        app.screen.query_one(Input).value = "7"
        await pilot.press("enter")
        await until(pilot, lambda: file.exists() and "max_waves = 7" in file.read_text())
        await until(pilot, lambda: screen.row is not None and screen.row.value == 7)
        await pilot.press("x")
        await until(pilot, lambda: "max_waves" not in file.read_text())
        # A wider policy asks once more, and no is the first answer.
        await pilot.press("escape")
        await to("policy")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        await write(pilot, "reads", "enter")
        await until(pilot, lambda: isinstance(app.screen, PickOne) and "keep ask" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        assert "policy" not in file.read_text()


CHECKS = [
    CheckRow("store", "broken", "row 17 of the journal does not match its digest",
             "cockpit recover, then cockpit doctor again; the copy of the day before is kept"),
    CheckRow("anthropic", "missing", "ANTHROPIC_API_KEY is not set", "set it, or use another model"),
    CheckRow("sandbox", "missing", "no bubblewrap", "apt install bubblewrap"),
    CheckRow("git", "ok", "git 2.39.5", ""),
    CheckRow("terminal", "ok", "256 colours, kitty keys", ""),
]  # fmt: skip


class Checked(DoctorScreen):
    """The checks of another machine, until the user asks for this one's."""

    async def read_rows(self):
        return await super().read_rows() if self.rows else (CHECKS, ())


async def test_the_setup_is_shown_and_checked_again(still, picture):
    async with on_screen(still, size=SIZE) as (pilot, app, main):
        await app.open_screen(Checked(app))
        listed = await read(pilot, "doctor", len(CHECKS))
        await picture(pilot, "setup")
        await pilot.press("r")
        await until(pilot, lambda: "project" in {row.name for row in listed.rows})
        assert {"git", "project", "store"} <= {row.name for row in listed.rows}
        states = [row.state for row in listed.rows]
        assert states == sorted(states, key=["broken", "missing", "ok"].index)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is main)


@pytest.fixture
def session_id(still, tmp_path, monkeypatch) -> str:
    """A session whose first wave has loaded two skills and named one."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    words = "use git to find why a test crashes with a traceback"
    scene = Scene(still.store, still.place.root).begin(words, task_type="implement", title="Crash")
    scene.wave("observing")
    still.engine.skills.refresh()

    def step(tx) -> None:
        session = sessions.load(tx.connection, scene.session_id)
        wave = waves.find_latest(tx.connection, scene.session_id)
        take_in_skills(tx, WaveContext(still.engine, session, wave))

    still.store.write_now(step)
    return scene.session_id


async def open_skills(pilot) -> ListScreen:
    await settled(pilot)
    screen_of(pilot).act("skills")
    await until(pilot, lambda: getattr(pilot.app.screen, "PANE", "") == "skills")
    await until(pilot, lambda: len(pilot.app.screen.body.rows) == 7)
    await settled(pilot)
    return pilot.app.screen


async def test_a_key_loads_and_unloads(still, session_id, picture):
    app = CockpitApp(still, session_id=session_id)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_skills(pilot)
        assert [(each.skill.name, each.state, each.why) for each in screen.rows[:3]] == [
            ("debugging", "loaded", "it matches crashes, traceback, find"),
            ("git", "loaded", "you mentioned it"),
            ("testing-strategy", "named", "it matches test, find"),
        ]
        await picture(pilot, "skills")
        await pilot.press("enter")
        await until(pilot, lambda: screen.rows[0].state == "leaves")
        await pilot.press("end", "l")
        await until(pilot, lambda: "waits" in {each.state for each in screen.rows})
        waiting = [each.skill.name for each in screen.rows if each.state == "waits"]
        assert waiting == ["writing-docs"]
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


COUNT = '''"""Words of files."""

from pathlib import Path

from cockpit import tool


@tool(effects="reads", aliases=["wc"])
def count_words(path: str, minimum: int = 1) -> dict[str, int]:
    """Count the words of a file.

    Args:
        path: The file, from the project's root.
        minimum: Shortest word that counts.
    """
    words = [word for word in Path(path).read_text().split() if len(word) >= minimum]
    return {"words": len(words)}
'''
BROKEN = "from cockpit import tool\n\n@tool(name='a' + 'b')\ndef f(path: str):\n    'x\x1b[2J'\n"


@pytest.fixture
async def with_tools(still, project: Path):
    """A runtime with a tool, a file that is refused, and a server."""
    folder = project / ".cockpit" / "tools"
    folder.mkdir(parents=True)
    (folder / "words.py").write_text(COUNT)
    (folder / "zz.py").write_text(BROKEN)
    engine = still.engine
    servers = {"archive": McpServer("archive", ("archive-mcp", "--stdio"))}
    settings = replace(engine.settings, mcp=servers)
    ground = replace(engine.ground, sandbox=Sandbox("/usr/bin/bwrap", "/usr/bin/prlimit"))
    async with open_added_tools(engine.store, engine.place, settings, ground) as added:
        still.engine = replace(engine, settings=settings, added=added)
        yield still


async def open_tools(pilot) -> ToolsScreen:
    await settled(pilot)
    screen_of(pilot).act("tools")
    await until(pilot, lambda: isinstance(pilot.app.screen, ToolsScreen))
    await until(pilot, lambda: len(pilot.app.screen.rows) == 3)
    await settled(pilot)
    return pilot.app.screen


async def test_the_tools(with_tools, picture):
    app = CockpitApp(with_tools)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_tools(pilot)
        await pilot.press("enter")
        await picture(pilot, "tools")


WIDE = (120, 36)


@pytest.fixture
def days(still, clock) -> Days:
    return three_days(still.store, clock)


async def open_stats(pilot) -> StatsScreen:
    """The screen of measures, opened from the palette's list, when it has read."""
    await settled(pilot)
    screen_of(pilot).act("stats")
    await until(pilot, lambda: isinstance(pilot.app.screen, StatsScreen))
    await settled(pilot)
    await until(pilot, lambda: len(pilot.app.screen.body.views) == 11)
    return pilot.app.screen


def shown(screen: StatsScreen) -> dict[str, str]:
    return {view.name: view.value for view in screen.body.views}


async def test_measures_are_live_of_the_time_that_keys_choose_and_compared(still, days, picture):
    async with on_screen(still, size=WIDE) as (pilot, app, _):
        screen = await open_stats(pilot)
        await picture(pilot, "measures")
        assert shown(screen)["Workers per chain"] == "2.5"
        await pilot.press("right", "right", "right", "right")
        await until(pilot, lambda: shown(screen)["Tasks per worker"] == "7.5")
        assert screen.head()[1][0][0] == "the last day"
        await pilot.press("left", "left", "left", "left")
        await until(pilot, lambda: shown(screen)["Workers per chain"] == "2.5")

        # Before and after a date.
        await pilot.press("p")
        await until(pilot, lambda: app.screen is not screen)
        await write(pilot, "2026-01-02", "enter")
        await until(pilot, lambda: shown(screen)["Batches completed"] == "100%")
        await picture(pilot, "compared")
        changes = {view.name: (view.change, view.tone) for view in screen.body.views}
        assert changes["Batches completed"] == ("before 50%, +50 points", "good")
        await pilot.press("p")
        await until(pilot, lambda: app.screen is not screen)
        app.screen.query_one(Input).value = ""
        await pilot.press("enter")
        await until(pilot, lambda: shown(screen)["Batches completed"] == "75%")

        days.session(days.chain(), 1, [("failed", 0, 0), ("failed", 0, 0)], tokens=1_000)
        await until(pilot, lambda: shown(screen)["Batches completed"] == "60%")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
