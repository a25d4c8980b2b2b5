"""``cockpit evolve`` in one process, the user's decision in another."""

from __future__ import annotations

import json

import pytest
from cli_world import PATIENCE_S, Project

pytestmark = pytest.mark.slow

SCENARIO = '''
[[turn]]
when = { wave = 1 }
[[turn.call]]
name = "write_test"
arguments.name = "double_it"
arguments.purpose = "doubles numbers"
arguments.source = """
from double_it import double_it

def test_it_doubles():
    assert double_it(4) == 8
"""
[[turn]]
when = { wave = 2 }
[[turn.call]]
name = "write_code"
arguments.source = """
from cockpit import tool

@tool(effects="reads")
def double_it(number: int) -> int:
    \\"\\"\\"Double a number.

    Args:
        number: What to double.
    \\"\\"\\"
    return number * 2
"""
'''


def test_a_tool_grows_and_is_adopted_from_another_process(project: Project) -> None:
    process = project.start(
        "evolve", "Double numbers", "--model", project.script(SCENARIO), "--json"
    )
    assert process.stderr is not None
    said = iter(process.stderr)
    assert any("cockpit proposals show" in line for line in said)
    (proposal,) = project.json("proposals", "list", "--json")
    project.run("proposals", "approve", proposal["proposal_id"])
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert json.loads(out)["summary"].startswith("The tool double_it is adopted: ")
    assert "double_it" in project.run("tools", "list").stdout
    assert json.loads(project.run("tools", "run", "double_it", "number=4").stdout) == 8
    project.run("journal", "verify")
