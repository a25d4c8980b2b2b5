"""``cockpit work --after``: the work that follows an agent's session, begun by what absorbs its hooks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import open_store
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.chains.chain_lifecycle import ChainOptions
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.db.database import Store


def follow_and_watch(
    place: ProjectPaths, settings: Settings, order: ChainOptions, seq: int, *, anew: bool
) -> Exit:
    """See a chain through that follows the session whose end is row ``seq`` of the journal: the newest
    unfinished one, else where ``anew`` a new one. Why none does is a line in the log of the hooks, too,
    for nobody sees what this process says."""
    from cockpit.hook import hook_log

    try:
        with open_store(place) as store:
            return asyncio.run(_follow(store, place, settings, order, seq, anew))
    except CockpitError as error:
        hook_log.note(str(place.state), f"no chain after the session's end: {error}")
        raise


async def _follow(
    store: Store, place: ProjectPaths, settings: Settings, order: ChainOptions, seq: int, anew: bool
) -> Exit:
    from cockpit.chains.chain_after_session import start_after_session
    from cockpit.commands.chains.watch_chain import see_through
    from cockpit.store.journal import journal

    last = await store.read(journal.last_seq)
    chain = await start_after_session(store, place, order, seq, anew=anew)
    return await see_through(store, place, settings, chain, last, as_json=False)
