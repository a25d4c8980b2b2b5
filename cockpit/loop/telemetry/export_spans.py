"""Export the spans of the journal to a collector, over OTLP and HTTP.

Needs the extra ``otel``. A collector that is slow or gone delays nothing but the end of the process, by a few
seconds at most; its spans are lost then. Specified in ``docs/how-to/observe.md``.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cockpit import __version__
from cockpit.core.errors import CockpitError
from cockpit.loop.telemetry.fold_spans import Span, SpanFold
from cockpit.loop.views.log_lines import copied
from cockpit.store.db.database import Store
from cockpit.store.journal import journal

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_PATH = "/v1/traces"
_PATIENCE_S = 3
"""Seconds that one request to the collector may take, and the last one at the end of the process."""
_BEFORE = 2_000
"""Rows before the first exported one in which the beginnings of spans are looked for."""


class TelemetryUnusable(CockpitError):
    """Traces are set, and cannot be exported."""

    code = "config"


class SpanExport:
    """Writes spans to an exporter of the SDK, in its own thread."""

    def __init__(self, exporter: SpanExporter, project: str) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        class Ids(RandomIdGenerator):
            """Gives the next span the ids that its journal rows have."""

            trace_id = span_id = 1

            def generate_trace_id(self) -> int:
                return self.trace_id

            def generate_span_id(self) -> int:
                return self.span_id

        # The SDK logs a collector that is gone to standard error, where a screen may be drawn.
        log = logging.getLogger("opentelemetry")
        log.addHandler(logging.NullHandler())
        log.propagate = False
        self._ids = Ids()
        named = {
            "service.name": "cockpit",
            "service.version": __version__,
            "cockpit.project": project,
        }
        self._provider: TracerProvider = TracerProvider(
            resource=Resource.create(named), id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, export_timeout_millis=_PATIENCE_S * 1_000)
        )
        self._tracer = self._provider.get_tracer("cockpit", __version__)

    def write(self, spans: Sequence[Span]) -> None:
        """Hand spans to the exporter's thread."""
        from opentelemetry import trace

        for span in spans:
            self._ids.trace_id, self._ids.span_id = span.trace_id, span.span_id
            above = trace.INVALID_SPAN
            if span.parent_id is not None:
                above = trace.NonRecordingSpan(
                    trace.SpanContext(
                        span.trace_id,
                        span.parent_id,
                        is_remote=False,
                        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
                    )
                )
            written = self._tracer.start_span(
                span.name,
                context=trace.set_span_in_context(above),
                kind=trace.SpanKind.CLIENT if span.is_client else trace.SpanKind.INTERNAL,
                attributes=dict(span.attributes),
                start_time=span.start_ns,
            )
            for name, at in span.events:
                written.add_event(name, timestamp=at)
            if span.error:
                written.set_attribute("error.type", span.error)
                written.set_status(trace.Status(trace.StatusCode.ERROR))
            written.end(max(span.end_ns, span.start_ns))

    def close(self) -> None:
        """Send what is left; blocks for a few seconds at most."""
        self._provider.shutdown()


def otlp_exporter(endpoint: str) -> SpanExporter:
    """Return the exporter to ``endpoint``, the address of a collector with or without ``/v1/traces``.

    Headers come from ``OTEL_EXPORTER_OTLP_HEADERS``. Raises :class:`TelemetryUnusable`.
    """
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TelemetryUnusable(
            f"[telemetry] otlp_endpoint is {endpoint!r}. Write the address of a collector, for example"
            " http://127.0.0.1:4318."
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise TelemetryUnusable(
            "[telemetry] otlp_endpoint needs the extra otel, which is not installed. Run"
            " `cockpit doctor --install otel`, or unset it."
        ) from error
    address = endpoint.rstrip("/")
    if not address.endswith(_PATH):
        address += _PATH
    return OTLPSpanExporter(endpoint=address, timeout=_PATIENCE_S)


@asynccontextmanager
async def exported(
    store: Store, endpoint: str, *, after: int | None = None, exporter: SpanExporter | None = None
) -> AsyncIterator[None]:
    """Export the spans of every new row of the journal until the context ends.

    New are the rows with a seq greater than ``after``; None: from now on. Of several processes that export
    the same store to the same ``endpoint``, one does. ``exporter`` is that of tests. Raises
    :class:`TelemetryUnusable`.
    """
    if exporter is None:
        exporter = await asyncio.to_thread(otlp_exporter, endpoint)
    spans = SpanExport(exporter, store.path.parent.name)
    fold: SpanFold | None = None

    def write(rows: Sequence[journal.Row]) -> None:
        nonlocal fold
        if fold is None:
            fold = SpanFold()
            first = rows[0].seq
            store.read_now(lambda connection: _look_back(connection, fold, first))
        spans.write(fold.take(rows))

    try:
        async with copied(store, Path(f"otlp {endpoint}"), write, after=after):
            yield
    finally:
        await asyncio.to_thread(spans.close)


def _look_back(connection: sqlite3.Connection, fold: SpanFold, first: int) -> None:
    """Learn when what is in progress before the row ``first`` began."""
    seq = max(0, first - 1 - _BEFORE)
    while rows := [row for row in journal.rows(connection, after=seq) if row.seq < first]:
        fold.take(rows)
        seq = rows[-1].seq
