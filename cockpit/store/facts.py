"""Observed facts: content stored once, linked to every session that saw it.

A fact's id is derived from its content and provenance alone (:func:`fact_id`), so that the same
lines of the same content have the same id in every session, process and directory. What belongs to
a session (when it was seen, in which order, pinned or superseded) stands in ``session_facts``.
Source: RFC-003 §8.4, §10.1; records page of the design.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.store.canonical import canonical_json, digest, text_digest
from cockpit.store.masking import safe_text

if TYPE_CHECKING:
    import sqlite3

    from cockpit.store.database import Tx

LEVELS = ("full", "outline", "reference")

UTILITY_MAX = 1_000_000
"""Utility and quality are fixed-point integers, 0 to this."""


@dataclass(frozen=True, slots=True)
class Level:
    """One detail level of a fact: its text and that text's tokens."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was observed, ready to be stored.

    ``source_ref`` is the scope item that yields it again (``file:src/a.py:10-40``). ``band`` is one
    of the six. ``provenance`` holds JSON values only (path, rev, lines, content sha256, …) and nothing
    of the moment or the machine. ``outline`` is None where a source has none; ``reference`` is one
    line. ``dedupe_key`` names what a newer fact supersedes (same key, other content). ``utility`` and
    ``quality`` are integers, 0 to :data:`UTILITY_MAX`. ``sketch`` tells near-duplicates
    (:mod:`.clusters`; 0: not to be compared).
    """

    source_type: str
    source_ref: str
    band: str
    full: Level
    reference: Level
    outline: Level | None = None
    provenance: Mapping[str, Any] | None = None
    dedupe_key: str = ""
    utility: int = 500_000
    quality: int = UTILITY_MAX
    pinned: bool = False
    sketch: int = 0

    @property
    def fact_id(self) -> str:
        return fact_id(self.source_type, self.source_ref, self.full.text, self.provenance or {})


def fact_id(source_type: str, source_ref: str, text: str, provenance: Mapping[str, Any]) -> str:
    """``f-`` and 24 hex characters of the digest over source, reference, content and provenance."""
    body = [source_type, source_ref, text_digest(text), dict(provenance)]
    return f"f-{digest(body)[:24]}"


@dataclass(frozen=True, slots=True)
class Linked:
    """A stored fact as one session sees it (one row of ``session_facts`` joined with its fact).

    ``ordinal`` is the wave that first saw it, ``position`` its place in that wave, ``level_tokens``
    the tokens at full, outline and reference (outline 0: none). Facts of one ``cluster`` (not 0) are
    near-duplicates.
    """

    fact_id: str
    source_type: str
    source_ref: str
    band: str
    ordinal: int
    position: int
    pinned: bool
    superseded: bool
    utility: int
    level_tokens: tuple[int, int, int]
    dedupe_key: str
    cluster: int = 0


@dataclass(frozen=True, slots=True)
class FactText:
    """The words of one fact, all levels."""

    fact_id: str
    source_type: str
    source_ref: str
    full: str
    outline: str | None
    reference: str
    provenance: Mapping[str, Any]


def record(
    tx: Tx,
    *,
    session_id: str,
    wave_id: str,
    ordinal: int,
    pinned_now: str,
    facts: Sequence[Fact],
    job: str = "",
) -> int:
    """Store facts and link them to the session; returns how many were new to the session.

    Content is stored once for all sessions. A fact that the session already has (and that is not
    superseded) is left as it is. ``job`` names what they came from; what observation jobs find is
    stored by :mod:`.ingest`. Texts are masked by who makes the facts: a fact's id is that of its
    masked words.

    One call is one look. What shares a ``dedupe_key`` in it are parts of one thing (the two patches
    of a file that became a link) and all live. Together they supersede, from this wave on, whatever an
    earlier look left under their key and this one did not find again: changed and vanished parts go,
    unchanged ones stay.
    """
    if not facts:
        return 0
    (position,) = tx.execute(
        "SELECT coalesce(max(position), 0) FROM session_facts WHERE session_id=? AND ordinal=?",
        (session_id, ordinal),
    ).fetchone()
    named = {fact.fact_id: fact for fact in facts}
    unseen = _unseen(tx, session_id, named)
    content = [content_row(identity, fact, wave_id, pinned_now) for identity, fact in unseen]
    if not storable(content):
        return record(
            tx,
            session_id=session_id,
            wave_id=wave_id,
            ordinal=ordinal,
            pinned_now=pinned_now,
            facts=[cleaned(fact) for fact in facts],
            job=job,
        )
    tx.connection.executemany(
        "INSERT INTO observed_facts VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT(fact_id) DO NOTHING",
        content,
    )
    _supersede(tx, session_id, ordinal, named)
    tx.connection.executemany(
        "INSERT INTO session_facts(session_id, ordinal, position, fact_id, wave_id, job, source_type,"
        " source_ref, band, utility, tokens_full, tokens_outline, tokens_reference, dedupe_key,"
        " pinned_from) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [
            (
                session_id,
                ordinal,
                position + place,
                identity,
                wave_id,
                job,
                fact.source_type,
                fact.source_ref,
                fact.band,
                fact.utility,
                fact.full.tokens,
                fact.outline.tokens if fact.outline else 0,
                fact.reference.tokens,
                fact.dedupe_key,
                ordinal if fact.pinned else None,
            )
            for place, (identity, fact) in enumerate(unseen, start=1)
        ],
    )
    return len(unseen)


_CHUNK = 500
"""Question marks in one statement."""


def chunks(values: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """(question marks, values), a few hundred at a time: for ``IN (…)``."""
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        yield ",".join("?" * len(chunk)), chunk


def storable(content: Sequence[tuple[Any, ...]]) -> bool:
    """Whether every text has a UTF-8. One look at each row: it is on the way of 50,000."""
    try:
        for row in content:
            f"{row[2]}{row[3]}{row[4]}{row[5]}{row[6]}".encode()
    except UnicodeEncodeError:
        return False
    return True


def cleaned(fact: Fact) -> Fact:
    """The fact with every lone surrogate replaced; its id is that of the cleaned words."""
    return replace(
        fact,
        source_type=safe_text(fact.source_type),
        source_ref=safe_text(fact.source_ref),
        dedupe_key=safe_text(fact.dedupe_key),
        full=replace(fact.full, text=safe_text(fact.full.text)),
        reference=replace(fact.reference, text=safe_text(fact.reference.text)),
        outline=fact.outline and replace(fact.outline, text=safe_text(fact.outline.text)),
        provenance=json.loads(safe_text(canonical_json(dict(fact.provenance or {})))),
    )


def _unseen(tx: Tx, session_id: str, named: Mapping[str, Fact]) -> list[tuple[str, Fact]]:
    live: set[str] = set()
    for marks, chunk in chunks(list(named)):
        live.update(
            identity
            for (identity,) in tx.execute(
                "SELECT fact_id FROM session_facts WHERE session_id=? AND superseded_at IS NULL"  # noqa: S608 - only question marks
                f" AND fact_id IN ({marks})",
                (session_id, *chunk),
            )
        )
    return [(identity, fact) for identity, fact in named.items() if identity not in live]


def _supersede(tx: Tx, session_id: str, ordinal: int, named: Mapping[str, Fact]) -> None:
    keys = list({fact.dedupe_key: None for fact in named.values() if fact.dedupe_key})
    gone: list[tuple[int, str, int, int]] = []
    for marks, chunk in chunks(keys):
        gone.extend(
            (ordinal, session_id, seen, place)
            for seen, place, identity in tx.execute(
                "SELECT ordinal, position, fact_id FROM session_facts WHERE session_id=?"  # noqa: S608 - only question marks
                f" AND dedupe_key<>'' AND superseded_at IS NULL AND dedupe_key IN ({marks})",
                (session_id, *chunk),
            )
            if identity not in named
        )
    tx.connection.executemany(
        "UPDATE session_facts SET superseded_at=? WHERE session_id=? AND ordinal=? AND position=?",
        gone,
    )


def content_row(identity: str, fact: Fact, wave_id: str, pinned_now: str) -> tuple[Any, ...]:
    """A row of ``observed_facts``."""
    normalized = {
        "full": fact.full.text,
        "outline": fact.outline.text if fact.outline else None,
        "reference": fact.reference.text,
        "quality": fact.quality,
    }
    return (
        identity,
        wave_id,
        fact.source_type,
        fact.source_ref,
        canonical_json(dict(fact.provenance or {})),
        canonical_json(normalized),
        fact.dedupe_key or None,
        fact.utility,
        fact.full.tokens,
        pinned_now,
    )


LINKED_COLUMNS = (
    "fact_id, source_type, source_ref, band, ordinal, position,"
    " (pinned_from IS NOT NULL AND pinned_from<=:ordinal AND"
    " (pinned_until IS NULL OR pinned_until>:ordinal)),"
    " (superseded_at IS NOT NULL AND superseded_at<=:ordinal),"
    " utility, tokens_full, tokens_outline, tokens_reference, dedupe_key,"
    " CASE cluster WHEN 0 THEN sketch ELSE cluster END"
)


def linked(connection: sqlite3.Connection, session_id: str, ordinal: int) -> list[Linked]:
    """Every fact that the session has at wave ``ordinal``, in order of (ordinal, position).

    Later facts, pins and supersessions do not show: the answer for a past wave never changes.
    """
    found = connection.execute(
        f"SELECT {LINKED_COLUMNS} FROM session_facts WHERE session_id=:session AND ordinal<=:ordinal"  # noqa: S608 - fixed columns
        " ORDER BY ordinal, position",
        {"session": session_id, "ordinal": ordinal},
    )
    return [_linked(row) for row in found]


def _linked(row: tuple[Any, ...]) -> Linked:
    identity, source, ref, band, seen, position, pinned, superseded, utility, *rest = row
    tokens = (rest[0], rest[1], rest[2])
    flags = (bool(pinned), bool(superseded))
    return Linked(
        identity, source, ref, band, seen, position, *flags, utility, tokens, rest[3], rest[4]
    )


def texts(connection: sqlite3.Connection, identities: Sequence[str]) -> dict[str, FactText]:
    """The words of facts by id; ids that are not stored are left out."""
    found: dict[str, FactText] = {}
    for marks, chunk in chunks(identities):
        for identity, source_type, source_ref, provenance, normalized in connection.execute(
            "SELECT fact_id, source_type, source_ref, provenance_json, normalized_json"  # noqa: S608 - only question marks
            f" FROM observed_facts WHERE fact_id IN ({marks})",
            tuple(chunk),
        ):
            levels = msgspec.json.decode(normalized)
            found[identity] = FactText(
                identity,
                source_type,
                source_ref,
                levels["full"],
                levels["outline"],
                levels["reference"],
                msgspec.json.decode(provenance),
            )
    return found


def provenances(
    connection: sqlite3.Connection, source_type: str, identities: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    """Where facts come from, by id: those of ``identities`` that are of ``source_type``."""
    found: dict[str, Mapping[str, Any]] = {}
    for marks, chunk in chunks(identities):
        for identity, provenance in connection.execute(
            "SELECT fact_id, provenance_json FROM observed_facts"  # noqa: S608 - only question marks
            f" WHERE source_type=? AND fact_id IN ({marks})",
            (source_type, *chunk),
        ):
            found[identity] = msgspec.json.decode(provenance)
    return found
