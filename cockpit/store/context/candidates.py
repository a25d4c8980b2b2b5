"""The facts that a session has at a wave, column by column: the compiler's way into the store.

The rows are those of :func:`cockpit.store.context.facts.select_linked`. SQLite joins each column into
one text, so that 50,000 facts cost a dozen Python objects instead of a million; texts are quoted as
JSON, so that any file name is safe. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3

import msgspec
from msgspec import Struct

from cockpit.store.context.facts import COST_COLUMNS
from cockpit.store.context.profile_model import BANDS

FLAG_SUPERSEDED = 1
FLAG_PINNED = 2
FLAG_SHORT = 4
BAND_SHIFT = 3


class Candidates(Struct, frozen=True):
    """``n`` facts as columns: lists of ``n`` strings, and texts of ``n`` comma-separated integers.

    ``flags`` is the band's index in ``BANDS``
    shifted by ``BAND_SHIFT``, with ``FLAG_PINNED``, ``FLAG_SHORT`` (a pin that an outline satisfies)
    and ``FLAG_SUPERSEDED``. ``full``, ``outline`` (0: none) and ``reference`` are token counts, as
    rendered. ``cluster`` is equal for near-duplicates (0: none).
    """

    fact_ids: list[str]
    source_types: list[str]
    source_refs: list[str]
    dedupe_keys: list[str]
    ordinal: str
    flags: str
    utility: str
    full: str
    outline: str
    reference: str
    cluster: str


_CODES = " ".join(f"WHEN '{name}' THEN {code << BAND_SHIFT}" for code, name in enumerate(BANDS))
_LEVELS = ", ".join(f"group_concat({column})" for column in COST_COLUMNS)
_SELECT = (
    "SELECT json_group_array(fact_id), json_group_array(source_type),"  # noqa: S608 - fixed words
    " json_group_array(source_ref), json_group_array(dedupe_key),"
    " group_concat(ordinal),"
    f" group_concat(CASE band {_CODES} END"
    f" + {FLAG_PINNED} * (pinned_from IS NOT NULL AND pinned_from<=:ordinal"
    " AND (pinned_until IS NULL OR pinned_until>:ordinal))"
    f" + {FLAG_SHORT} * pin_level"
    f" + {FLAG_SUPERSEDED} * (superseded_at IS NOT NULL AND superseded_at<=:ordinal)),"
    f" group_concat(utility), {_LEVELS},"
    " group_concat(CASE cluster WHEN 0 THEN sketch ELSE cluster END)"
    # Along the primary key, which is the order of (ordinal, position).
    " FROM session_facts NOT INDEXED WHERE session_id=:session AND ordinal<=:ordinal"
)
_strings = msgspec.json.Decoder(list[str]).decode


def load_candidates(connection: sqlite3.Connection, session_id: str, ordinal: int) -> Candidates:
    """Every fact that the session has at wave ``ordinal``, by (ordinal, position).

    Tokens are those that a prompt renders. Later facts, pins and supersessions do not show:
    the answer for a past wave never changes.
    """
    texts = connection.execute(_SELECT, {"session": session_id, "ordinal": ordinal}).fetchone()
    fact_ids, source_types, source_refs, dedupe_keys = map(_strings, texts[:4])
    return Candidates(
        fact_ids, source_types, source_refs, dedupe_keys, *(text or "" for text in texts[4:])
    )
