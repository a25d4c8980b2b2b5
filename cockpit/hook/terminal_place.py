"""Where an agent of the user's own runs: its process, its terminal's window, its transcript.

See ``docs/reference/hooks.md``, sessions.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.hook.event_payload import Event

_WINDOWS = (
    # In this order: a multiplexer runs inside a terminal.
    ("tmux", ("TMUX_PANE", "TMUX")),
    ("kitty", ("KITTY_WINDOW_ID", "KITTY_LISTEN_ON")),
    ("wezterm", ("WEZTERM_PANE", "WEZTERM_UNIX_SOCKET")),
    ("iterm", ("ITERM_SESSION_ID", "TERM_PROGRAM")),
)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "env", "cockpit", "python", "python3"))
_MOST_PARENTS = 6


def describe_terminal(event: Event) -> dict[str, str]:
    """Return where the agent runs: ``process``, ``terminal``, ``window``, ``socket``, ``transcript``."""
    place = {"process": _agent_process()}
    for name, (window, socket) in _WINDOWS:
        if identity := os.environ.get(window, ""):
            place |= {"terminal": name, "window": identity[:200]}
            place["socket"] = os.environ.get(socket, "").split(",")[0][:500]
            break
    transcript = event.payload.get("transcript_path")
    if isinstance(transcript, str):
        place["transcript"] = transcript[:1_000]
    return {name: value for name, value in place.items() if value}


def _agent_process() -> str:
    """Return the agent as ``pid/start time``: the first parent that is not a shell; '' if unknown."""
    pid = os.getppid()
    for _ in range(_MOST_PARENTS):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                head, _, rest = file.read().rpartition(")")
        except OSError:
            return ""
        fields = rest.split()
        if head.partition("(")[2] not in _SHELLS:
            return f"{pid}/{fields[19]}"
        pid = int(fields[1])
    return ""
