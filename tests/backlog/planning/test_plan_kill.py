"""A process that is killed while an approved plan enters the backlog: all of it or nothing, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from plan_world import Project
from state_for_tests import kept_variables

pytestmark = pytest.mark.slow

DIE = """
import os, signal, sys
from cockpit.backlog import service
from cockpit.backlog.planning import propose_plan
from cockpit.store.db import transaction

def kill(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)

where = sys.argv.pop(1)
if where == "half":
    real, count = propose_plan._task, []
    def some(*arguments):
        count.append(1)
        return kill() if len(count) > 2 else real(*arguments)
    propose_plan._task = some
elif where == "whole":
    propose_plan.describe_result = kill
from cockpit.cli import main
raise SystemExit(main(sys.argv[1:]))
"""
PLAN = {
    "tasks": [
        {"title": f"Task {number}", "task_type": "feature", "acceptance": ["a test"]}
        for number in range(1, 6)
    ]
}


@pytest.mark.parametrize("where", ["half", "whole"])
def test_a_kill_between_approval_and_insert_leaves_the_plan_waiting(
    project: Project, tmp_path: Path, where: str
) -> None:
    scenario = tmp_path / "scenario.toml"
    raw = json.dumps(json.dumps(PLAN))
    scenario.write_text(
        f"[[turn]]\ntext = 'A plan.'\n[[turn.call]]\nname = 'propose_plan'\nraw_arguments = {raw}\n"
    )
    ran = project.run("plan", "five things", "--model", f"script:{scenario}", "--json")
    identity = json.loads(ran.stdout)["proposal_id"]
    home = str(project.root.parent / "home")
    env = {**kept_variables(), "HOME": home, "COCKPIT_CONFIG_DIR": f"{home}/config"}
    killed = subprocess.run(
        [sys.executable, "-c", DIE, where, "proposals", "approve", identity],
        cwd=project.root, env={**os.environ, **env}, capture_output=True, timeout=90,
    )  # fmt: skip
    assert killed.returncode in (-9, 137), killed.stderr
    assert json.loads(project.run("tasks", "list", "--json").stdout) == []
    shown = json.loads(project.run("proposals", "show", identity, "--json").stdout)
    assert shown["status"] == "pending"
    project.run("proposals", "approve", identity)
    project.run("proposals", "approve", identity, expect=3)
    listed = json.loads(project.run("tasks", "list", "--json").stdout)
    assert [task["title"] for task in listed] == [f"Task {number}" for number in range(1, 6)]
