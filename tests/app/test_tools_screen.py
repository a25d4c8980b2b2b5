"""Tools on the screen: a list with sources, approved and forgotten by keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_world import SIZES, screen_of, settled, until
from msgspec.structs import replace

from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.own_tools import run_child
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.app.application import CockpitApp
from cockpit.app.screens.lists.tools_screen import ToolsScreen
from cockpit.loop.tools.added_tools import open_added_tools
from cockpit.loop.tools.list_tools import list_rows

pytestmark = pytest.mark.slow

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


async def opened(pilot) -> ToolsScreen:
    await settled(pilot)
    screen_of(pilot).act("tools")
    await until(pilot, lambda: isinstance(pilot.app.screen, ToolsScreen))
    await until(pilot, lambda: len(pilot.app.screen.rows) == 3)
    await settled(pilot)
    return pilot.app.screen


def states(still) -> list[str]:
    return still.store.read_now(
        lambda c: [row.state for row in list_rows(c, still.engine.added.catalog)]
    )


async def test_enter_and_y_approve_what_is_shown(with_tools, monkeypatch):
    async def answer(*_: object, **__: object) -> run_child.ChildAnswer:
        schema = {
            "type": "object",
            "properties": {"path": {"type": "string"}, "minimum": {"type": "integer"}},
            "required": ["path"],
        }
        return run_child.ChildAnswer(
            result=[
                {
                    "function": "count_words",
                    "name": "count_words",
                    "aliases": ["wc"],
                    "effects": "reads",
                    "timeout_s": 60,
                    "parameters": ["path", "minimum"],
                    "schema": schema,
                }
            ]
        )

    # What the child process answers is tried in tests/loop/tools; here keys are.
    monkeypatch.setattr("cockpit.act.own_tools.describe_tools.run_child", answer)
    app = CockpitApp(with_tools)
    async with app.run_test(size=(110, 40)) as pilot:
        screen = await opened(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: screen._question and screen._question[0] == "approve")
        await pilot.press("n")
        await until(pilot, lambda: not screen._question)
        assert states(with_tools) == ["new", "refused"]
        await pilot.press("enter")
        await until(pilot, lambda: screen._question and screen._question[0] == "approve")
        await pilot.press("y")
        await until(pilot, lambda: states(with_tools) == ["approved", "refused"])
        await until(pilot, lambda: screen.row is not None and screen.row.state == "approved")
        await pilot.press("x")
        await until(pilot, lambda: screen._question and screen._question[0] == "forget")
        await pilot.press("y")
        await until(pilot, lambda: states(with_tools) == ["new", "refused"])


async def test_the_tools(with_tools, pictures):
    app = CockpitApp(with_tools)
    async with app.run_test(size=SIZES[0]) as pilot:
        await opened(pilot)
        await pilot.press("enter")
        await pictures(pilot, settled)
