"""Tasks and chains whose agents ask for each permission by their own protocol."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from agents.runner_world import AGENT
from chains.chain_world import WORK, Chains
from tasks.taskrun_world import PASSES, finish, turn

pytestmark = pytest.mark.slow

CHAIN_AGENT = AGENT.with_name("chain_agent.py")


def configure(world: Chains, protocol: str, *words: str, limits: str = "") -> None:
    """Write a runner ``driven`` whose agent speaks the protocol."""
    command = json.dumps([sys.executable, "-S", str(CHAIN_AGENT), protocol, *words])
    agents = world.project.config / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    if protocol == "acp":
        (agents / "driven.toml").write_text(f'title = "Driven"\n[acp]\ncommand = {command}\n')
        (world.project.config / "config.toml").write_text(limits, encoding="utf-8")
        return
    (world.project.config / "config.toml").write_text(
        f'{limits}[runner.driven]\ncommand = {command}\nprotocol = "{protocol}"\n', encoding="utf-8"
    )


def test_a_chain_ends_right(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    configure(world, "stdio")
    told = world.project.run(*WORK, "--all", "--runner", "driven").stdout
    assert world.statuses() == {"T-1": "done"}, told
    assert [row["status"] for row in world.rows("runner.ended")] == ["finished"] * 3
    assert [row["kind"] for row in world.rows("proposal.created")] == ["permission"]
    decided = world.rows("proposal.decided")
    assert {row["decided_by"] for row in decided} == {"policy:all"}
    spent = world.rows("model.completed")
    assert sum(row["input_tokens"] + row["output_tokens"] for row in spent) == 3 * 30


def test_without_an_answer_the_task_is_blocked_with_what_was_asked(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    configure(world, "acp", limits="[approval]\ndeadline_s = 1\n")
    words = ("work", "--task", "T-1", "--approve", "ask", "--runner", "acp:driven")
    world.project.run(*words, expect=3)
    shown = world.project.json("tasks", "T-1", "--json")
    assert shown["status"] == "blocked"
    assert "It asked for" in shown["blocker"] and "part1.py" in shown["blocker"]
    assert "the deadline passed without a decision" in shown["blocker"]


def test_a_refused_permission_blocks_a_task_although_something_was_done(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    configure(world, "stdio", "refused")
    words = ("work", "--task", "T-1", "--approve", "all", "--runner", "driven")
    world.project.run(*words, expect=3)
    shown = world.project.json("tasks", "T-1", "--json")
    assert shown["status"] == "blocked"
    assert "was refused 1 permission: Bash: sudo make install." in shown["blocker"]
    assert "Its work is kept." in shown["blocker"]
    (ended,) = [row for row in world.rows("runner.ended") if row["status"] == "finished"][:1]
    assert ended["refused"]


def test_the_built_in_agent_starts_from_what_an_external_one_read(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    configure(world, "stdio", "reads")
    alone = ("work", "--task", "T-1", "--approve", "all")
    world.project.run(*alone, "--runner", "driven", expect=3)
    assert world.statuses() == {"T-1": "blocked"}
    seen = world.rows("runner.file_read")
    assert [(row["path"], row["first"], row["last"]) for row in seen] == [("calc.py", 1, 1)]
    version = seen[0]["version"]
    assert sha256((world.root / "calc.py").read_bytes()).hexdigest().startswith(version)

    world.project.run("tasks", "move", "T-1", "unblocked")
    ask = 'purpose = "look", question = "What is there?", scope = ["file:calc.py:1-1"]'
    wrote = 'path = "part1.py", content = "x = 1\\n"'
    scenario = (
        turn("implementer", "request_context", ask, said="### Read Before")
        + turn("implementer", "write_file", wrote, when='called = ["request_context"]')
        + finish("implementer", "It is there.", when='called = ["write_file"]')
        + PASSES
    )
    world.project.run(*alone, *world.model(scenario))
    assert world.statuses() == {"T-1": "done"}
    texts = world.read(select_prompts)
    assert any(
        "- `file:calc.py:1-1`: driven in s-" in text and f"version {version}, unchanged" in text
        for text in texts
    ), texts
    # The lines are in its first packet: what it asks for is redundant.
    (refused,) = world.rows("context.refused")
    assert refused["message"].startswith("Nothing was read: file:calc.py:1")


def select_prompts(connection: Any) -> list[str]:
    """Return the whole first message of each session."""
    return [text for (text,) in connection.execute("SELECT words FROM sessions")]
