"""Facts as numpy columns, for the compiler to count and sort.

Columns are sorted by wave, position in the wave and fact id. Strings become codes that only say which
are equal, so that the order of arrival never shows in a packet. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cockpit.store.context.candidates import (
    BAND_SHIFT,
    FLAG_PINNED,
    FLAG_SHORT,
    FLAG_SUPERSEDED,
    load_candidates,
)
from cockpit.store.context.facts import UTILITY_MAX, SessionFact
from cockpit.store.context.profile_model import BANDS

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NEVER = np.int64(1) << 40
"""Tokens of a detail level that a fact does not have: it fits nowhere."""

_NONE = np.empty(0, np.int64)
_BAND_CODES = {name: code for code, name in enumerate(BANDS)}


class FactColumns(Struct, frozen=True):
    """``n`` facts in order of (ordinal, position, fact_id); every array has ``n`` items.

    ``band`` indexes ``BANDS``. ``outline`` and ``reference`` are tokens, or :data:`NEVER` where that
    level is missing or no shorter than the fuller one. ``source_type``, ``source_ref`` and
    ``dedupe_key`` are equality codes; ``types`` names the codes of the first, and ``no_key`` is the
    code of the empty dedupe key (-1: there is none). ``cluster`` is equal for near-duplicates: facts
    of one sketched cluster, or where nothing was sketched of one dedupe key (-1: none).
    ``short`` marks facts whose pin an outline satisfies.
    The tokens are those that a prompt renders.
    """

    fact_ids: Sequence[str]
    refs: Sequence[str]
    types: tuple[str, ...]
    no_key: int
    band: Ints
    ordinal: Ints
    pinned: Flags
    superseded: Flags
    utility: Ints
    full: Ints
    outline: Ints
    reference: Ints
    source_type: Ints
    source_ref: Ints
    dedupe_key: Ints
    cluster: Ints
    short: Flags

    def __len__(self) -> int:
        return len(self.fact_ids)


def columns_from_facts(facts: Sequence[SessionFact]) -> FactColumns:
    """Build columns of facts in memory, with their tokens as a prompt renders them where they were counted.

    Raises ``ValueError`` where one names an unknown band.
    """
    unknown = {fact.band for fact in facts} - _BAND_CODES.keys()
    if unknown:
        raise ValueError(f"not a band: {', '.join(sorted(map(repr, unknown)))}")
    facts = sorted(facts, key=lambda fact: (fact.ordinal, fact.position, fact.fact_id))
    n = len(facts)
    tokens = [fact.level_tokens if fact.costs is None else fact.costs for fact in facts]
    levels = np.array(tokens, np.int64).reshape(n, 3)
    return _columns(
        [fact.fact_id for fact in facts],
        [fact.source_type for fact in facts],
        [fact.source_ref for fact in facts],
        [fact.dedupe_key for fact in facts],
        band=np.fromiter((_BAND_CODES[fact.band] for fact in facts), np.int64, n),
        ordinal=np.fromiter((fact.ordinal for fact in facts), np.int64, n),
        pinned=np.fromiter((fact.pinned for fact in facts), np.bool_, n),
        superseded=np.fromiter((fact.superseded for fact in facts), np.bool_, n),
        utility=np.fromiter((fact.utility for fact in facts), np.int64, n),
        full=levels[:, 0],
        outline=levels[:, 1],
        reference=levels[:, 2],
        cluster=np.fromiter((fact.cluster for fact in facts), np.int64, n),
        short=np.fromiter((fact.pinned_short for fact in facts), np.bool_, n),
    )


def load_columns(connection: sqlite3.Connection, session_id: str, ordinal: int) -> FactColumns:
    """Load columns of every fact that a session has at wave ``ordinal`` from the store.

    Equal to ``columns_from_facts(select_linked(...))``, without a record for each of 50,000 facts.
    """
    candidates = load_candidates(connection, session_id, ordinal)
    flags = _numbers(candidates.flags)
    return _columns(
        candidates.fact_ids,
        candidates.source_types,
        candidates.source_refs,
        candidates.dedupe_keys,
        band=flags >> BAND_SHIFT,
        ordinal=_numbers(candidates.ordinal),
        pinned=(flags & FLAG_PINNED) != 0,
        superseded=(flags & FLAG_SUPERSEDED) != 0,
        utility=_numbers(candidates.utility),
        full=_numbers(candidates.full),
        outline=_numbers(candidates.outline),
        reference=_numbers(candidates.reference),
        cluster=_numbers(candidates.cluster),
        short=(flags & FLAG_SHORT) != 0,
    )


def _numbers(text: str) -> Ints:
    return np.fromstring(text, np.int64, sep=",") if text else _NONE


def _columns(
    fact_ids: list[str],
    types: list[str],
    refs: list[str],
    keys: list[str],
    *,
    band: Ints,
    ordinal: Ints,
    pinned: Flags,
    superseded: Flags,
    utility: Ints,
    full: Ints,
    outline: Ints,
    reference: Ints,
    cluster: Ints,
    short: Flags,
) -> FactColumns:
    type_names, type_codes = _coded(types)
    key_names, key_codes = _coded(keys)
    _, ref_codes = _coded(refs)
    full = np.maximum(full, 0)
    outline = _shorter(outline, full)
    return FactColumns(
        fact_ids,
        refs,
        tuple(type_names),
        key_names.get("", -1),
        band,
        ordinal,
        pinned,
        superseded,
        np.clip(utility, 0, UTILITY_MAX),
        full,
        outline,
        _shorter(reference, np.minimum(full, outline)),
        type_codes,
        ref_codes,
        key_codes,
        _clusters(cluster, key_codes, key_names.get("", -1)),
        short,
    )


def _clusters(sketched: Ints, key_codes: Ints, no_key: int) -> Ints:
    """Cluster codes, -1 for none: those of sketches begin behind those of dedupe keys."""
    codes = np.where(key_codes == no_key, -1, key_codes)
    at = np.flatnonzero(sketched)
    if len(at):
        _, cluster_codes = np.unique(sketched[at], return_inverse=True)
        codes[at] = cluster_codes + key_codes.max() + 1
    return codes


def _shorter(tokens: Ints, fuller: Ints) -> Ints:
    return np.where((tokens > 0) & (tokens < fuller), tokens, NEVER)


def _coded(values: list[str]) -> tuple[dict[str, int], Ints]:
    names = {name: code for code, name in enumerate(dict.fromkeys(values))}
    return names, np.array([names[value] for value in values], np.int64)
