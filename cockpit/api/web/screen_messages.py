"""What a page or a terminal, and the server that shows it a screen, send each other.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

PROTOCOL = "cockpit-screen.1"
"""The subprotocol of terminals. A number goes up when older programs would misunderstand."""
CONNECT = "/connect"
LARGEST_MESSAGE = 65_536
"""Bytes of one message of a page or a terminal."""
KEEP_S = 60.0
"""Seconds that a screen is kept for a terminal whose line was lost."""

GOING_AWAY = 1001
ENDED, FULL, STUCK, MALFORMED, REPLACED, REVOKED = 4001, 4002, 4003, 4004, 4005, 4006
"""Why the server closed a line: its program ended, there are too many screens, it reads no keys, a message
that none sends, the same terminal has another line, and its token is not valid any more."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Cells = Annotated[int, msgspec.Meta(ge=2, le=1_000)]
Size = tuple[Cells, Cells]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._+-]{0,64}$")]


class Message(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What was pressed and seen. Bytes are counted from the line's first."""

    keys: str = ""
    seen: Count = 0
    """Bytes of the screen that the terminal has drawn."""
    settled: Count = 0
    """Those that it had drawn half a second before the keys were pressed."""
    gap: Count = 0
    """Milliseconds since the keys before."""
    size: Size | None = None


class Hello(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The first message: the terminal that the screen is drawn for."""

    size: Size
    term: Name = "xterm-256color"
    colorterm: Name = "truecolor"
    program: Name = ""
    """TERM_PROGRAM, which says what notes the terminal knows."""
    no_color: bool = False
    theme: Name = ""
    screen: Name = ""
    """The screen that was shown here before the line was lost; empty for a new one."""


class Opened(msgspec.Struct, frozen=True):
    """The server's first message to a terminal."""

    screen: str
    """The name to come back with; a secret of this terminal."""
    kept: bool
    """Whether it is the screen that was asked for."""


class Refused(msgspec.Struct, frozen=True):
    """Why the server closes the line."""

    refused: str
