"""Showing the terminal that an agent of the user's own runs in: tmux, kitty, WezTerm and iTerm2.

The terminal's own command does it. See ``docs/reference/hooks.md``, sessions.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from cockpit.access.run_program import ProgramMissing, run_program
from cockpit.core.errors import CockpitError
from cockpit.core.project.own_programs import find_program
from cockpit.store.sessions.sessions import Session

_TIMEOUT_S = 5.0
_PANE = re.compile(r"%[0-9]{1,9}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_ITERM = re.compile(r"(?:w[0-9]+t[0-9]+p[0-9]+:)?([0-9A-Fa-f-]{36})", re.ASCII)
_KITTY = re.compile(r"unix:@?[A-Za-z0-9_./-]{1,200}", re.ASCII)
_SELECT_IN_ITERM = """tell application "iTerm2"
  activate
  repeat with w in windows
    repeat with t in tabs of w
      repeat with s in sessions of t
        if unique id of s is "{identity}" then
          select w
          select t
          select s
        end if
      end repeat
    end repeat
  end repeat
end tell"""


class NoTerminal(CockpitError):
    """The session's terminal is not known, or cannot be shown from here."""

    code = "no_terminal"


async def jump_to_terminal(session: Session, environment: Mapping[str, str]) -> str:
    """Show the terminal of the session's agent; returns its kind, for example ``tmux``.

    ``environment`` is this process's own. Raises :class:`NoTerminal`.
    """
    kind = str(session.target.get("terminal", ""))
    commands = _commands(session, kind, environment)
    if not commands:
        raise NoTerminal(
            f"The terminal of session {session.session_id} is not known. Hooks report it for tmux, kitty,"
            " WezTerm and iTerm2, from the session's next prompt on."
        )
    for argv in commands:
        program = find_program(argv[0]) or argv[0]
        try:
            ended = await run_program([program, *argv[1:]], cwd=Path("/"), timeout_s=_TIMEOUT_S)
        except ProgramMissing as error:
            raise NoTerminal(f"{error}. It is needed to show a terminal of {kind}.") from error
        if not ended.ok:
            errors = ended.stderr.decode("utf-8", "replace")
            words = " ".join(errors.split())[:200] or f"exit code {ended.code}"
            raise NoTerminal(f"{kind} could not show the terminal: {words}.")
    return kind


def _commands(session: Session, kind: str, environment: Mapping[str, str]) -> list[list[str]]:
    """Return the commands that show the terminal; none where what hooks reported is unusable."""
    window, socket = str(session.target.get("window", "")), str(session.target.get("socket", ""))
    match kind:
        case "tmux" if _PANE.fullmatch(window) and _is_own_socket(socket):
            tmux = ["tmux", "-S", socket]
            commands = [
                [*tmux, "select-window", "-t", window],
                [*tmux, "select-pane", "-t", window],
            ]
            if environment.get("TMUX", "").split(",")[0] == socket:
                commands.append([*tmux, "switch-client", "-t", window])
            return commands
        case "kitty" if _NUMBER.fullmatch(window):
            to = ["--to", socket] if _KITTY.fullmatch(socket) else []
            return [["kitten", "@", *to, "focus-window", "--match", f"id:{window}"]]
        case "wezterm" if _NUMBER.fullmatch(window):
            return [["wezterm", "cli", "activate-pane", "--pane-id", window]]
        case "iterm" if identity := _ITERM.fullmatch(window):
            return [["osascript", "-e", _SELECT_IN_ITERM.format(identity=identity[1])]]
        case _:
            return []


def _is_own_socket(path: str) -> bool:
    """Whether ``path`` is a socket of the user's: a hook's environment may name anything."""
    try:
        entry = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISSOCK(entry.st_mode) and entry.st_uid == os.getuid()
