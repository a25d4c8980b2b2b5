"""Calling a person who looks elsewhere: the terminal's bell and note, and the desktop's.

Source: seed 004, solution 7 (``notify``).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cockpit.access.run_program import ProgramMissing, run_program
from cockpit.core.secrets import mask
from cockpit.learn.resume_line import one_line
from cockpit.loop.intake.review_template import visible

_PROGRAM = "notify-send"
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY")
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Notice:
    """What a person is called for: a ``title`` and one line of ``words``, as they came."""

    title: str
    words: str
    urgent: bool = False


def terminal_sequence(notice: Notice) -> str:
    """What rings a terminal's bell and shows a note (OSC 9), harmless to one that knows no notes.

    Nothing in the notice can end the sequence or begin another.
    """
    return f"\x1b]9;{_plain(notice.title)}: {_plain(notice.words)}\x07\x07"


def desktop_command(notice: Notice) -> tuple[str, ...]:
    """The argument list that shows it on the desktop."""
    urgency = "critical" if notice.urgent else "normal"
    # Its body may hold markup, which a task's title must not.
    body = _plain(notice.words).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    words = ("--app-name=cockpit", f"--urgency={urgency}")
    return (_PROGRAM, *words, "--", _plain(notice.title), body)


async def notify(
    notice: Notice,
    setting: str,
    *,
    terminal: Callable[[str], object] | None,
    environment: Mapping[str, str],
    cwd: Path,
) -> bool:
    """Call the person as ``setting`` (``[headless] notify``) says; whether anybody could be called.

    ``terminal`` writes to the person's terminal as it is (None: there is none). A desktop that does
    not answer is nobody's failure.
    """
    if setting == "none":
        return False
    if terminal is not None:
        terminal(terminal_sequence(notice))
    program = shutil.which(_PROGRAM, path=environment.get("PATH"))
    if program is None or not any(environment.get(name) for name in _DESKTOP):
        return terminal is not None
    argv = (program, *desktop_command(notice)[1:])
    try:
        ended = await run_program(argv, cwd=cwd, timeout_s=_PATIENCE_S, env=dict(environment))
    except ProgramMissing:
        return terminal is not None
    return ended.ok or terminal is not None


def _plain(text: str) -> str:
    return one_line(visible(mask(text)))
