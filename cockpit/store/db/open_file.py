"""Whether the open database is still the file at its path.

A connection to a deleted file keeps working, and all that it writes is lost with the process. Specified in
``docs/reference/journal.md``, the anchor outside the store.
"""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.core.errors import StoreGone


class OpenFile:
    """The database file as it was when it was opened. ``path`` must exist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = str(path)
        self._identity = _identify(self._text)

    @property
    def fault(self) -> str:
        """What happened to the file and what to do; empty while it is the one that was opened."""
        try:
            identity = _identify(self._text)
        except OSError as error:
            state = (
                "was deleted or moved"
                if isinstance(error, FileNotFoundError)
                else "is out of reach"
            )
        else:
            if identity == self._identity:
                return ""
            state = "was replaced by another file"
        return (
            f"{self._path} {state} while cockpit had it open, so cockpit stores nothing more. Put the file"
            " back and try again, or quit and start cockpit again: it then uses what is at that path."
        )

    def check(self) -> None:
        """Raise :class:`StoreGone` where the file at the path is not the one that was opened."""
        if fault := self.fault:
            raise StoreGone(fault)


def _identify(path: str) -> tuple[int, int]:
    info = os.stat(path)  # noqa: PTH116 -- before each transaction: half the time of Path.stat
    return info.st_dev, info.st_ino
