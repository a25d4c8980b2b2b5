"""Four real agents at once in one project, each in a worktree of its own, approved from one queue in tmux."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from agents.real.real_world import INSTALLED
from agents.real.terminal_world import PRESS_S, Terminals, open_terminals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.agents,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]

AGENTS = INSTALLED[:6]
"""The pane lists six proposals; further ones wait behind."""
_FRONT = re.compile(
    r"(\w+) · shop · (cockpit/\w+-\w+) · session (?:s-\w+|s-\w*…) +(?:\d+[smhd]|now)"
)
"""The line below the title of the card in front."""
_ROW = re.compile(r"([a-z]+) · shop · cockpit/\S+ +(?:\d+[smhd]|now) [○●▲] (?:create|touch) ")


def test_each_agent_is_answered_by_its_own_card(tmp_path: Path) -> None:
    assert AGENTS
    with open_terminals(tmp_path, *AGENTS) as terminals:
        terminals.open("cockpit", "cockpit")
        terminals.until("cockpit", "ype a task:")
        for number, name in enumerate(AGENTS):
            prompt = f"edit {name}.txt now {number}"
            terminals.open(name, "cockpit", "run", "--agent", name, "--worktree", prompt)
        terminals.wait(
            lambda: len(terminals.permissions("pending")) == len(AGENTS),
            lambda: "\n".join(terminals.screen(name) for name in AGENTS),
        )
        screen = terminals.until("cockpit", f"{len(AGENTS)} in other sessions")
        assert sorted(_ROW.findall(screen)) == sorted(AGENTS), screen
        refused = AGENTS[-1]
        answered: dict[str, str] = {}
        while len(answered) < len(AGENTS):
            name = answer_front(terminals, refused, answered)
            answered[name] = "rejected" if name == refused else "approved"
            statuses = {
                str(proposal.body["agent"]): status
                for status in ("pending", "approved", "rejected")
                for proposal in terminals.permissions(status)
            }
            # Nothing but what stood on the card was decided.
            assert statuses == dict.fromkeys(AGENTS, "pending") | answered
        for name in AGENTS:
            terminals.until(name, "ended with 0")
        made = {path.stem for path in tmp_path.glob("state/projects/*/worktrees/*/*.txt")}
        assert made == set(AGENTS) - {refused}
        assert not list(terminals.root.glob("*.txt")), "each worked in its own worktree"
        changes = terminals.list_proposals(f"{len(made)} proposals of {len(made)} sessions")
        for name in made:
            assert f"{name} · shop · cockpit/{name}" in changes, changes


def answer_front(terminals: Terminals, refused: str, answered: dict[str, str]) -> str:
    """Answer the permission in front by what its card says; returns the agent that the card names."""

    def find_front() -> str:
        screen = terminals.screen("cockpit")
        match = _FRONT.search(screen)
        return match[1] if match and "PERMISSION" in screen and match[1] not in answered else ""

    terminals.go_to_next()
    front = terminals.wait(find_front, lambda: terminals.screen("cockpit"))
    before = len(terminals.permissions("pending"))

    def answer() -> bool:
        if len(terminals.permissions("pending")) == before and find_front() == front:
            if front == refused:
                terminals.refuse("use the Makefile")
            else:
                terminals.press("cockpit", "Enter")
        return len(terminals.permissions("pending")) < before

    terminals.wait(answer, lambda: terminals.screen("cockpit"), PRESS_S)
    assert len(terminals.permissions("pending")) == before - 1
    return str(front)
