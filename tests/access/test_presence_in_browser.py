"""Who decides on a screen that ``cockpit web`` started: its user, unless an agent is anywhere above."""

from __future__ import annotations

import pytest

from cockpit.access import user_presence
from cockpit.access.user_presence import Process

ME, WEB, RUN = "cockpit", "python -m cockpit web --port 0", "python -m cockpit run fix"


class Played(Process, frozen=True):
    """A process with a command line that the test says, and perhaps an agent's mark."""

    line: str = ""
    mark: str = ""

    def words(self) -> list[str]:
        return self.line.split()

    def has_mark(self) -> str:
        return self.mark


def line(*commands: str, mark: str = "") -> list[Process]:
    """Return a process and those above it, the nearest first; the last one has the mark."""
    last = len(commands) - 1
    return [
        Played(at + 10, at + 11, 1, 0, "x", command, mark if at == last else "")
        for at, command in enumerate(commands)
    ]


@pytest.mark.parametrize(
    ("above", "mark", "is_agents"),
    [
        ((WEB, "bash", "tmux"), "", False),
        (("/usr/bin/python3 /home/u/.local/bin/cockpit web", "bash"), "", False),
        ((WEB, "bash", "claude"), "", True),
        ((WEB, "bash", "bash"), "CLAUDECODE", True),
        ((WEB, "bash", RUN), "", True),
        (("bash", WEB), "", True),
        ((WEB, WEB), "", True),
        ((RUN, "bash"), "", True),
        (("python -m cockpit serve web", "bash"), "", True),
    ],
)
def test_a_screen_of_the_web_is_its_users(above: tuple[str, ...], mark: str, is_agents: bool):
    named = user_presence._find_agent_in(line(ME, *above, mark=mark), 10, counts_cockpit=True)
    assert bool(named) is is_agents, named
