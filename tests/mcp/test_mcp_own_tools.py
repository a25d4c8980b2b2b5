"""Approved functions in Python over MCP: listed under a prefix, proposed, run once the user agreed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from mcp_world import Near, Project

pytestmark = pytest.mark.slow

TOOL = '''
from pathlib import Path

from cockpit import tool


@tool
def shout(path: str) -> str:
    """Write a file in capitals."""
    text = Path(path).read_text().upper()
    Path(path).write_text(text)
    return text
'''


def test_an_external_agent_calls_an_approved_function_by_a_proposal(project: Project) -> None:
    folder = project.root / ".cockpit" / "tools"
    folder.mkdir(parents=True)
    (folder / "loud.py").write_text(TOOL)
    with Near(project, "standard") as wire:
        assert not any(name.startswith("own_") for name in wire.greet().tools())
        assert "There is no tool" in wire.refused("own_shout", path="shapes.py")
        project.run("trust", "shout", "--yes")
        assert "own_shout" in wire.tools()
        assert "no argument 'file'" in wire.refused("own_shout", file="shapes.py")
        with ThreadPoolExecutor(1) as other:
            calling = other.submit(wire.call, "own_shout", path="shapes.py")
            while not (waiting := project.waiting()):
                assert not calling.done(), calling.result()
                time.sleep(0.02)
            project.decide(waiting[0])
            answer = calling.result()
        assert (answer["status"], "DEF AREA" in answer["result"]) == ("confirmed", True)
        assert (project.root / "shapes.py").read_text().startswith("DEF AREA")
    with Near(project) as wire:
        assert "own_shout" not in wire.greet().tools()
