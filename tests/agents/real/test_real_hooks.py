"""Sessions in the user's own terminals: real Claude Code and Codex in tmux, a cockpit beside them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.real.real_world import find_program
from agents.real.terminal_world import PRESS_S, Terminals, open_terminals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.agents,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


def needs(program: str) -> pytest.MarkDecorator:
    """Run the test where the program is installed."""
    return pytest.mark.skipif(find_program(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def terminals(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Terminals]:
    agent = request.param
    with open_terminals(tmp_path, agent) as opened:
        # A hook does nothing in a folder without a store of cockpit's.
        opened.cockpit("tasks", "add", "Open the shop")
        opened.cockpit("hook", "install", agent, *LOCAL[agent], "--approve", "--yes")
        yield opened


LOCAL = {"claude": ("--local",), "codex": ()}


def asked(terminals: Terminals) -> str:
    """Wait for the one permission that waits, and go to its session in the cockpit; returns its id."""
    (proposal,) = terminals.wait(
        lambda: terminals.permissions("pending"), lambda: "nothing was asked for"
    )
    terminals.until("cockpit", proposal.title[:20])
    terminals.go_to_next()
    terminals.until("cockpit", "PERMISSION", proposal.title[:20])
    return str(proposal.proposal_id)


def approve(terminals: Terminals, proposal_id: str) -> None:
    """Press Enter until it counts."""

    def press() -> bool:
        if [proposal.proposal_id for proposal in terminals.permissions("pending")] == [proposal_id]:
            terminals.press("cockpit", "Enter")
        return not terminals.permissions("pending")

    terminals.wait(press, lambda: terminals.screen("cockpit"), PRESS_S)
    assert proposal_id in [each.proposal_id for each in terminals.permissions("approved")]


@needs("claude")
@pytest.mark.parametrize("terminals", ["claude"], indirect=True)
def test_claude_code_goes_on_when_it_is_allowed_and_its_own_no_withdraws(
    terminals: Terminals,
) -> None:
    terminals.open("cockpit", "cockpit")
    terminals.until("cockpit", "ype a task:")
    terminals.open("claude", "claude", "--permission-mode", "default")
    terminals.until("claude", "manual mode")
    terminals.write("claude", "command one.txt now 1")
    proposal_id = asked(terminals)
    # Its own dialog is open at the same time, and closes with our answer.
    terminals.until("claude", "Do you want to")
    approve(terminals, proposal_id)
    terminals.until("claude", "All done here.")
    assert (terminals.root / "one.txt").exists()

    terminals.write("claude", "command two.txt now 2")
    asked(terminals)
    terminals.until("claude", "Do you want to")
    terminals.press("claude", "Escape")
    terminals.until("cockpit", "No proposals")
    assert terminals.permissions("pending") == []
    (withdrawn,) = terminals.permissions("expired")
    assert withdrawn.title == "touch two.txt"
    assert not (terminals.root / "two.txt").exists()

    terminals.write("claude", "command three.txt now 3")
    asked(terminals)
    terminals.refuse("use the Makefile")
    terminals.until("claude", "I will use the Makefile.")
    assert not (terminals.root / "three.txt").exists()

    terminals.write("claude", "command four.txt now 4")
    asked(terminals)
    terminals.until("claude", "Do you want to")
    terminals.press("claude", "1")
    terminals.wait((terminals.root / "four.txt").exists, lambda: terminals.screen("claude"))
    terminals.until("cockpit", "No proposals")
    assert len(terminals.permissions("expired")) == 2


@needs("codex")
@pytest.mark.parametrize("terminals", ["codex"], indirect=True)
def test_codex_goes_on_when_it_is_allowed_and_escape_there_withdraws(terminals: Terminals) -> None:
    terminals.open("cockpit", "cockpit")
    terminals.until("cockpit", "ype a task:")
    terminals.open("codex", "codex")
    terminals.until("codex", "Hooks need review", "2. Trust all")
    terminals.press("codex", "2")
    terminals.press("codex", "Enter")
    terminals.until("codex", "Ask Codex")
    terminals.write("codex", "command one.txt now 1")
    proposal_id = asked(terminals)
    terminals.until("codex", "answer in cockpit")
    approve(terminals, proposal_id)
    terminals.until("codex", "All done here.")
    assert (terminals.root / "one.txt").exists()

    terminals.write("codex", "command two.txt now 2")
    asked(terminals)
    terminals.refuse("use the Makefile")
    terminals.until("codex", "I will use the Makefile.")
    assert not (terminals.root / "two.txt").exists()

    terminals.write("codex", "command three.txt now 3")
    asked(terminals)
    terminals.press("codex", "Escape")
    terminals.until("cockpit", "No proposals")
    (withdrawn,) = terminals.permissions("expired")
    assert withdrawn.title == "touch three.txt"
    assert not (terminals.root / "three.txt").exists()
