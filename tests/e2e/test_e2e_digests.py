"""The same review has the same packets: again, at once, in a clone, with another hash seed."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from commands.cli_world import PATIENCE_S, Project

pytestmark = pytest.mark.slow

WORDS = ("review", "main..feature", "--model", "offline", "--approve", "all")
AS_JSON = ("--output-format", "json")


def digests(document: dict[str, Any]) -> list[str]:
    assert document["result"]["status"] == "done", document
    return [wave["packet"]["digest"] for wave in document["waves"]]


def test_again_at_once_and_elsewhere(project: Project) -> None:
    project.extra["PYTHONHASHSEED"] = "77"
    running = project.start(*WORDS, *AS_JSON)
    first = digests(project.json(*WORDS, *AS_JSON))
    out, error = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, error
    assert digests(json.loads(out)) == first and len(first) >= 2
    assert len(list((project.root / ".cockpit" / "reviews").iterdir())) == 1
    clone = project.root.parent / "a clone"
    project.git("clone", "--quiet", str(project.root), str(clone))
    subprocess.run(["git", "branch", "main", "origin/main"], cwd=clone, check=True)
    elsewhere = Project(clone, project.config)
    assert digests(elsewhere.json(*WORDS, *AS_JSON)) == first
    for place in (project, elsewhere):
        place.run("debug", "packet", "verify")
        place.run("debug", "journal")
