"""Writes: one queue and one thread; those that wait at the same time share one transaction and one fsync.

Each has its own savepoint, so that a failing write does not affect the others. Only an error that is fatal to
the transaction (the disk, the lock, a damaged file) fails all of them. In any case every future is resolved
and the thread continues.
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
"""The most waiting writes that share one transaction."""

_log = logging.getLogger(__name__)
# Without a handler Python would write to stderr, where the screen is drawn.
_log.addHandler(logging.NullHandler())


class Writer:
    """Runs writes on ``connection``, which it owns from then on.

    ``connect`` opens another connection after a rollback that failed; ``begin`` makes the
    transaction that steps receive; ``check_file`` raises where the path has another file than ``connection``.
    ``commits`` counts commits, one fsync each.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        connect: Callable[[], sqlite3.Connection],
        begin: Callable[[sqlite3.Connection], Tx],
        check_file: Callable[[], None],
    ) -> None:
        self.commits = 0
        self._path = path
        self._connection: sqlite3.Connection | None = connection
        self._tx: Tx | None = None
        self._connect = connect
        self._begin = begin
        self._check_file = check_file
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="cockpit-write", daemon=True)
        self._thread.start()

    def submit(self, step: Callable[[Tx], T]) -> Future[T]:
        """Queue a write. Raises :class:`StoreError` once the store is closed."""
        future: Future[T] = Future()
        with self._lock:
            # Under the lock, so that nothing is queued behind the marker that ends the thread.
            if self._closed:
                raise StoreError("The store is closed; open it again.")
            self._queue.put(_Write(step, future))
        return future

    def wait(self, step: Callable[[Tx], T]) -> T:
        """Queue a write and wait for its commit."""
        if threading.current_thread() is self._thread:
            raise StoreError("A write cannot wait for another write; do both in one step.")
        return self.submit(step).result()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after every commit that changed a row, on the thread that made it.

        Call the result to stop. A step that changed nothing concerns nobody: who waits for changes and looks
        by a write of its own would wake itself for ever.
        """
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def finish(self) -> None:
        """Run the writes that were queued, accept no more, and end the thread."""
        if threading.current_thread() is self._thread:
            raise StoreError("A write or a listener cannot close the store.")
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def disconnect(self) -> None:
        """Close the connection, after :meth:`finish`."""
        connection, self._connection, self._tx = self._connection, None, None
        try:
            if connection is not None:
                connection.close()
        except sqlite3.Error as error:
            _log.warning("%s: a connection could not be closed (%s)", self._path, error)

    def _run(self) -> None:
        ending = False
        while not ending:
            group, ending = self._waiting(self._queue.get())
            self._commit([each for each in group if each.future.set_running_or_notify_cancel()])

    def _waiting(self, following: _Write | None) -> tuple[list[_Write], bool]:
        """Return the next writes, from ``following`` (None at the end), and whether this is the end."""
        group: list[_Write] = []
        while following is not None:
            group.append(following)
            if len(group) == GROUP_LIMIT or self._queue.empty():
                return group, False
            following = self._queue.get()
        return group, True

    def _commit(self, group: list[_Write]) -> None:
        """Run the writes in one transaction, resolve their futures and call the listeners."""
        if not group:
            return
        try:
            has_changed = self._transact(group)
        except BaseException as error:
            self._roll_back()
            for write in group:
                write.future.set_exception(as_store_error(self._path, write.error or error))
            return
        self.commits += 1
        for write in group:
            if write.error is None:
                write.future.set_result(write.value)
            else:
                write.future.set_exception(as_store_error(self._path, write.error))
        if has_changed:
            self._notify()

    def _transact(self, group: list[_Write]) -> bool:
        """Run the writes in one transaction; returns whether any of them changed a row."""
        self._check_file()
        if self._connection is None:
            self._connection = self._connect()
        if self._tx is None:
            self._tx = self._begin(self._connection)
        changes_before = self._connection.total_changes
        self._tx.begin()
        for write in group:
            write.attempt(self._tx)
        self._connection.execute("COMMIT")
        return self._connection.total_changes != changes_before

    def _roll_back(self) -> None:
        try:
            if self._tx is not None:
                self._tx.tail.forget()
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # The state of the connection is unknown. Closing it ends its transaction.
            _log.warning("%s: a rollback failed (%s); connecting again", self._path, error)
            self.disconnect()

    def _notify(self) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener()
            except Exception:
                # The commit stands: an error of a listener does not concern the writers.
                _log.exception("%s: a listener failed after a commit", self._path)


class _Write:
    """A write that waits, with its caller's future."""

    __slots__ = ("error", "future", "step", "value")

    def __init__(self, step: Callable[[Tx], Any], future: Future[Any]) -> None:
        self.step = step
        self.future = future
        self.value: Any = None
        self.error: BaseException | None = None

    def attempt(self, tx: Tx) -> None:
        """Run the step in its savepoint. Raises only errors that are fatal to the transaction."""
        try:
            self.value = tx.attempt(lambda: self._settled(tx))
        except BaseException as error:
            # After some errors SQLite itself rolls back the transaction, for all writes in it.
            if is_fatal(error) or not tx.connection.in_transaction:
                raise
            self.error = error

    def _settled(self, tx: Tx) -> Any:
        value = self.step(tx)
        tx.settle()
        return value
