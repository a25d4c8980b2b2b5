"""``cockpit evolve`` in one process, the user's decision in another."""

from __future__ import annotations

import json
import time

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
    ends = time.monotonic() + PATIENCE_S
    waiting: list[dict[str, str]] = []
    while not waiting and time.monotonic() < ends and process.poll() is None:
        waiting = project.json("proposals", "list", "--json")
    (proposal,) = waiting
    project.run("proposals", "approve", proposal["proposal_id"])
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert json.loads(out)["summary"].startswith("The tool double_it is adopted: ")
    assert "cockpit proposals show" in err
    assert "double_it" in project.run("tools", "list").stdout
    assert json.loads(project.run("tools", "run", "double_it", "number=4").stdout) == 8
    project.run("journal", "verify")


def test_a_growth_that_has_ended_is_gone_on_with_where_that_helps(project: Project) -> None:
    nothing = project.run("evolve", "--continue", expect=1)
    assert "No growth is left to continue." in nothing.stderr
    script = project.script(SCENARIO.replace("when = { wave = 2 }", "when = { wave = 9 }"))
    project.run("evolve", "Double numbers", "--model", script, expect=1)
    project.script(SCENARIO)  # in the place of the one that failed
    process = project.start("evolve", "--continue")
    ends = time.monotonic() + PATIENCE_S
    waiting: list[dict[str, str]] = []
    while not waiting and time.monotonic() < ends and process.poll() is None:
        waiting = project.json("proposals", "list", "--json")
    project.run("proposals", "reject", waiting[0]["proposal_id"], "--reason", "no need")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3, err
    assert "rejected by person: no need" in out
    both = project.run("evolve", "--continue", "--model", script, expect=2)
    assert "exclude each other" in both.stderr


def test_a_growth_that_ends_without_a_tool_says_why(project: Project) -> None:
    scenario = '[[turn]]\n[[turn.call]]\nname = "give_up"\narguments.reason = "no such format"\n'
    ended = project.run("evolve", "Read .xyz", "--model", project.script(scenario), expect=1)
    assert "The model gave up: no such format" in ended.stdout
    assert not (project.root / ".cockpit" / "tools").exists()
