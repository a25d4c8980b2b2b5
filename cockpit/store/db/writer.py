"""The writer's thread: writes that wait at the same moment share one transaction and one fsync.

Each has its own savepoint, so that one failing takes nothing from the others; only an error that
dooms the transaction itself (the disk, the lock, a damaged file) fails them all. Whatever happens,
every future is resolved and the thread goes on.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from cockpit.core.errors import StoreError
from cockpit.store.db.connection import as_store_error, is_fatal
from cockpit.store.db.transaction import Tx

T = TypeVar("T")
GROUP_LIMIT = 64
"""At most this many waiting writes share one transaction."""

_log = logging.getLogger(__name__)
# Without a handler Python would write to stderr, which is the person's screen.
_log.addHandler(logging.NullHandler())


class Writer:
    """Runs writes over ``connection``, which it owns from now on.

    ``connect`` opens another one after a rollback that failed; ``begin`` makes the transaction that
    the steps are given. ``commits`` counts commits, one fsync each.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        connect: Callable[[], sqlite3.Connection],
        begin: Callable[[sqlite3.Connection], Tx],
    ) -> None:
        self.commits = 0
        self._path = path
        self._connection: sqlite3.Connection | None = connection
        self._connect = connect
        self._begin = begin
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="cockpit-write", daemon=True)
        self._thread.start()

    def submit(self, step: Callable[[Tx], T]) -> Future[T]:
        """Hand a write over. Raises :class:`StoreError` once the store is closed."""
        write = _Write(step, Future())
        with self._lock:
            # Under the lock: nothing is put behind the sign that ends the thread.
            if self._closed:
                raise StoreError("The store is closed; open it again.")
            self._queue.put(write)
        return write.future

    def wait(self, step: Callable[[Tx], T]) -> T:
        """:meth:`submit`, and wait for the commit."""
        if threading.current_thread() is self._thread:
            raise StoreError("A write cannot wait for another write; do both in one step.")
        return self.submit(step).result()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` on the writer's thread after every commit; returns how to stop."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def finish(self) -> None:
        """Do what was handed over, take nothing more, and end the thread."""
        if threading.current_thread() is self._thread:
            raise StoreError("A write or a listener cannot close the store.")
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def disconnect(self) -> None:
        """Close the connection, after :meth:`finish`."""
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                connection.close()
        except sqlite3.Error as error:
            _log.warning("%s: a connection could not be closed (%s)", self._path, error)

    def _run(self) -> None:
        ending = False
        while not ending:
            group, ending = self._waiting()
            self._commit([w for w in group if w.future.set_running_or_notify_cancel()])

    def _waiting(self) -> tuple[list[_Write], bool]:
        """The next writes, at least one, or none at the end; and whether this is the end."""
        group: list[_Write] = []
        following = self._queue.get()
        while following is not None:
            group.append(following)
            if len(group) == GROUP_LIMIT or self._queue.empty():
                return group, False
            following = self._queue.get()
        return group, True

    def _commit(self, group: list[_Write]) -> None:
        if not group:
            return
        try:
            self._transact(group)
        except BaseException as error:
            self._roll_back()
            for write in group:
                write.refuse(as_store_error(self._path, write.error or error))
            return
        self.commits += 1
        for write in group:
            if write.error is None:
                write.future.set_result(write.value)
            else:
                write.refuse(as_store_error(self._path, write.error))
        self._tell()

    def _transact(self, group: list[_Write]) -> None:
        if self._connection is None:
            self._connection = self._connect()
        tx = self._begin(self._connection)
        self._connection.execute("BEGIN IMMEDIATE")
        for write in group:
            write.attempt(tx)
        self._connection.execute("COMMIT")

    def _roll_back(self) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # Nobody can tell what state it is in. Closing it ends its transaction.
            _log.warning("%s: a rollback failed (%s); connecting again", self._path, error)
            self.disconnect()

    def _tell(self) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener()
            except Exception:
                # What is stored is stored: a listener's trouble is not the writers'.
                _log.exception("%s: a listener failed after a commit", self._path)


class _Write:
    """A waiting write and its caller's future."""

    __slots__ = ("error", "future", "step", "value")

    def __init__(self, step: Callable[[Tx], Any], future: Future[Any]) -> None:
        self.step = step
        self.future = future
        self.value: Any = None
        self.error: BaseException | None = None

    def attempt(self, tx: Tx) -> None:
        """Run the step in its savepoint. Raises only what dooms the whole transaction."""
        tx.connection.execute("SAVEPOINT one")
        try:
            self.value = self.step(tx)
            tx.tail.settle()
        except BaseException as error:
            # SQLite itself rolls a transaction back after some errors: then it is gone for all.
            if is_fatal(error) or not tx.connection.in_transaction:
                raise
            self.error = error
            tx.connection.execute("ROLLBACK TO one")
            tx.tail.forget()
        tx.connection.execute("RELEASE one")

    def refuse(self, error: BaseException) -> None:
        self.future.set_exception(error)
