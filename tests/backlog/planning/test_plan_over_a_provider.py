"""A plan by a model at the other end of the wire, in each provider's protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback.replies import Say, Use
from loopback.server import Loopback, LoopbackThread
from plan_world import Project

pytestmark = pytest.mark.slow

BAD = {"tasks": [{"title": "Add it", "task_type": "magic", "acceptance": ["x"]}]}
GOOD = {
    "tasks": [
        {"title": "Add it", "task_type": "feature", "acceptance": ["it works"]},
        {"title": "Test it", "task_type": "test", "acceptance": ["red before"], "after": ["1"]},
    ]
}
VENDORS = {"anthropic": "claude-sonnet-5-5", "openai-compatible": "local"}


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """The SDKs are loaded once, and not by every process of these tests."""


@pytest.fixture
def server() -> Iterator[Loopback]:
    with LoopbackThread() as running:
        yield running


def variables(vendor: str, server: Loopback) -> dict[str, str]:
    if vendor == "anthropic":
        return {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
    return {"COCKPIT_API_KEY": "k", "COCKPIT_BASE_URL": server.openai_url}


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_provider_s_plan_is_mended_and_proposed(
    project: Project, server: Loopback, vendor: str, tmp_path: Path
) -> None:
    server.play(
        [Say("", calls=(Use("propose_plan", BAD),)), Say("", calls=(Use("propose_plan", GOOD),))]
    )
    ran = project.run(
        "plan", "add it", "--model", f"{vendor}:{VENDORS[vendor]}", "--json",
        **variables(vendor, server),
    )  # fmt: skip
    shown: dict[str, Any] = json.loads(ran.stdout)
    assert shown["status"] == "pending"
    assert shown["title"] == "Plan: Add it (2 tasks)"
    first, second = (json.dumps(request.body) for request in server.requests)
    assert "propose_plan" in first
    assert "edit_file" not in first, "a session that plans has no actions"
    assert "The type is 'magic'" in second
    assert json.loads(project.run("tasks", "list", "--json").stdout) == []
