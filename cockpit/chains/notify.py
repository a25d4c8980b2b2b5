"""Notifications that a chain ended or waits: the terminal's bell and note, and the desktop's.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from cockpit.access.run_program import ProgramMissing, run_program
from cockpit.core.fenced_text import make_visible
from cockpit.core.project.own_programs import find_program
from cockpit.core.secrets import mask
from cockpit.learn.resume_line import one_line

_PROGRAM = "notify-send"
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY")
_TIMEOUT_S = 5.0


class Notice(Struct, frozen=True):
    """A notification: a title and one line of text, neither masked nor escaped yet."""

    title: str
    text: str
    urgent: bool = False


def terminal_sequence(notice: Notice) -> str:
    """Return the escape sequence that rings a terminal's bell and shows a note (OSC 9).

    Terminals without notes ignore it. The notice's text cannot end the sequence or start another.
    """
    return f"\x1b]9;{_clean(notice.title)}: {_clean(notice.text)}\x07\x07"


def desktop_command(notice: Notice) -> tuple[str, ...]:
    """Return the argument list that shows the notice on the desktop."""
    urgency = "critical" if notice.urgent else "normal"
    # notify-send reads markup in the body; a task's title must stay text.
    body = _clean(notice.text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    options = ("--app-name=cockpit", f"--urgency={urgency}")
    return (_PROGRAM, *options, "--", _clean(notice.title), body)


def find_desktop(environment: Mapping[str, str]) -> str | None:
    """Return the program that notifies the desktop; None without it, or without a desktop."""
    if not any(environment.get(name) for name in _DESKTOP):
        return None
    return find_program(_PROGRAM, environment.get("PATH"))


async def notify(
    notice: Notice,
    setting: str,
    *,
    terminal: Callable[[str], object] | None,
    environment: Mapping[str, str],
    cwd: Path,
) -> bool:
    """Notify the user as ``setting`` (``[headless] notify``) says; return whether a channel worked.

    ``terminal`` writes raw text to the user's terminal; None means there is no terminal. A desktop that
    does not answer is not an error.
    """
    if setting == "none":
        return False
    if terminal is not None:
        terminal(terminal_sequence(notice))
    program = find_desktop(environment)
    if program is None:
        return terminal is not None
    argv = (program, *desktop_command(notice)[1:])
    try:
        ended = await run_program(argv, cwd=cwd, timeout_s=_TIMEOUT_S, env=dict(environment))
    except ProgramMissing:
        return terminal is not None
    return ended.ok or terminal is not None


def _clean(text: str) -> str:
    return one_line(make_visible(mask(text)))
