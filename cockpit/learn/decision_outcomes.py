"""The outcomes of a session's decisions: its actions and the verdicts on its proposals, by wave.

Read from stored rows alone, for a few waves at a time: later events change the outcome of a wave.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import parse_json

CHANGING = ("write_file", "edit_file")


class Deed(Struct, frozen=True):
    """One action that a wave planned.

    ``ran`` says that it was tried, ``refused`` that a guard refused it. ``before`` and ``after`` are the
    sha256 of a file's content. ``green`` is None unless it is a test run. ``reverts`` are the revisions
    that a ``git revert`` names.
    """

    ordinal: int
    place: int
    kind: str
    confirmed: bool
    ran: bool
    refused: bool
    paths: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None
    commit: str = ""
    green: bool | None = None
    reverts: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether it changed a file."""
        return self.confirmed and self.kind in CHANGING


class Ruling(Struct, frozen=True):
    """The user's decision on a proposal of a wave.

    ``share`` is 1 where it was approved unchanged, 0.5 after a revision, an edit or a narrowing, 0 where it
    was rejected. ``paths`` are those of a rejected file action.
    """

    ordinal: int
    share: float
    paths: tuple[str, ...] = ()


class Outcomes(Struct, frozen=True):
    """Deeds and rulings of consecutive waves, in order."""

    deeds: tuple[Deed, ...]
    rulings: tuple[Ruling, ...]


def read_outcomes(connection: sqlite3.Connection, ordinals: Mapping[str, int]) -> Outcomes:
    """Return the outcomes of the waves in ``ordinals`` (wave id to ordinal) as they are now."""
    waves = list(ordinals)
    marks = ",".join("?" * len(waves))
    turned_down, rulings = _rulings(connection, ordinals, marks)
    return Outcomes(_deeds(connection, ordinals, marks, turned_down), rulings)


def _rulings(
    connection: sqlite3.Connection, ordinals: Mapping[str, int], marks: str
) -> tuple[frozenset[str], tuple[Ruling, ...]]:
    """Return the keys of actions that were proposed and not approved, and the user's decisions."""
    rows = connection.execute(
        "SELECT proposal_id, wave_id, revises, status, narrowed_json IS NOT NULL, decided_by,"  # noqa: S608 - only question marks
        " CASE WHEN kind='action' AND status<>'approved' THEN"
        " json_extract(body_json,'$.key','$.payload.path','$.payload.paths') END"
        f" FROM proposals WHERE wave_id IN ({marks}) AND kind IN ('context','action')"
        " ORDER BY created_at, rowid",
        tuple(ordinals),
    ).fetchall()
    revised = {(wave_id, revises) for _, wave_id, revises, *_ in rows if revises}
    keys: set[str] = set()
    rulings: list[Ruling] = []
    for proposal_id, wave_id, revises, status, narrowed, by, extracted in rows:
        key, path, paths = parse_json(extracted) if extracted else (None, None, None)
        if key:
            keys.add(key)
        # Revised in its own wave: the user edited it, and the edit is what was decided on.
        edited = (wave_id, proposal_id) in revised
        if by != "person" or edited or status not in ("approved", "rejected", "discussed"):
            continue
        share = 0.0 if status != "approved" else 0.5 if revises or narrowed else 1.0
        rulings.append(Ruling(ordinals[wave_id], share, _paths(path, paths)))
    return frozenset(keys), tuple(rulings)


def _deeds(
    connection: sqlite3.Connection,
    ordinals: Mapping[str, int],
    marks: str,
    turned_down: frozenset[str],
) -> tuple[Deed, ...]:
    rows = connection.execute(
        "SELECT o.wave_id, o.position, o.action_type, o.phase, o.idempotency_key,"  # noqa: S608 - only question marks
        " json_extract(o.payload_json,'$.path','$.paths','$.before_sha256','$.after_sha256'),"
        " json_extract(r.detail_json,'$.argv','$.tests','$.exit_code','$.commit')"
        " FROM outbox_actions o LEFT JOIN action_receipts r ON r.action_id=o.action_id AND r.terminal=1"
        f" WHERE o.wave_id IN ({marks})",
        tuple(ordinals),
    ).fetchall()
    rows.sort(key=lambda row: (ordinals[row[0]], row[1]))
    deeds: list[Deed] = []
    halted = 0
    for wave_id, place, kind, phase, key, payload, receipt in rows:
        ordinal = ordinals[wave_id]
        # The first action that does not end well stops its wave: none after it was judged at all.
        stopped = halted == ordinal
        if phase != "confirmed":
            halted = ordinal
        path, paths, before, after = parse_json(payload)
        argv, tests, code, commit = parse_json(receipt) if receipt else (None, None, None, None)
        deeds.append(
            Deed(
                ordinal,
                place,
                kind,
                phase == "confirmed",
                receipt is not None,
                receipt is None
                and phase == "failed_terminal"
                and not stopped
                and key not in turned_down,
                _paths(path, paths),
                before,
                after,
                commit or "",
                code == 0 if tests else None,
                _reverted(argv),
            )
        )
    return tuple(deeds)


def _paths(path: Any, paths: Any) -> tuple[str, ...]:
    return (str(path),) if path else tuple(map(str, paths or ()))


def _reverted(argv: Sequence[str] | None) -> tuple[str, ...]:
    if not argv or list(argv[:2]) != ["git", "revert"]:
        return ()
    return tuple(word for word in argv[2:] if not word.startswith("-"))
