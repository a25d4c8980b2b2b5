"""The store: one writer thread with group commit, readers beside it, typed errors.

A write is a plain function over a :class:`Tx`; it runs inside ``BEGIN IMMEDIATE``, together with the
journal rows it appends (:mod:`cockpit.store.db.writer`). Secrets are masked and lone surrogates replaced
on the way in.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from cockpit.core.clock import Clock, Ids, RandomIds, SystemClock
from cockpit.core.errors import StoreError
from cockpit.store.db.connection import BUSY_TIMEOUT_MS, connect, translate_errors
from cockpit.store.db.migrate import migrate
from cockpit.store.db.transaction import Tx
from cockpit.store.db.writer import Writer
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action

T = TypeVar("T")


class Store:
    """The open database of one project.

    Open with :meth:`open`, close with :meth:`close` (or use it as a context manager). ``write`` and
    ``read`` are for the event loop, ``write_now`` for code without one; ``read_now`` for that, and for
    a few indexed rows on the event loop, which are read sooner than another thread is reached.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        ids: Ids,
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        self.path = path
        self.clock = clock
        self.ids = ids
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._lock = threading.Lock()

        def begin(connection: sqlite3.Connection) -> Tx:
            return Tx(connection, clock, ids, journal.Tail(connection))

        def own() -> sqlite3.Connection:
            return connect(path, busy_timeout_ms=busy_timeout_ms, factory=factory)

        def record(connection: sqlite3.Connection, names: tuple[str, ...]) -> None:
            detail = {"migrations": list(names)}
            tx = begin(connection)
            tx.journal(Action.STORE_MIGRATED, detail=detail)
            tx.tail.settle()

        with translate_errors(path):
            connection = own()
            try:
                migrate(connection, path, clock, record=record)
            except BaseException:
                connection.close()
                raise
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="cockpit-read")
        self._writer = Writer(path, connection, own, begin)

    @property
    def commits(self) -> int:
        """Commits so far, one fsync each."""
        return self._writer.commits

    @classmethod
    def open(
        cls,
        path: Path,
        clock: Clock | None = None,
        ids: Ids | None = None,
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> Store:
        """Open (making and migrating it as needed) the database at ``path``.

        A write waits ``busy_timeout_ms`` for other processes. ``factory`` is the class of the writer's
        connection: the seam through which a statement can be made to fail. Raises the typed errors of
        :mod:`cockpit.core.errors`.
        """
        return cls(
            path,
            clock or SystemClock(),
            ids or RandomIds(),
            busy_timeout_ms=busy_timeout_ms,
            factory=factory,
        )

    async def write(self, step: Callable[[Tx], T]) -> T:
        """Run ``step`` in a durable transaction; returns what it returned, after the commit.

        Cancelling a caller drops a write that has not begun; one that has commits or fails whole.
        """
        return await asyncio.wrap_future(self._writer.submit(step))

    def write_now(self, step: Callable[[Tx], T]) -> T:
        """As :meth:`write`, blocking."""
        return self._writer.wait(step)

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read on a reader's thread, in one snapshot."""
        try:
            reading = self._readers.submit(self.read_now, look)
        except RuntimeError as error:
            raise StoreError("The store is closed; open it again.") from error
        return await asyncio.wrap_future(reading)

    def read_now(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """As :meth:`read`, on the caller's own thread."""
        with translate_errors(self.path):
            connection = self._reader()
            try:
                connection.execute("BEGIN")
                try:
                    return look(connection)
                finally:
                    connection.execute("ROLLBACK")
            finally:
                self._give_back(connection)

    def on_commit(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` (on the writer's thread) after every commit; returns how to stop.

        What it raises is logged and harms nobody.
        """
        return self._writer.listen(listener)

    def close(self) -> None:
        """Finish what was handed over, then close every connection."""
        self._writer.finish()
        self._readers.shutdown(wait=True)
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        # Last: only a connection that may write folds the log into the file when it goes.
        self._writer.disconnect()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reader(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StoreError("The store is closed; open it again.")
            if self._idle:
                return self._idle.pop()
        return connect(self.path, read_only=True)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()
