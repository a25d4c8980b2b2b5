"""Everything that copies the journal elsewhere while it grows: the log, and traces where they are set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.views.log_lines import logged
from cockpit.store.db.database import Store


@asynccontextmanager
async def recorded(
    store: Store, settings: RuntimeSettings, *, after: int | None = None
) -> AsyncIterator[None]:
    """Log and trace every row of the journal with a seq greater than ``after``; None: from now on.

    Raises ``LogUnwritable`` and ``TelemetryUnusable``. See ``docs/how-to/observe.md``.
    """
    async with logged(store, settings.log_json, after=after):
        if settings.otlp_endpoint is None:
            yield
            return
        from cockpit.loop.telemetry.export_spans import exported

        async with exported(store, settings.otlp_endpoint, after=after):
            yield
