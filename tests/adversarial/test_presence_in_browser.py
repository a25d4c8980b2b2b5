"""Whose a screen of ``cockpit web`` and a terminal are: the user's, unless an agent or nobody is above."""

from __future__ import annotations

import pytest

from cockpit.access import user_presence
from cockpit.access.user_presence import Process

ME, WEB, RUN = "cockpit", "python -m cockpit web --port 0", "python -m cockpit run fix"


class Played(Process, frozen=True):
    """A process with a command line that the test says, and perhaps an agent's mark."""

    line: str = ""
    mark: str = ""
    is_systems: bool = False

    def words(self) -> list[str]:
        return self.line.split()

    def has_mark(self) -> str:
        return self.mark

    def program(self) -> str:
        return self.name if self.is_systems else ""


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


def terminals(words: str) -> list[Process]:
    """Read processes, the nearest first, each with the number of its terminal.

    ``*`` leads a session of its own, ``!`` is a program of the system. The last one has no parent here.
    """
    made: list[Process] = []
    for at, word in reversed(list(enumerate(words.split()))):
        name, _, terminal = word.strip("*!").partition(":")
        leads = word.startswith("*") or not made
        session = at + 10 if leads else made[0].session
        is_last = at + 1 == len(words.split())
        parent = 1 if is_last else at + 11
        made.insert(
            0, Played(at + 10, parent, session, int(terminal or 0), name, is_systems="!" in word)
        )
    return made


SYSTEMD = "*systemd!"
USERS = [
    f"cockpit:1 *bash:1 *gnome-terminal-server! {SYSTEMD}",
    f"cockpit:1 *zsh:1 *tmux! {SYSTEMD}",
    f"cockpit:2 *sh:2 script:1 *bash:1 *sshd! {SYSTEMD}",
    f"cockpit:2 *bash:2 sudo:1 *bash:1 *kitty! {SYSTEMD}",
    f"cockpit:3 *bash:3 script:2 *bash:2 su:1 *bash:1 *login! {SYSTEMD}",
]
NOBODYS = [
    f"cockpit:1 *sh:1 script *cron! {SYSTEMD}",
    f"cockpit:1 *sh:1 script python *node {SYSTEMD}",
    f"cockpit:1 *bash:1 su *python {SYSTEMD}",
    f"cockpit:1 *bash:1 *gnome-terminal-server bash {SYSTEMD}",
    f"cockpit:2 *sh:2 script:1 *sh:1 expect *node {SYSTEMD}",
    f"cockpit:1 *sh:1 {SYSTEMD}",
    f"cockpit *sh {SYSTEMD}",
]


def test_a_terminal_is_its_users_where_the_system_made_it_for_them(attacks) -> None:
    """Also through programs that make one inside another; with none around them it is nobody's."""

    def taken(lines: list[str]) -> list[str]:
        return [line for line in lines if not user_presence._explain_terminal(terminals(line))]

    assert taken(USERS) == USERS
    attacks("a terminal that nobody sits at decides", len(NOBODYS), taken(NOBODYS))
