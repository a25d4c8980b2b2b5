"""Jumping to the terminal of an agent in tmux, and refusing what a hook's environment may have made up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.runner_world import Runs
from msgspec.structs import replace

from cockpit.agents.terminals.jump_to_terminal import NoTerminal, jump_to_terminal
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session

pytestmark = pytest.mark.slow


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Path]:
    """The socket of a tmux with two windows."""
    socket = tmp_path / "tmux.sock"
    _tmux(socket, "-f", "/dev/null", "new-session", "-d", "-s", "work", "cat")
    _tmux(socket, "new-window", "-t", "work", "cat")
    yield socket
    _tmux(socket, "kill-server")


def _tmux(socket: Path, *words: str) -> str:
    argv = ["tmux", "-S", str(socket), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def session_in(runs: Runs, **target: str) -> Session:
    session_id = runs.session()
    session = runs.store.read_now(lambda connection: sessions.load(connection, session_id))
    return replace(session, target=target)


async def test_the_window_of_the_agent_is_in_front(runs: Runs, tmux: Path) -> None:
    first, second = _tmux(tmux, "list-panes", "-s", "-F", "#{pane_id}").split()
    where = ("display-message", "-p", "-t", "work", "#{pane_id}")
    assert _tmux(tmux, *where).strip() == second
    session = session_in(runs, terminal="tmux", window=first, socket=str(tmux))
    assert await jump_to_terminal(session, {}) == "tmux"
    assert _tmux(tmux, *where).strip() == first
    with pytest.raises(NoTerminal, match="could not show"):
        await jump_to_terminal(replace(session, target={**session.target, "window": "%99"}), {})


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"terminal": "tmux", "window": "%1; kill-server", "socket": "/tmp"},
        {"terminal": "tmux", "window": "%1", "socket": "/etc/passwd"},
        {"terminal": "tmux", "window": "%1", "socket": "\0"},
        {"terminal": "kitty", "window": "1 --to x"},
        {"terminal": "iterm", "window": 'w0t0p0:"; do shell script "id'},
    ],
)
async def test_a_place_that_is_made_up_starts_nothing(runs: Runs, target: dict[str, str]) -> None:
    with pytest.raises(NoTerminal, match="is not known"):
        await jump_to_terminal(session_in(runs, **target), {})
