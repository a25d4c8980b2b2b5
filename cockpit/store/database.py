"""The store: one writer thread with group commit, readers beside it, typed errors.

A write is a plain function over a :class:`Tx`; it runs inside ``BEGIN IMMEDIATE``, together with the
journal rows it appends (:mod:`cockpit.store.writer`). Secrets are masked and lone surrogates replaced
on the way in.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cockpit.store import journal
from cockpit.store.actions import Action
from cockpit.store.canonical import canonical_json
from cockpit.store.clock import Clock, Ids, RandomIds, SystemClock, stamp
from cockpit.store.connection import BUSY_TIMEOUT_MS, connect, translated
from cockpit.store.errors import StoreError
from cockpit.store.masking import mask_value, safe_text, unsuspicious
from cockpit.store.migrate import migrate
from cockpit.store.tracing import Trace
from cockpit.store.writer import Writer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tx:
    """One write transaction: the connection, the clock and the ids, and the journal's tail."""

    connection: sqlite3.Connection
    clock: Clock
    ids: Ids
    tail: journal.Tail

    def now(self) -> str:
        """This moment, as it is stored."""
        return stamp(self.clock.now())

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        """Run a statement. Lone surrogates (from names and words that are not UTF-8) become U+FFFD."""
        try:
            return self.connection.execute(sql, values)
        except UnicodeEncodeError:
            # Raised while binding, before anything ran.
            if isinstance(values, Mapping):
                return self.connection.execute(sql, {k: _sound(v) for k, v in values.items()})
            return self.connection.execute(sql, [_sound(value) for value in values])

    def journal(
        self,
        action: Action,
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
        """Append a row in this transaction; secrets in ``detail`` are masked. Returns its seq.

        The trace, packet and profile are those of the wave where they are not given.
        """
        provisional = action is Action.MESSAGE_DELTA
        about = Trace(trace_id, packet_id, profile_id, profile_version)
        if not provisional:
            about = about.filled(self.connection, session_id, wave_id)
        write = self.tail.append_provisional if provisional else self.tail.append
        body = dict(detail or {})
        told = canonical_json(body)
        if not unsuspicious(told):
            told = canonical_json(mask_value(body))
        return write(
            (
                self.now(),
                safe_text(about.trace_id),
                safe_text(session_id),
                safe_text(wave_id),
                safe_text(about.packet_id),
                safe_text(about.profile_id),
                about.profile_version,
                safe_text(actor),
                str(action),
                result,
                latency_ms,
                safe_text(error_code),
                told,
            ),
        )


def _sound(value: Any) -> Any:
    return safe_text(value) if isinstance(value, str) else value


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

        with translated(path):
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
        :mod:`cockpit.store.errors`.
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
        with translated(self.path):
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
