"""Keeping the anchor of an open store: compared when it is opened, written as the journal grows.

Specified in ``docs/reference/journal.md``, the anchor outside the store.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cockpit.core.clock import Clock, format_time
from cockpit.core.errors import StoreError
from cockpit.store.db.open_file import OpenFile
from cockpit.store.journal import head_anchor
from cockpit.store.journal.head_anchor import HeadAnchor

T = TypeVar("T")
Read = Callable[[Callable[[sqlite3.Connection], T]], T]

_NEW_S = 2.0
"""Seconds in which a process that has just created the store writes its first anchor."""


class StoreAnchor:
    """The anchor of one store; does nothing for a store that has no place for one.

    ``is_new`` says that this process has created or migrated the store just now. ``read`` runs a query.
    ``file`` is the open database: of one that is gone no anchor is written, or the next store at its path
    would be taken for a changed one.
    """

    def __init__(
        self,
        database: Path,
        clock: Clock,
        read: Read[tuple[int, str] | str],
        *,
        is_new: bool,
        file: OpenFile,
    ) -> None:
        self.file = head_anchor.find_anchor_file(database)
        self.fault = ""
        """How the store differs from its anchor; empty where it does not."""
        self._open_file = file
        self._clock = clock
        self._read = read
        self._lock = threading.Lock()
        self._seq = 0
        self._commits = 0
        self._written_at = clock.monotonic()
        if self.file is not None:
            self.fault = self._compare(self.file, is_new=is_new)

    @property
    def warning(self) -> str:
        """What a screen warns of, in few words; empty while the store does not differ."""
        if self._open_file.fault:
            return "the store's file is gone: nothing is stored"
        return "the journal was changed from outside" if self.fault else ""

    def keep(self) -> None:
        """Write the anchor when it is due; called after a commit."""
        if self.file is None or self.fault:
            return
        self._commits += 1
        is_due = self._clock.monotonic() - self._written_at >= head_anchor.SECONDS
        if is_due or self._commits >= head_anchor.COMMITS:
            self.write()

    def write(self) -> None:
        """Write the anchor if the journal has grown; not while the store differs from it."""
        if self.file is None or self.fault:
            return
        with self._lock:
            self._write(self.file)

    def accept(self) -> None:
        """Make the store as it is now the one that is compared from now on."""
        if self.file is None:
            return
        with self._lock:
            self._seq = 0
            self._write(self.file)
            self.fault = ""

    def _write(self, file: Path) -> None:
        self._written_at, self._commits = self._clock.monotonic(), 0
        # The store's work does not fail for it: the older anchor still tells as much as it did.
        with contextlib.suppress(OSError, StoreError):
            self._open_file.check()
            end = self._read(head_anchor.last_row)
            seq, digest = int(end[0]), str(end[1])
            if seq == self._seq:
                return
            head_anchor.write_anchor(file, HeadAnchor(seq, digest, format_time(self._clock.now())))
            self._seq = seq

    def _compare(self, file: Path, *, is_new: bool) -> str:
        try:
            anchor = head_anchor.read_anchor(file)
            if anchor is None and is_new:
                self._write(file)
                return ""
            until = time.monotonic() + _NEW_S
            while anchor is None and self._is_young() and time.monotonic() < until:
                time.sleep(0.02)  # the process that is creating the store writes it in a moment
                anchor = head_anchor.read_anchor(file)
        except ValueError as error:
            return f"The journal's anchor {file} is not readable: {error}. {head_anchor.ADVICE}"
        if anchor is None:
            return (
                f"The journal's anchor {file} is missing: it was removed, or the store was brought here from"
                f" elsewhere. {head_anchor.ADVICE}"
            )
        fault = str(self._read(lambda connection: head_anchor.compare(connection, anchor)))
        self._seq = 0 if fault else anchor.seq
        return fault

    def _is_young(self) -> bool:
        return int(self._read(head_anchor.last_row)[0]) < 10
