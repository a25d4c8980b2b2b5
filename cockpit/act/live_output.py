"""The end of what a command writes while it runs, for the screens of any process.

It lies in a file of the state folder, masked and without escapes as in a receipt, and is gone when the
command has ended: the journal has the receipt only. See ``docs/reference/screen.md``, output of commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from types import TracebackType

from cockpit.act.adapters.adapter import tail
from cockpit.store.db.database import Store

_KEPT = 16_000
"""Bytes of the output that are kept; a masked text of half that many characters is shown."""
_DRAFT = ".new"
_WAIT_S = 0.2
"""Seconds between two writes of the file."""


def live_file(database: Path, action_id: str) -> Path:
    """Return the file with the output of an action, beside the store ``database``."""
    return database.parent / "live" / f"{action_id}.txt"


def read_live_output(database: Path, action_id: str) -> str | None:
    """Return the end of what the command of an action has written so far; None while nothing is there."""
    try:
        return live_file(database, action_id).read_text("utf-8", "replace")
    except OSError:
        return None


def forget_live_output(database: Path, action_id: str) -> None:
    """Remove what a process left that died while the command of an action ran."""
    file = live_file(database, action_id)
    _unlink(file)
    _unlink(file.with_suffix(_DRAFT))


def _unlink(file: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only disk; the receipt says what happened
        file.unlink(missing_ok=True)


class LiveOutput:
    """Gathers the output of one action. Only whole lines are written: half a secret could not be masked."""

    def __init__(self, store: Store, action_id: str) -> None:
        self._file = live_file(store.path, action_id)
        self._clock = store.clock
        self._end = b""
        self._written_at = float("-inf")
        self._due: asyncio.TimerHandle | None = None

    def __enter__(self) -> LiveOutput:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._due is not None:
            self._due.cancel()
        _unlink(self._file)

    def feed(self, chunk: bytes) -> None:
        """Take the next piece; the file has it within :data:`_WAIT_S`."""
        self._end = (self._end + chunk)[-_KEPT:]
        if self._due is None:
            wait = max(0.0, self._written_at + _WAIT_S - self._clock.monotonic())
            self._due = asyncio.get_running_loop().call_later(wait, self._write)

    def _write(self) -> None:
        self._due = None
        self._written_at = self._clock.monotonic()
        whole = self._end[: self._end.rfind(b"\n") + 1]
        if len(self._end) == _KEPT:
            whole = whole[whole.find(b"\n") + 1 :]
        new = self._file.with_suffix(_DRAFT)
        with contextlib.suppress(OSError):  # as above: the command goes on without a live view
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(tail(whole))
            new.replace(self._file)
