"""One write transaction: its statements, its clock and ids, and the journal rows that it appends."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field

from cockpit.core.clock import Clock, Ids, read_now
from cockpit.core.secrets import masked_json, replace_surrogates
from cockpit.store.db.connection import is_fatal
from cockpit.store.journal import journal
from cockpit.store.journal.details.detail import Detail, detail_json
from cockpit.store.journal.details.table import ACTIONS
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.trace_ids import Trace, TraceColumns, fill_trace

T = TypeVar("T")


class Tx(Struct, frozen=True):
    """One write transaction: the connection, the clock, the ids, and the end of the journal."""

    connection: sqlite3.Connection
    clock: Clock
    ids: Ids
    tail: journal.Tail
    unreleased: set[str] = field(default_factory=set)
    """Tokens of leases that this process could not release, though it no longer runs their sessions."""

    def begin(self) -> None:
        """Take the lock for writing."""
        self.tail.forget()
        self.connection.execute("BEGIN IMMEDIATE")

    def settle(self) -> None:
        """Record the end of the journal."""
        self.tail.settle()

    def attempt(self, step: Callable[[], T]) -> T:
        """Run ``step`` in a savepoint: its failure rolls back nothing else, and is raised.

        An error of the disk or the lock is raised without a rollback: nothing of the transaction can be
        kept.
        """
        mark = self.tail.mark()
        self.connection.execute("SAVEPOINT step")
        try:
            value = step()
        except BaseException as error:
            # After some errors SQLite itself rolls back the whole transaction.
            if not is_fatal(error) and self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO step")
                self.connection.execute("RELEASE step")
                self.tail.reset(mark)
            raise
        self.connection.execute("RELEASE step")
        return value

    def now(self) -> str:
        """Return this moment as it is stored."""
        return read_now(self.clock)

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        """Run a statement. Lone surrogates (from names that are not UTF-8) become U+FFFD."""
        try:
            return self.connection.execute(sql, values)
        except UnicodeEncodeError:
            # Raised while binding, before anything ran.
            if isinstance(values, Mapping):
                return self.connection.execute(sql, {k: _storable(v) for k, v in values.items()})
            return self.connection.execute(sql, [_storable(value) for value in values])

    def journal(
        self,
        event: Detail,
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
        at: str = "",
    ) -> int:
        """Append a row to the journal in this transaction; returns its seq.

        ``event`` is the row's detail; its type is the event type. Secrets in it are masked. Trace, packet
        and profile default to those of the wave; ``at`` is this moment, for a caller that keeps it.
        """
        return self._append(
            ACTIONS[type(event)],
            detail_json(event),
            actor,
            session_id,
            wave_id,
            (trace_id, packet_id, profile_id, profile_version),
            result,
            latency_ms,
            error_code,
            at,
        )

    def append_row(
        self,
        action: Action,
        body: Mapping[str, Any] | None = None,
        *,
        actor: str = "engine",
        session_id: str = "",
        wave_id: str = "",
        trace: Trace = Trace(),  # noqa: B008 - frozen
        result: str = "ok",
        latency_ms: int | None = None,
        error_code: str = "",
    ) -> int:
        """Append a row with any JSON object as its detail; events are written with :meth:`journal`."""
        text = masked_json(body if type(body) is dict else dict(body or {}))
        return self._append(
            action, text, actor, session_id, wave_id, trace, result, latency_ms, error_code
        )

    def _append(
        self,
        action: Action,
        detail: str,
        actor: str,
        session_id: str,
        wave_id: str,
        trace: TraceColumns,
        result: str,
        latency_ms: int | None,
        error_code: str,
        at: str = "",
    ) -> int:
        if action is Action.MESSAGE_DELTA:
            write = self.tail.append_provisional
        else:
            write = self.tail.append
            trace = fill_trace(trace, self.connection, session_id, wave_id)
        trace_id, packet_id, profile_id, profile_version = trace
        if not f"{trace_id}{session_id}{wave_id}{packet_id}{profile_id}{actor}{error_code}".isascii():
            names = (trace_id, session_id, wave_id, packet_id, profile_id, actor, error_code)
            trace_id, session_id, wave_id, packet_id, profile_id, actor, error_code = map(
                replace_surrogates, names
            )
        return write(
            (
                at or read_now(self.clock),
                trace_id,
                session_id,
                wave_id,
                packet_id,
                profile_id,
                profile_version,
                actor,
                action.value,
                result,
                latency_ms,
                error_code,
                detail,
            )
        )


def _storable(value: Any) -> Any:
    return replace_surrogates(value) if isinstance(value, str) else value
