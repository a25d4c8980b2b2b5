"""What a page and the server that shows it a screen send each other. See ``docs/reference/web.md``."""

from __future__ import annotations

from typing import Annotated

import msgspec

LARGEST_MESSAGE = 65_536
"""Bytes of one message of a page."""

GOING_AWAY = 1001
ENDED, FULL, STUCK, MALFORMED = 4001, 4002, 4003, 4004
"""Why the server closed a line: its program ended, there are too many screens, it reads no keys, and a
message that no page sends."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Cells = Annotated[int, msgspec.Meta(ge=2, le=1_000)]
Size = tuple[Cells, Cells]


class Message(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What was pressed and seen. Bytes are counted from the line's first."""

    keys: str = ""
    seen: Count = 0
    """Bytes of the screen that the page has drawn."""
    settled: Count = 0
    """Those that it had drawn half a second before the keys were pressed."""
    gap: Count = 0
    """Milliseconds since the keys before."""
    size: Size | None = None
