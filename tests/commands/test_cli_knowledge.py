"""``cockpit knowledge``: the user's threshold applies here as everywhere."""

from __future__ import annotations

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow


def test_a_search_has_the_users_threshold(project: Project) -> None:
    (project.root / "tea.md").write_text("# Tea\n\nGreen leaves are steeped.\n")
    question = "which green leaves do penguins and walruses eat"
    silent = project.run("knowledge", question)
    assert (silent.stdout, "No passage answers this" in silent.stderr) == ("", True)
    assert "tea.md:1-3" in project.run("knowledge", question, "--threshold", "0.1").stdout
    project.extra["COCKPIT_KNOWLEDGE_THRESHOLD"] = "0.1"
    assert "tea.md:1-3" in project.run("knowledge", question).stdout
