"""One line of the report of ``cockpit doctor``."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Check(Struct, frozen=True):
    """One line of the report. ``missing`` disables a part of cockpit; ``broken`` must be fixed."""

    name: str
    state: Literal["ok", "missing", "broken"]
    detail: str
    fix: str = ""
    """What to do about it, as an instruction; empty for ``ok``."""
