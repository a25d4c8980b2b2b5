"""The engine of another project, for one decision in it.

A decision goes into the owner's store as that of any process does: compare-and-set, bound to the digest that
was drawn. See ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from cockpit.core.errors import NotFound
from cockpit.core.project.known_projects import KnownProject
from cockpit.core.project_paths import ProjectPaths, locate_project

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.loop.runtime import Runtime
    from cockpit.store.db.database import Store


@asynccontextmanager
async def open_owner(project: KnownProject) -> AsyncIterator[Runtime]:
    """Open the store of a project, and an engine on it. Raises ``CockpitError``.

    Files of the project that its user has not trusted are not loaded. Nobody is asked about them here.
    """
    place, settings, store = await asyncio.to_thread(_open, project)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, store.close)
        from cockpit.loop.runtime import runtime_over  # late: it loads slower than the screen

        runtime = await stack.enter_async_context(runtime_over(store, place, settings.runtime))
        yield runtime


def _open(project: KnownProject) -> tuple[ProjectPaths, Settings, Store]:
    import cockpit.loop.runtime  # noqa: F401 -- here, in a thread
    from cockpit.access.reading_sandbox import use_reading_sandbox
    from cockpit.act.sandbox.checkout_reader import CheckoutReader
    from cockpit.config.load_settings import load_settings
    from cockpit.store.db.database import Store

    use_reading_sandbox(CheckoutReader())
    try:
        place = locate_project(project.home)
    except OSError as error:
        raise NotFound(f"{project.home} is not there any more: {error.strerror}.") from error
    if place.state != project.state or not place.database.exists():
        raise NotFound(
            f"{project.home} is another project now, or its store is gone. Nothing was decided."
        )
    settings = load_settings(place.folder, env=dict(os.environ))
    return place, settings, Store.open(place.database)
