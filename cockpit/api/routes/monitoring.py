"""Health and metrics, for monitoring."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse

from cockpit import __version__
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import READ
from cockpit.api.callers import Counter
from cockpit.api.operations import Topic

if TYPE_CHECKING:
    from cockpit.loop.views.metrics import Metrics

topic = Topic("monitoring")


class Numbers:
    """The metrics, each row of the journal counted once; one who asks at a time."""

    def __init__(self) -> None:
        self._metrics: Metrics | None = None
        self._turn = asyncio.Lock()

    async def exposition(self, at: Counter) -> str:
        """Prometheus' text, as the journal has it now. Raises ``TokenRefused``, ``NotAllowed``."""

        def look(connection: sqlite3.Connection, caller: Caller) -> str:
            from cockpit.loop.views.metrics import Metrics

            caller.require(READ, "read metrics")
            if self._metrics is None:
                self._metrics = Metrics()
            return self._metrics.read(connection).exposition()

        async with self._turn:
            return await at.read(look)


@topic.operation(
    "GET",
    "/health",
    "Ask whether the server is there",
    "",
    returns={
        "type": "object",
        "properties": {"status": {"type": "string"}, "version": {"type": "string"}},
    },
)
async def health(request: Request) -> JSONResponse:
    """Says nothing of the project."""
    return JSONResponse({"status": "ok", "version": __version__})


@topic.operation(
    "GET",
    "/metrics",
    "Read the metrics",
    READ,
    returns={"type": "string"},
    media_type="text/plain",
)
async def metrics(at: Counter) -> PlainTextResponse:
    """Return the metrics in Prometheus' text format."""
    numbers: Numbers = at.request.app.state.numbers
    return PlainTextResponse(
        await numbers.exposition(at), media_type="text/plain; version=0.0.4; charset=utf-8"
    )
