"""Whether the user is at this process's terminal, and not an agent's shell that runs as the same user.

A decision that only the user may make is refused below an agent, without a terminal, and on a terminal that
nobody sits at. An agent can change its own environment but not that of its ancestors, so these are looked
at. What this does not stop is stated in ``docs/explanation/security-model.md``. Specified in
``docs/reference/security.md``, decisions.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import NotAllowed

AGENT_MARKS = (
    *("CLAUDECODE", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "GEMINI_CLI", "OPENCODE"),
    *("CURSOR_AGENT", "QWEN_CODE", "AI_AGENT", "COCKPIT_AGENT", "COCKPIT_TASK"),
)
"""Environment variables that agents, and cockpit for them, set for what they start."""

_AGENTS = frozenset(
    (
        *(
            "claude",
            "codex",
            "gemini",
            "opencode",
            "cursor-agent",
            "aider",
            "goose",
            "amp",
            "crush",
        ),
        *("qwen", "copilot", "droid", "auggie", "kiro-cli"),
    )
)
"""Programs that are agents."""
_AGENT_PACKAGES = (
    "/claude-code/",
    "/@openai/codex/",
    "/gemini-cli/",
    "/opencode-ai/",
    "/qwen-code/",
)
_INTERPRETERS = ("node", "bun", "deno", "python", "uv")
_TERMINALS = frozenset(
    (
        *("sshd", "sshd-session", "login", "getty", "agetty", "mosh-server", "init"),
        *("tmux", "screen", "zellij", "dtach", "abduco", "docker", "containerd-shim-runc-v2"),
        *("gnome-terminal-server", "kgx", "ptyxis", "ptyxis-agent", "konsole", "yakuake", "xterm"),
        *("urxvt", "rxvt", "st", "kitty", "alacritty", "foot", "wezterm-gui", "ghostty", "rio"),
        *("xfce4-terminal", "mate-terminal", "lxterminal", "qterminal", "tilix", "tilda", "code"),
    )
)
"""Programs that give a terminal to a user.

Those that any command can start for a terminal inside (``script``, ``su``, ``sudo``, ``expect``) are none:
they count where their own terminal is the user's.
"""
_ROOTS = frozenset(("systemd", "init", "launchd"))
_MOST_ANCESTORS = 200

_PR_SET_DUMPABLE = 4

_ADVICE = "Decide on cockpit's screen, or in a terminal of your own."


class Process(Struct, frozen=True):
    """A process of this machine, as procfs shows it."""

    pid: int
    parent: int
    session: int
    """The process that leads its session."""
    terminal: int
    """The device of its controlling terminal; 0 without one."""
    name: str

    def words(self) -> list[str]:
        """Return its command line; empty where that is not readable."""
        return [os.fsdecode(word) for word in _read(self.pid, "cmdline").split(b"\0")]

    def has_mark(self) -> str:
        """Return the mark of an agent in the environment that it was started with; empty without one."""
        for variable in _read(self.pid, "environ").split(b"\0"):
            name = os.fsdecode(variable.partition(b"=")[0])
            if name in AGENT_MARKS:
                return name
        return ""

    def program(self) -> str:
        """Return the name of its program, when that is a file that only the system's owner can change."""
        file = Path(f"/proc/{self.pid}/exe")
        try:
            info = file.stat()
            others_write = info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if info.st_uid == 0 and not others_write and not _plays_administrator():
                return file.readlink().name.removesuffix(" (deleted)")
        except OSError:
            # Of another user: the system's own, as sshd and login. A process of the user can hide its program
            # as well, and give itself any name; its folder in procfs stays the user's.
            if _owner(self.pid) not in (None, os.geteuid()):
                return self.name
        return ""


def require_user(caller: Caller, activity: str) -> None:
    """Raise ``NotAllowed`` unless ``caller`` may do what only the user does, here and now.

    A caller with a token of another principal is for its scopes to judge.
    """
    if caller.kind == "person" and (absence := explain_absence()):
        raise NotAllowed(f"Nothing was done: {activity} is for you alone, and {absence}. {_ADVICE}")


def require_no_agent(activity: str) -> None:
    """Raise ``NotAllowed`` below an agent; without a terminal nothing is said, as of a timer's job."""
    if agent := find_agent(counts_cockpit=False):
        raise NotAllowed(f"Nothing was done: {activity} is for you alone, and {agent}. {_ADVICE}")


_is_screen = False
_is_assumed = False


def assume_user() -> None:
    """Take this process for the user's own, whoever started it and whatever terminal it has.

    For a program that asks its user itself, and for tests. Only code of this process can call it: no
    variable, option or file does.
    """
    global _is_assumed
    _is_assumed = True


def sit_at_screen() -> None:
    """Take who presses keys on this process's terminal for the user, unless an agent started the process.

    For cockpit's screen, which arms a decision only after it has shown it. Who made the terminal is not asked
    there: a terminal program that is not known here, or that a user has installed for themselves, would take
    every decision from its user.
    """
    global _is_screen
    _is_screen = True
    shield_process()


def shield_process() -> None:
    """Keep other processes of the same user from tracing this one, and from reading its memory (Linux).

    Programs that it starts are not shielded. An administrator's processes are not kept out.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def explain_absence() -> str:
    """Return why this process does not act for a user at a terminal; empty where it does."""
    if agent := find_agent():
        return agent
    if _is_assumed:
        return ""
    if _is_screen and sys.__stdin__ is not None and sys.__stdin__.isatty():
        return ""
    if not Path("/proc/self").is_dir():
        return "" if sys.stdin is not None and sys.stdin.isatty() else "this has no terminal"
    return _explain_terminal(list(_ancestry(os.getpid())))


def explain_absence_of(pid: int) -> str:
    """Return why another process does not act for a user at a terminal; empty where it does."""
    line = list(_ancestry(pid))
    if not line:
        return "the process that asks has ended"
    return _find_agent_in(line, pid, counts_cockpit=True) or _explain_terminal(line)


def _explain_terminal(line: list[Process]) -> str:
    """Return why nobody sits at the terminal of the first process of an ancestry; empty where not."""
    me = line[0]
    if not me.terminal:
        return "this process has no terminal"
    place = next((n for n, each in enumerate(line) if each.pid == me.session), None)
    if place is None:
        return "the terminal belongs to a process that did not start this one"
    owner = line[place + 1] if len(line) > place + 1 else None
    if owner is None:
        # From outside this container, or its first process: nothing inside can start that.
        leader = line[place]
        return "" if leader.pid == 1 or leader.parent == 0 else "no user sits at its terminal"
    if _is_root(owner):
        return f"its terminal was made by {owner.name!r}, which the user did not start"
    if owner.program() in _TERMINALS:
        return ""
    if not owner.terminal:
        return (
            f"its terminal was made by {owner.name!r}, which is no terminal program of the system"
        )
    # As of ``script``: the terminal inside is the user's where the one outside is.
    return _explain_terminal(line[place + 1 :])


def find_agent(*, counts_cockpit: bool = True) -> str:
    """Return which agent this process was started by, in words; empty where there is none.

    What another cockpit started counts, too: it runs agents, and decides on its own screen.
    """
    if _is_assumed:
        return ""
    for name in AGENT_MARKS:
        if name in os.environ:
            return f"this was started by an agent ({name} is set)"
    me = os.getpid()
    return _find_agent_in(_ancestry(me), me, counts_cockpit=counts_cockpit)


def _find_agent_in(line: Iterable[Process], me: int, *, counts_cockpit: bool) -> str:
    for distance, each in enumerate(line):
        if mark := each.has_mark():
            return f"process {each.pid} ({each.name}) was started by an agent ({mark} is set)"
        program = "" if each.pid == me else _agent_program(each)
        if program == "cockpit" and distance == 1 and _serves_screens(each):
            continue  # it starts nothing but screens, and none below an agent; its own parents count
        if program and (counts_cockpit or program != "cockpit"):
            return f"process {each.pid} is an agent ({program})"
    return ""


def _agent_program(process: Process) -> str:
    """Return the agent that a process is, or cockpit where that started this one; else empty."""
    words = process.words()
    names = [Path(word).name.removesuffix(".js") for word in words[:1]]
    if names and names[0].startswith(_INTERPRETERS):
        names += [Path(word).name.removesuffix(".js") for word in words[1:2]]
        for word in words[1:3]:
            if any(package in word for package in _AGENT_PACKAGES):
                return word
        if _module_words(words)[:1] == ["cockpit"]:
            return "cockpit"
    named = next((name for name in names if name in _AGENTS or name == "cockpit"), "")
    return named or (process.name if process.name in _AGENTS else "")


def _module_words(words: list[str]) -> list[str]:
    """Return the module that Python was started with, and what follows; empty where it was a file."""
    rest = list(itertools.dropwhile(lambda word: word in ("-P", "-I", "-S", "-E", "-s"), words[1:]))
    return rest[1:] if rest[:1] == ["-m"] else []


def _serves_screens(process: Process) -> bool:
    """Whether a process is ``cockpit web``, by the words it was started with."""
    words = process.words()
    names = [Path(word).name for word in words[:2]]
    if (module := _module_words(words))[:1] == ["cockpit"]:
        return module[1:2] == ["web"]
    return "cockpit" in names and words[names.index("cockpit") + 1 :][:1] == ["web"]


def _is_root(process: Process) -> bool:
    """Whether a process is the one that takes in those whose parents have ended."""
    return process.pid == 1 or (process.name in _ROOTS and process.program() in _ROOTS)


def _ancestry(pid: int) -> Iterator[Process]:
    """Yield a process, its parent, and so on, as far as this container shows them."""
    for _ in range(_MOST_ANCESTORS):
        process = _find(pid)
        if process is None:
            return
        yield process
        if process.parent == 0:
            return
        pid = process.parent


def _find(pid: int) -> Process | None:
    text = _read(pid, "stat").decode("utf-8", "replace")
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    if len(fields) < 5:
        return None
    name = head.partition("(")[2]
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[4]), name)


def _plays_administrator() -> bool:
    """Whether this is the administrator of a user namespace only: files of its user look like the system's.

    ``unshare --map-root-user`` makes one for any user.
    """
    ids = _read(os.getpid(), "uid_map").split()
    return os.geteuid() == 0 and ids != [b"0", b"0", b"4294967295"]


def _owner(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
