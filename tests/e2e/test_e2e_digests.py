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
    running = []
    for seed in ("1", "77"):
        project.extra["PYTHONHASHSEED"] = seed
        running.append(project.start(*WORDS, *AS_JSON))
    ended = [one.communicate(timeout=PATIENCE_S) for one in running]
    assert [one.returncode for one in running] == [0, 0], ended
    first, second = (digests(json.loads(out)) for out, _ in ended)
    assert first == second and len(first) >= 2
    assert len(list((project.root / ".cockpit" / "reviews").iterdir())) == 1
    assert digests(project.json(*WORDS, *AS_JSON)) == first
    clone = project.root.parent / "a clone"
    project.git("clone", "--quiet", str(project.root), str(clone))
    subprocess.run(["git", "branch", "main", "origin/main"], cwd=clone, check=True)
    elsewhere = Project(clone, project.config)
    assert digests(elsewhere.json(*WORDS, *AS_JSON)) == first
    for place in (project, elsewhere):
        place.run("packet", "verify")
        place.run("journal", "verify")
