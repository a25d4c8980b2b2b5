"""``cockpit evolve`` in one process, the user's decision in another."""

from __future__ import annotations

import itertools
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
arguments.withheld = """
from double_it import double_it

def test_it_doubles_another():
    assert double_it(7) == 14
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
    before = list(itertools.takewhile(lambda line: "cockpit proposals" not in line, said))
    assert "Round 1: the test of double_it is red. 1 ran, 1 failed, 0 skipped\n" in before
    assert "Round 2: the code of double_it is green. 1 ran, 0 failed, 0 skipped\n" in before
    (proposal,) = project.json("proposals", "--json")
    project.run("proposals", "approve", proposal["proposal_id"])
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert json.loads(out)["summary"].startswith("The tool double_it is adopted: ")
    assert "double_it" in project.run("tools").stdout
    assert json.loads(project.run("tools", "run", "double_it", "number=4").stdout) == 8
    project.run("debug", "journal")


def test_why_nothing_grows_is_said_with_each_round(project: Project) -> None:
    done = project.run("evolve", "Double numbers", "--model", "offline", expect=1)
    assert "The offline rules write no code" in done.stderr
    words = '[[turn]]\ntext = "I would rather talk."\n'
    done = project.run("evolve", "Double numbers", "--model", project.script(words), expect=1)
    fault = "The answer has no call. Make one: write_test, write_code or give_up."
    assert done.stdout == (
        "Nothing grew: Two rounds in a row changed nothing. No test was accepted, so no code was"
        f" written. The last fault: {fault}\n"
    )
    assert f"Round 3: the code is refused. {fault}" in done.stderr
