"""Profile changes that were proposed, and the temporary ones that run.

A change is decided once. An approved one becomes a version of the profile, permanently or for a
number of waves; at most one temporary change runs for each profile. Whether a change is safe is
decided in :mod:`cockpit.orient.profile_changes.guard`. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Literal

from msgspec import Struct

from cockpit.core.errors import AlreadyDecided, NotFound
from cockpit.store.db.transaction import Tx

GUARD = "guard"
"""The name in which the guard rejects; the reason begins with its code."""
_STATUSES = ("pending", "approved", "rejected", "discussed", "expired")
ChangeStatus = Literal["pending", "approved", "rejected", "expired"]
EndReason = Literal["reverted", "promoted", "rolled_back"]
"""How a temporary change ended."""


class ChangeProposal(Struct, frozen=True):
    """A proposal of a profile change. Other programs read it from the view ``profile_change_proposals``."""

    proposal_id: str
    requested_by: str
    profile_id: str
    base_version: int
    effective_waves: int
    """How many waves it lasts; 0: permanently."""
    payload: str
    """The canonical JSON of the change."""
    status: ChangeStatus
    rejection_code: str | None
    rejection_reason: str | None
    approved_by: str | None
    applied_version: int | None
    """The profile's version that it became, once approved."""
    created_at: str
    decided_at: str | None


class TemporaryChange(Struct, frozen=True):
    """A version of a profile that lasts for a number of waves: one row of ``adaptations``."""

    profile_id: str
    version: int
    base_version: int
    proposal_id: str
    duration_waves: int
    """How many waves it lasts."""
    waves_begun: int
    """Waves that have begun under it."""
    ended: EndReason | None
    """None while it runs."""
    started_at: str
    ended_at: str | None

    @property
    def waves_left(self) -> int:
        """Waves that may still begin under it."""
        return max(0, self.duration_waves - self.waves_begun)


_SELECT_CHANGE = (
    "SELECT proposal_id, json_extract(body_json, '$.requested_by'), json_extract(body_json, '$.profile_id'),"
    " json_extract(body_json, '$.base_version'), json_extract(body_json, '$.effective_waves'),"
    " json_extract(body_json, '$.payload'), status, decided_by, reason,"
    " (SELECT version FROM orientation_profiles WHERE change_id=proposal_id), created_at, decided_at"
    " FROM proposals WHERE kind='profile'"
)
_SELECT_TEMPORARY = (
    "SELECT profile_id, version, base_version, proposal_id, horizon_waves, waves_begun, ended,"
    " started_at, ended_at FROM adaptations"
)


def find(connection: sqlite3.Connection, proposal_id: str) -> ChangeProposal | None:
    """Read the change of that id, or None."""
    row = connection.execute(f"{_SELECT_CHANGE} AND proposal_id=?", (proposal_id,)).fetchone()
    return _read(row) if row else None


def load(connection: sqlite3.Connection, proposal_id: str) -> ChangeProposal:
    """Read the change of that id. Raises :class:`NotFound`."""
    proposal = find(connection, proposal_id)
    if proposal is None:
        raise NotFound(
            f"There is no profile change {proposal_id}; `cockpit proposals --all` lists them."
        )
    return proposal


def select_changes(
    connection: sqlite3.Connection, limit: int = 200, *, status: ChangeStatus | None = None
) -> list[ChangeProposal]:
    """Read changes of one status (None: of every status), newest first."""
    statuses: tuple[str, ...] = _STATUSES if status is None else (status,)
    if status == "rejected":
        statuses = ("rejected", "discussed")
    marks = ",".join("?" * len(statuses))
    rows = connection.execute(
        f"{_SELECT_CHANGE} AND status IN ({marks}) ORDER BY created_at DESC, rowid DESC LIMIT ?",
        (*statuses, limit),
    )
    return [_read(row) for row in rows]


def _read(row: tuple[Any, ...]) -> ChangeProposal:
    status, by, reason = row[6:9]
    code, why = (None, None)
    if status in ("rejected", "discussed"):
        code, why = status, reason
        if by == GUARD:
            code, _, why = reason.partition(": ")
    shown = "rejected" if status == "discussed" else status
    values = (*row[:6], shown, code, why, by if status == "approved" else None, *row[9:])
    return ChangeProposal(*values)


def has_change_of(connection: sqlite3.Connection, profile_id: str, version: int) -> bool:
    """Tell whether a temporary change runs, or one of this version was proposed, however it was decided."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM adaptations WHERE profile_id=:profile AND ended IS NULL)"
        " OR EXISTS (SELECT 1 FROM proposals WHERE kind='profile'"
        " AND json_extract(body_json, '$.profile_id')=:profile"
        " AND json_extract(body_json, '$.base_version')=:version)",
        {"profile": profile_id, "version": version},
    ).fetchone()
    return bool(row[0])


def start(tx: Tx, proposal: ChangeProposal, version: int) -> TemporaryChange:
    """Store that an approved change runs as ``version``.

    The database refuses a second one for the profile.
    """
    tx.execute(
        "INSERT INTO adaptations(profile_id, version, base_version, proposal_id, horizon_waves,"
        " started_at) VALUES (?,?,?,?,?,?)",
        (
            proposal.profile_id,
            version,
            proposal.base_version,
            proposal.proposal_id,
            proposal.effective_waves,
            tx.now(),
        ),
    )
    return load_for_version(tx.connection, proposal.profile_id, version)


def find_running(connection: sqlite3.Connection, profile_id: str) -> TemporaryChange | None:
    """Read the temporary change that runs for a profile, or None."""
    row = connection.execute(
        f"{_SELECT_TEMPORARY} WHERE profile_id=? AND ended IS NULL", (profile_id,)
    ).fetchone()
    return TemporaryChange(*row) if row else None


def find_last_ended(connection: sqlite3.Connection, profile_id: str) -> TemporaryChange | None:
    """Read the temporary change of a profile that ended last, or None."""
    row = connection.execute(
        f"{_SELECT_TEMPORARY} WHERE profile_id=? AND ended IS NOT NULL ORDER BY version DESC LIMIT 1",
        (profile_id,),
    ).fetchone()
    return TemporaryChange(*row) if row else None


def running_body(connection: sqlite3.Connection, profile_id: str) -> dict[str, Any] | None:
    """Return the temporary change that runs for a profile as a JSON value, or None."""
    change = find_running(connection, profile_id)
    if change is None:
        return None
    return {
        "proposal_id": change.proposal_id,
        "base_version": change.base_version,
        "horizon_waves": change.duration_waves,
        "waves_begun": change.waves_begun,
        "waves_left": change.waves_left,
    }


def load_for_version(
    connection: sqlite3.Connection, profile_id: str, version: int
) -> TemporaryChange:
    """Read the temporary change that ``version`` is. Raises :class:`NotFound`."""
    row = connection.execute(
        f"{_SELECT_TEMPORARY} WHERE profile_id=? AND version=?", (profile_id, version)
    ).fetchone()
    if row is None:
        raise NotFound(
            f"Version {version} of profile {profile_id!r} is not a temporary change; `cockpit"
            " profile history` lists versions."
        )
    return TemporaryChange(*row)


def count_wave(tx: Tx, change: TemporaryChange) -> TemporaryChange:
    """Record that one more wave begins under it."""
    key = (change.profile_id, change.version)
    tx.execute(
        "UPDATE adaptations SET waves_begun=waves_begun+1"
        " WHERE profile_id=? AND version=? AND ended IS NULL",
        key,
    )
    return load_for_version(tx.connection, *key)


def end(tx: Tx, change: TemporaryChange, how: EndReason) -> TemporaryChange:
    """End a temporary change. Raises :class:`AlreadyDecided` when it has ended."""
    key = (change.profile_id, change.version)
    changed = tx.execute(
        "UPDATE adaptations SET ended=?, ended_at=?"
        " WHERE profile_id=? AND version=? AND ended IS NULL",
        (how, tx.now(), *key),
    )
    ended = load_for_version(tx.connection, *key)
    if changed.rowcount != 1:
        raise AlreadyDecided(
            f"The temporary change {key[0]} version {key[1]} has already ended: {ended.ended}."
        )
    return ended


def link_base(
    tx: Tx, profile_id: str, version: int, base_version: int, change_id: str | None = None
) -> None:
    """Record which version another one was made from, and by which change."""
    tx.execute(
        "UPDATE orientation_profiles SET base_version=?, change_id=? WHERE profile_id=? AND version=?",
        (base_version, change_id, profile_id, version),
    )


def detail(proposal: ChangeProposal) -> dict[str, Any]:
    """Return what every journal row about a change contains."""
    return {
        "proposal_id": proposal.proposal_id,
        "profile_id": proposal.profile_id,
        "base_version": proposal.base_version,
        "effective_waves": proposal.effective_waves,
        "requested_by": proposal.requested_by,
    }
