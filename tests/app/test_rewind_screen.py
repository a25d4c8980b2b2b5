"""Going back to a wave on the screen: what it does is shown first; forward again from the list."""

from __future__ import annotations

import pytest
from app_world import calm, on_screen, settled, until
from app_world import whole_text as text
from msgspec.structs import replace
from textual.widgets import Input

from cockpit.app.dialogs.scroll_rows import ScrollRows
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.app.screens.lists.sessions_screen import SessionsScreen
from cockpit.decide.choose_model import ModelSettings
from cockpit.loop.runtime import Runtime

pytestmark = pytest.mark.slow

SCENARIO = """
[[turn]]
when = { not_called = ["request_context"] }
[[turn.call]]
name = "request_context"
arguments.purpose = "fix add"
arguments.question = "what does add do?"
arguments.scope = ["file:calc.py"]

[[turn]]
text = "I write the guide."
when = { called = ["request_context"], not_called = ["write_file"] }
[[turn.call]]
name = "write_file"
arguments = { path = "guide.md", content = "Guide" }

[[turn]]
text = "I fix the sum."
when = { called = ["write_file"], not_called = ["edit_file"] }
[[turn.call]]
name = "edit_file"
arguments = { path = "calc.py", old = "a - b", new = "a + b" }

[[turn]]
when = { called = ["edit_file"], not_called = ["run"] }
[[turn.call]]
name = "run"
arguments = { argv = ["true"], reason = "to see that programs run" }

[[turn]]
when = { called = ["run"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "add adds" }
"""


async def pick(pilot, words: str) -> None:
    pilot.app.screen.query_one(Input).value = words
    await calm(pilot)
    await pilot.press("enter")


async def test_back_with_files_and_forward_again(still, project, tmp_path):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    engine = still.engine
    model = ModelSettings(model=f"script:{scenario}")
    still.engine = replace(
        engine, settings=replace(engine.settings, model=model, policy="all", sandbox="off")
    )
    original = (project / "calc.py").read_text()
    source = await still.start("fix add in calc.py", interactive=False)
    assert (await Runtime.run(still, source)).status == "completed"
    fixed = (project / "calc.py").read_text()
    assert fixed != original
    async with on_screen(still, source, size=(120, 36)) as (pilot, app, _):
        await pilot.press("escape")
        await until(pilot, lambda: "esc again goes back" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        await until(pilot, lambda: "I fix the sum." in text(pilot))
        await pick(pilot, "wave 2")
        await until(pilot, lambda: isinstance(app.screen, ScrollRows))
        await calm(pilot)
        shown = text(pilot)
        assert "Go back to wave 2?" in shown and "calc.py  gets its earlier content" in shown
        assert "what a command did is not undone" in shown
        assert "1 file gets what it had then" in shown, "the second wave wrote the other one"
        assert (project / "calc.py").read_text() == fixed
        await pilot.press("y")
        await until(pilot, lambda: (project / "calc.py").read_text() == original)
        await until(pilot, lambda: app.session_id not in ("", source))
        gone_back = app.session_id
        await settled(pilot)
        assert (project / "guide.md").exists()

        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await until(
            pilot, lambda: {row.session_id for row in app.screen.rows} == {source, gone_back}
        )
        await until(
            pilot, lambda: app.screen.row is not None and app.screen.row.session_id == gone_back
        )
        await pilot.press("u")
        await until(pilot, lambda: (project / "calc.py").read_text() == fixed)
        await until(pilot, lambda: app.session_id == source)
