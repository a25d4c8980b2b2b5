"""The store: one writer thread with group commit, concurrent readers, typed errors.

A write is a plain function over a :class:`Tx`; it runs inside ``BEGIN IMMEDIATE``, together with
the journal rows that it appends (:mod:`cockpit.store.db.writer`). Secrets are masked and lone
surrogates replaced before they are stored.
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
from cockpit.store.db.connection import (
    BUSY_TIMEOUT_MS,
    connect,
    translate_errors,
)
from cockpit.store.db.keep_anchor import StoreAnchor
from cockpit.store.db.migrate import migrate
from cockpit.store.db.open_file import OpenFile
from cockpit.store.db.transaction import Tx
from cockpit.store.db.writer import Writer
from cockpit.store.journal import journal
from cockpit.store.journal.details.store import StoreMigrated

T = TypeVar("T")


class Store:
    """The open database of one project.

    Open it with :meth:`open` and close it with :meth:`close`, or use it as a context manager.
    ``write`` and ``read`` are for the event loop; ``write_now`` and ``read_now`` block.
    ``read_now`` also suits a few indexed rows on the event loop, because switching threads takes
    longer than reading them.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        ids: Ids,
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
        durable: bool = True,
    ) -> None:
        self.path = path
        self.clock = clock
        self.ids = ids
        self.unreleased: set[str] = set()
        """Tokens of leases that could not be released; see ``sessions.end_lease``."""
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._lock = threading.Lock()

        def begin(connection: sqlite3.Connection) -> Tx:
            return Tx(connection, clock, ids, journal.Tail(connection), self.unreleased)

        def connect_writer() -> sqlite3.Connection:
            return connect(path, durable=durable, busy_timeout_ms=busy_timeout_ms, factory=factory)

        def record(connection: sqlite3.Connection, names: tuple[str, ...]) -> None:
            tx = begin(connection)
            tx.journal(StoreMigrated(migrations=names))
            tx.settle()

        with translate_errors(path):
            connection = connect_writer()
            try:
                open_file = OpenFile(path)
                applied = migrate(connection, path, clock, record=record)
            except BaseException:
                connection.close()
                raise
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="cockpit-read")
        self.file = open_file
        self._writer = Writer(path, connection, connect_writer, begin, open_file.check)
        self.anchor = StoreAnchor(path, clock, self.read_now, is_new=bool(applied), file=open_file)
        if self.anchor.file is not None:
            self._writer.listen(self.anchor.keep)

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
        durable: bool = True,
    ) -> Store:
        """Open the database at ``path``, creating and migrating it as needed.

        A write waits ``busy_timeout_ms`` milliseconds for other processes. ``factory`` is the class
        of the writer's connection, so that tests can make a statement fail. Not ``durable``, a commit does
        not wait for the disk: for a store that ends with its process. Raises the errors of
        :mod:`cockpit.core.errors`.
        """
        return cls(
            path,
            clock or SystemClock(),
            ids or RandomIds(),
            busy_timeout_ms=busy_timeout_ms,
            factory=factory,
            durable=durable,
        )

    async def write(self, step: Callable[[Tx], T]) -> T:
        """Run ``step`` in a durable transaction; returns its result after the commit.

        Cancelling the caller drops a write that has not begun; one that has begun commits or fails
        as a whole.
        """
        return await asyncio.wrap_future(self._writer.submit(step))

    def write_now(self, step: Callable[[Tx], T]) -> T:
        """Run ``step`` as :meth:`write` does, blocking."""
        return self._writer.wait(step)

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``look`` on a reader's thread, in one snapshot."""
        try:
            reading = self._readers.submit(self.read_now, look)
        except RuntimeError as error:
            raise StoreError("The store is closed; open it again.") from error
        return await asyncio.wrap_future(reading)

    def read_now(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``look`` as :meth:`read` does, on the caller's thread."""
        with translate_errors(self.path):
            connection = self._reader()
            try:
                connection.execute("BEGIN")
                try:
                    return look(connection)
                finally:
                    connection.execute("ROLLBACK")
            finally:
                self._return_reader(connection)

    def on_commit(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after every commit that changed a row, on the thread that made it.

        Call the result to stop. Exceptions of the listener are logged and ignored.
        """
        return self._writer.listen(listener)

    def close(self) -> None:
        """Finish the writes that were submitted, then close every connection."""
        self._writer.finish()
        self._readers.shutdown(wait=True)
        if not self._closed:
            self.anchor.write()
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        # Last: only a connection that may write merges the log into the file when it closes.
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

    def _return_reader(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()
