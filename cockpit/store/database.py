"""The store: one writer thread with group commit, readers beside it, typed errors.

A write is a plain function over a :class:`Tx`; it runs inside ``BEGIN IMMEDIATE``, together with the
journal rows it appends. Writes that wait at the same moment share one transaction and one fsync,
each in its own savepoint, so that one failing takes nothing from the others.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cockpit.store import journal
from cockpit.store.canonical import canonical_json
from cockpit.store.clock import Clock, Ids, RandomIds, SystemClock, stamp
from cockpit.store.connection import connect, translated
from cockpit.store.errors import StoreError
from cockpit.store.masking import mask_value
from cockpit.store.migrate import migrate

T = TypeVar("T")
GROUP_LIMIT = 64
"""At most this many waiting writes share one transaction."""


@dataclass(frozen=True, slots=True)
class Tx:
    """One write transaction: the connection, the moment it began, and the journal."""

    connection: sqlite3.Connection
    clock: Clock
    ids: Ids

    def now(self) -> str:
        """This moment, as it is stored."""
        return stamp(self.clock.now())

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        return self.connection.execute(sql, values)

    def journal(
        self,
        action: journal.Action,
        *,
        actor: str = "engine",
        session_id: str = "",
        wave_id: str = "",
        trace_id: str = "",
        packet_id: str = "",
        profile_id: str = "",
        profile_version: int | None = None,
        result: str = "ok",
        latency_ms: int | None = None,
        error_code: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> int:
        """Append a row in this transaction; secrets in ``detail`` are masked. Returns its seq."""
        provisional = action is journal.Action.MESSAGE_DELTA
        write = journal.append_provisional if provisional else journal.append
        return write(
            self.connection,
            (
                self.now(),
                trace_id,
                session_id,
                wave_id,
                packet_id,
                profile_id,
                profile_version,
                actor,
                str(action),
                result,
                latency_ms,
                error_code,
                canonical_json(mask_value(dict(detail or {}))),
            ),
        )


class Store:
    """The open database of one project.

    Open with :meth:`open`, close with :meth:`close` (or use it as a context manager). ``write`` and
    ``read`` are for the event loop, ``write_now`` and ``read_now`` for code without one.
    """

    def __init__(self, path: Path, clock: Clock, ids: Ids) -> None:
        self.path = path
        self.clock = clock
        self.ids = ids
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._listeners: list[Callable[[], None]] = []
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self.commits = 0
        with translated(path):
            self._connection = connect(path)
            try:
                applied = migrate(self._connection, path, clock)
            except BaseException:
                self._connection.close()
                raise
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="cockpit-read")
        self._writer = threading.Thread(target=self._run, name="cockpit-write", daemon=True)
        self._writer.start()
        if applied:
            self.write_now(
                lambda tx: tx.journal(
                    journal.Action.STORE_MIGRATED, detail={"migrations": list(applied)}
                )
            )

    @classmethod
    def open(cls, path: Path, clock: Clock | None = None, ids: Ids | None = None) -> Store:
        """Open (making and migrating it as needed) the database at ``path``.

        Raises the typed errors of :mod:`cockpit.store.errors`.
        """
        return cls(path, clock or SystemClock(), ids or RandomIds())

    async def write(self, step: Callable[[Tx], T]) -> T:
        """Run ``step`` in a durable transaction; returns what it returned, after the commit.

        Cancelling a caller drops a write that has not begun; one that has commits or fails whole.
        """
        return await asyncio.wrap_future(self._submit(step))

    def write_now(self, step: Callable[[Tx], T]) -> T:
        """As :meth:`write`, blocking."""
        return self._submit(step).result()

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read on a reader's connection, in one snapshot."""
        return await asyncio.wrap_future(self._readers.submit(self._read, look))

    def read_now(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """As :meth:`read`, blocking."""
        return self._readers.submit(self._read, look).result()

    def on_commit(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` (on the writer's thread) after every commit; returns how to stop."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def close(self) -> None:
        """Finish what was handed over, then close every connection."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._writer.join()
        self._readers.shutdown(wait=True)
        for connection in (*self._opened, self._connection):
            connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, step: Callable[[Tx], T]) -> Future[T]:
        if self._closed:
            raise StoreError("The store is closed; open it again.")
        write = _Write(step, Future())
        self._queue.put(write)
        return write.future

    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        connection = getattr(self._local, "connection", None)
        with translated(self.path):
            if connection is None:
                connection = connect(self.path, read_only=True)
                self._local.connection = connection
                with self._lock:
                    self._opened.append(connection)
            connection.execute("BEGIN")
            try:
                return look(connection)
            finally:
                connection.execute("ROLLBACK")

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group = [first]
            ending = False
            while len(group) < GROUP_LIMIT and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    ending = True
                    break
                group.append(following)
            self._commit(group)
            if ending:
                return

    def _commit(self, group: list[_Write]) -> None:
        connection = self._connection
        tx = Tx(connection, self.clock, self.ids)
        group = [write for write in group if write.future.set_running_or_notify_cancel()]
        try:
            with translated(self.path):
                connection.execute("BEGIN IMMEDIATE")
                for write in group:
                    write.attempt(tx)
                connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for write in group:
                write.future.set_exception(write.error or error)
            return
        self.commits += 1
        for write in group:
            write.settle()
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()


class _Write:
    """A waiting write and its caller's future."""

    __slots__ = ("error", "future", "step", "value")

    def __init__(self, step: Callable[[Tx], Any], future: Future[Any]) -> None:
        self.step = step
        self.future = future
        self.value: Any = None
        self.error: BaseException | None = None

    def attempt(self, tx: Tx) -> None:
        tx.execute("SAVEPOINT one")
        try:
            self.value = self.step(tx)
        except sqlite3.OperationalError:
            # The disk, not the step: the whole group is rolled back by the caller.
            raise
        except Exception as error:
            self.error = error
            tx.execute("ROLLBACK TO one")
        tx.execute("RELEASE one")

    def settle(self) -> None:
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)
