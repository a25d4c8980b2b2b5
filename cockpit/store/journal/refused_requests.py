"""Refused requests in the journal: the first of a kind at once, the others counted, a row a minute at most.

A kind is an error code, so a flood of bad requests adds a few rows a minute and never fills the store. See
``docs/reference/http.md``, access.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.store.db.database import Store
from cockpit.store.journal.details.store import AccessRefused

WINDOW_S = 60.0
"""Seconds in which one kind of refusal gets one row."""
CODES = frozenset(
    (
        *("token_missing", "token_unknown", "token_expired", "token_revoked"),
        *("not_allowed", "origin_refused", "signature_refused"),
    )
)
"""The kinds: who is not known, who may not, and pages of another origin."""
_MAX_TEXT = 300


class _Kind(Struct):
    """What was refused for one reason since its last row."""

    message: str
    request: str
    since: str
    written_at: float
    count: int = 0


class RefusedRequests:
    """Journals the refusals of one server; ``face`` is its name (http, mcp)."""

    def __init__(self, store: Store, face: str) -> None:
        self._store = store
        self._face = face
        self._kinds: dict[str, _Kind] = {}

    async def add(self, code: str, message: str, request: str) -> None:
        """Count a refusal; the first of its kind in a minute is written. Other codes are ignored."""
        if code not in CODES:
            return
        clock = self._store.clock
        now = clock.monotonic()
        kind = self._kinds.get(code)
        is_due = kind is None or now - kind.written_at >= WINDOW_S
        if kind is None:
            kind = self._kinds[code] = _Kind("", "", "", now)
        if kind.count == 0:
            kind.since = format_time(clock.now())
        kind.count += 1
        kind.message, kind.request = mask(message)[:_MAX_TEXT], mask(request)[:_MAX_TEXT]
        if is_due:
            await self._write([code])

    async def flush(self) -> None:
        """Write what was counted and not written yet."""
        await self._write([code for code, kind in self._kinds.items() if kind.count])

    @asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """Flush once a minute, and at the end."""
        flusher = asyncio.create_task(self._flush_each_minute(), name="refused requests")
        try:
            yield
        finally:
            flusher.cancel()
            await asyncio.gather(flusher, return_exceptions=True)
            await self.flush()

    async def _flush_each_minute(self) -> None:
        while True:
            await self._store.clock.sleep(WINDOW_S)
            await self.flush()

    async def _write(self, codes: list[str]) -> None:
        events = []
        for code in codes:
            kind = self._kinds[code]
            if kind.count:
                events.append(
                    (
                        code,
                        AccessRefused(
                            face=self._face,
                            count=kind.count,
                            since=kind.since,
                            request=kind.request,
                            message=kind.message,
                        ),
                    )
                )
                kind.count, kind.written_at = 0, self._store.clock.monotonic()
        if not events:
            return
        try:
            await self._store.write(
                lambda tx: [
                    tx.journal(event, result="refused", error_code=code) for code, event in events
                ]
            )
        except CockpitError as error:
            # A store that is busy must not turn a refusal into a failure of the server.
            for code, event in events:
                self._kinds[code].count += event.count
            print(f"cockpit: a refusal could not be journalled: {error}", file=sys.stderr)  # noqa: T201 - the server's log
