"""One line of the report of ``cockpit doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. ``missing`` disables a part of cockpit; ``broken`` must be fixed."""

    name: str
    state: Literal["ok", "missing", "broken"]
    detail: str
    fix: str = ""
    """What to do about it, as an instruction; empty for ``ok``."""
