"""What stands behind one band of the meter: its facts, and why each was kept, shortened or dropped."""

from __future__ import annotations

import sqlite3

from cockpit.store import packets, profiles, waves
from cockpit.store.database import Store
from widgets.numerals import tokens
from widgets.pick import PickRow


async def band_facts(store: Store, session_id: str, band: str) -> list[PickRow]:
    """The facts of ``band`` in the session's newest packet: reference, and its fate in words.

    Empty before the first packet. Raises the store's typed errors.
    """

    def look(connection: sqlite3.Connection) -> list[PickRow]:
        stored = packets.for_session(connection, session_id)
        if not stored:
            return []
        from cockpit.orient import columns
        from cockpit.orient.explain import explain

        wave = waves.load(connection, stored[-1].wave_id)
        made = stored[-1].packet
        profile = profiles.load(connection, made.profile_id, made.profile_version)
        known = columns.read(connection, session_id, wave.ordinal)
        told = explain(known, profile, wave.ordinal, algorithm=made.algorithm)
        return [
            (
                str(place),
                fact.source_ref,
                f"{fact.verdict}: {fact.reason} · {fact.level or '–'} · {tokens(fact.tokens)} tok"
                f" · utility {fact.utility:,} · wave {fact.ordinal}",
            )
            for place, fact in enumerate(told)
            if fact.band == band
        ]

    return await store.read(look)
