"""Observed facts: content stored once, linked to every session that saw it.

A fact's id is derived from its content and provenance alone (:func:`compute_fact_id`), so the same
lines of the same content have the same id in every session, process and directory. What belongs to
a session (when it was seen, in which order, whether it is pinned or superseded) is in
``session_facts``. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from cockpit.core.canonical_json import canonical_json, parse_json, text_digest
from cockpit.core.secrets import replace_surrogates

if TYPE_CHECKING:
    import sqlite3

    from cockpit.store.db.transaction import Tx

LEVELS = ("full", "outline", "reference")
"""Detail levels of a fact, the longest first."""

_encode = msgspec.json.Encoder(order="deterministic").encode

UTILITY_MAX = 1_000_000
"""Utility and quality are fixed-point integers from 0 to this."""


class Level(Struct, frozen=True):
    """One detail level of a fact: its text and the number of its tokens."""

    text: str
    tokens: int


class FactCost(Struct, frozen=True):
    """The tokens of a fact as a prompt renders it, at each level; 0: not counted."""

    full: int = 0
    outline: int = 0
    """0 also for a fact without an outline."""
    reference: int = 0


UNCOUNTED = FactCost()


class Fact(Struct, frozen=True):
    """Something that was observed, ready to be stored."""

    source_type: str
    source_ref: str
    """The scope item that yields the fact again (``file:src/a.py:10-40``)."""
    band: str
    """One of the six bands."""
    full: Level
    reference: Level
    """One line that refers to the fact."""
    outline: Level | None = None
    """None for sources without an outline."""
    provenance: Mapping[str, Any] | None = None
    """Path, rev, lines, content sha256 and such: JSON values that depend on neither time nor
    machine."""
    dedupe_key: str = ""
    """What a newer fact supersedes: same key, other content."""
    utility: int = 500_000
    """0 to :data:`UTILITY_MAX`."""
    quality: int = UTILITY_MAX
    """0 to :data:`UTILITY_MAX`."""
    pinned: bool = False
    sketch: int = 0
    """Compared for near-duplicates (:mod:`cockpit.store.context.near_duplicates`); 0: not compared."""
    cost: FactCost = UNCOUNTED
    """What it takes in a prompt."""
    pinned_short: bool = False
    """A pinned fact that keeps its meaning in its outline may be shortened to it."""
    fact_id: str = ""
    """Computed; what is given is not used."""

    def __post_init__(self) -> None:
        # Computed here, because the writer is one thread and holds the lock.
        identity = compute_fact_id(
            self.source_type, self.source_ref, self.full.text, self.provenance or {}
        )
        force_setattr(self, "fact_id", identity)


def compute_fact_id(
    source_type: str, source_ref: str, text: str, provenance: Mapping[str, Any]
) -> str:
    """``f-`` and 24 hex characters of the digest over source, reference, content and provenance."""
    body = [source_type, source_ref, text_digest(text), dict(provenance)]
    try:
        # The same bytes as canonical_json in a fifth of the time: 50,000 facts pass here.
        canonical = _encode(body)
    except UnicodeEncodeError:
        canonical = canonical_json(body).encode("utf-8", "surrogatepass")
    return f"f-{sha256(canonical).hexdigest()[:24]}"


class ObservingWave(Struct, frozen=True):
    """The wave that observes, at its pinned time."""

    session_id: str
    wave_id: str
    ordinal: int
    pinned_now: str
    whole: frozenset[str] | None = None
    """The facts that the last packet held in full; None: unknown.

    A fact that is read again and is not among them is linked again as a fresh one.
    """
    unasked_jobs: frozenset[str] = frozenset()
    """Jobs that the agent did not ask for: what they read again stays as it is."""


PlacedFact = tuple[int, str, Fact]
"""A fact with its position in the wave and the name of what it was read for."""


class SessionFact(Struct, frozen=True):
    """A stored fact as one session sees it: a row of ``session_facts`` joined with its fact."""

    fact_id: str
    source_type: str
    source_ref: str
    band: str
    ordinal: int
    """The wave that first saw it."""
    position: int
    """Its place in that wave."""
    pinned: bool
    superseded: bool
    utility: int
    level_tokens: tuple[int, int, int]
    """Tokens at full, outline (0: none) and reference level."""
    dedupe_key: str
    cluster: int = 0
    """Equal for near-duplicates; 0: none."""
    costs: tuple[int, int, int] | None = None
    """Tokens at each level as a prompt renders them; None: those of the text alone."""
    pinned_short: bool = False
    """A pinned fact that may be shortened to its outline."""


class FactText(Struct, frozen=True):
    """The texts of one fact at all levels."""

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

    Content is stored once for all sessions. A fact that the session already has and that is not
    superseded stays as it is. ``job`` names what the facts were read for. Facts of observation jobs are
    stored by :mod:`cockpit.store.context.ingest_facts` instead. Callers mask secrets, because a
    fact's id covers its masked text.

    One call is one look. Facts that share a ``dedupe_key`` in it are parts of one thing (the two
    patches of a file that became a link) and all stay. Together they supersede, from this wave on,
    the facts that an earlier look left under their key and this one did not read again.
    """
    if not facts:
        return 0
    wave = ObservingWave(session_id, wave_id, ordinal, pinned_now)
    (last,) = tx.execute(
        "SELECT coalesce(max(position), 0) FROM session_facts WHERE session_id=? AND ordinal=?",
        (session_id, ordinal),
    ).fetchone()
    places = {fact.fact_id: (last + at, job, fact) for at, fact in enumerate(facts, 1)}
    try:
        new = link(tx, wave, places)
    except UnicodeEncodeError:
        clean = map(replace_surrogates_in, facts)
        places = {fact.fact_id: (last + at, job, fact) for at, fact in enumerate(clean, 1)}
        new = link(tx, wave, places)
    _supersede(tx, session_id, ordinal, places)
    return new


def link(tx: Tx, wave: ObservingWave, places: Mapping[str, PlacedFact]) -> int:
    """Store the content of facts, by id, and link them; returns how many were new to the session.

    Facts that the session has already stay as they are. Raises ``UnicodeEncodeError``, before
    anything is linked, for text that is not Unicode: then link the results of
    :func:`replace_surrogates_in`.
    """
    session_id, ordinal, wave_id, now = wave.session_id, wave.ordinal, wave.wave_id, wave.pinned_now
    # Rows are made while they are written: 50,000 at once would not fit into the processor's cache.
    tx.connection.executemany(
        "INSERT INTO observed_facts VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT(fact_id) DO NOTHING",
        (_content_row(identity, fact, wave_id, now) for identity, (_, _, fact) in places.items()),
    )
    linked = tx.connection.executemany(
        "INSERT INTO session_facts(session_id, ordinal, position, fact_id, wave_id, job, source_type,"
        " source_ref, band, utility, tokens_full, tokens_outline, tokens_reference, dedupe_key,"
        " pinned_from, sketch, cost_full, cost_outline, cost_reference, pin_level)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT(session_id, fact_id) WHERE superseded_at IS NULL DO NOTHING",
        (
            (
                session_id,
                ordinal,
                position,
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
                fact.sketch,
                fact.cost.full,
                fact.cost.outline,
                fact.cost.reference,
                int(fact.pinned_short),
            )
            for identity, (position, job, fact) in places.items()
        ),
    )
    return linked.rowcount


_CHUNK = 500
"""Placeholders in one statement."""


def chunks(values: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield (placeholders, values), a few hundred at a time, for ``IN (…)``."""
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        yield ",".join("?" * len(chunk)), chunk


def replace_surrogates_in(fact: Fact) -> Fact:
    """Return the fact with every lone surrogate replaced; its id is that of the new text."""
    return replace(
        fact,
        source_type=replace_surrogates(fact.source_type),
        source_ref=replace_surrogates(fact.source_ref),
        dedupe_key=replace_surrogates(fact.dedupe_key),
        full=replace(fact.full, text=replace_surrogates(fact.full.text)),
        reference=replace(fact.reference, text=replace_surrogates(fact.reference.text)),
        outline=fact.outline and replace(fact.outline, text=replace_surrogates(fact.outline.text)),
        provenance=parse_json(replace_surrogates(canonical_json(dict(fact.provenance or {})))),
    )


def _supersede(tx: Tx, session_id: str, ordinal: int, places: Mapping[str, PlacedFact]) -> None:
    keys = list({fact.dedupe_key: None for _, _, fact in places.values() if fact.dedupe_key})
    gone: list[tuple[int, str, int, int]] = []
    for marks, chunk in chunks(keys):
        gone.extend(
            (ordinal, session_id, seen, place)
            for seen, place, identity in tx.execute(
                "SELECT ordinal, position, fact_id FROM session_facts WHERE session_id=?"  # noqa: S608 - only placeholders
                f" AND dedupe_key<>'' AND superseded_at IS NULL AND dedupe_key IN ({marks})",
                (session_id, *chunk),
            )
            if identity not in places
        )
    if gone:
        tx.connection.executemany(
            "UPDATE session_facts SET superseded_at=?"
            " WHERE session_id=? AND ordinal=? AND position=?",
            gone,
        )


def _content_row(identity: str, fact: Fact, wave_id: str, pinned_now: str) -> tuple[Any, ...]:
    """Make a row of ``observed_facts``. Raises ``UnicodeEncodeError`` for text that is not Unicode."""
    levels = {"full": fact.full.text, "reference": fact.reference.text}
    outline = fact.outline.text if fact.outline else None
    row = (
        identity,
        wave_id,
        fact.source_type,
        fact.source_ref,
        _encode(dict(fact.provenance or {})).decode(),
        _encode({**levels, "outline": outline, "quality": fact.quality}).decode(),
        fact.dedupe_key or None,
        fact.utility,
        fact.full.tokens,
        pinned_now,
    )
    f"{row[2]}{row[3]}{row[6]}".encode()
    return row


_AROUND = "12 + length(source_ref) / 2"
"""An estimate of what is written around a text, for facts whose cost was never counted."""
COST_COLUMNS = (
    f"CASE cost_full WHEN 0 THEN tokens_full + {_AROUND} ELSE cost_full END",
    "CASE WHEN tokens_outline = 0 THEN 0 WHEN cost_outline = 0"
    f" THEN tokens_outline + {_AROUND} ELSE cost_outline END",
    f"CASE cost_reference WHEN 0 THEN tokens_reference + {_AROUND} ELSE cost_reference END",
)
"""SQL of a fact's tokens as rendered: full, outline (0: none), reference."""

LINKED_COLUMNS = (
    "fact_id, source_type, source_ref, band, ordinal, position,"
    " (pinned_from IS NOT NULL AND pinned_from<=:ordinal AND"
    " (pinned_until IS NULL OR pinned_until>:ordinal)),"
    " (superseded_at IS NOT NULL AND superseded_at<=:ordinal),"
    " utility, tokens_full, tokens_outline, tokens_reference, dedupe_key,"
    " CASE cluster WHEN 0 THEN sketch ELSE cluster END, " + ", ".join(COST_COLUMNS) + ", pin_level"
)


_SELECT_LINKED = (
    f"SELECT {LINKED_COLUMNS} FROM session_facts WHERE session_id=:session AND ordinal<=:ordinal"  # noqa: S608 - fixed columns
    " ORDER BY ordinal, position"
)


def select_linked(
    connection: sqlite3.Connection, session_id: str, ordinal: int
) -> list[SessionFact]:
    """Read every fact that the session has at wave ``ordinal``, by (ordinal, position).

    Later facts, pins and supersessions do not show: the answer for a past wave never changes.
    """
    rows = connection.execute(_SELECT_LINKED, {"session": session_id, "ordinal": ordinal})
    return [_read_linked(row) for row in rows]


def _read_linked(row: tuple[Any, ...]) -> SessionFact:
    identity, source, ref, band, seen, position, pinned, superseded, utility, *rest = row
    tokens = (rest[0], rest[1], rest[2])
    flags = (bool(pinned), bool(superseded))
    return SessionFact(
        identity,
        source,
        ref,
        band,
        seen,
        position,
        *flags,
        utility,
        tokens,
        rest[3],
        rest[4],
        (rest[5], rest[6], rest[7]),
        bool(rest[8]),
    )


def load_texts(connection: sqlite3.Connection, identities: Sequence[str]) -> dict[str, FactText]:
    """Read the texts of facts by id; ids that are not stored are left out."""
    by_id: dict[str, FactText] = {}
    for marks, chunk in chunks(identities):
        for identity, source_type, source_ref, provenance, normalized in connection.execute(
            "SELECT fact_id, source_type, source_ref, provenance_json, normalized_json"  # noqa: S608 - only placeholders
            f" FROM observed_facts WHERE fact_id IN ({marks})",
            tuple(chunk),
        ):
            levels = msgspec.json.decode(normalized)
            by_id[identity] = FactText(
                identity,
                source_type,
                source_ref,
                levels["full"],
                levels["outline"],
                levels["reference"],
                msgspec.json.decode(provenance),
            )
    return by_id


def load_provenances(
    connection: sqlite3.Connection, source_type: str, identities: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    """Read the provenance of the facts of ``source_type`` among ``identities``, by id."""
    by_id: dict[str, Mapping[str, Any]] = {}
    for marks, chunk in chunks(identities):
        for identity, provenance in connection.execute(
            "SELECT fact_id, provenance_json FROM observed_facts"  # noqa: S608 - only placeholders
            f" WHERE source_type=? AND fact_id IN ({marks})",
            (source_type, *chunk),
        ):
            by_id[identity] = msgspec.json.decode(provenance)
    return by_id
