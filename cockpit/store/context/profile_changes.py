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
from cockpit.store.journal.details.detail import decode_detail
from cockpit.store.journal.details.profiles import ProfileProposed
from cockpit.store.journal.event_types import Action

ChangeStatus = Literal["pending", "approved", "rejected", "expired"]
EndReason = Literal["reverted", "promoted", "rolled_back"]
"""How a temporary change ended."""


class ChangeProposal(Struct, frozen=True):
    """One row of ``profile_change_proposals``."""

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
    request_digest: str = ""
    """Digest of the keyed request that proposed it; empty without a key."""


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
    "SELECT proposal_id, requested_by, base_profile_id, base_profile_version, effective_waves,"
    " proposal_json, status, rejection_code, rejection_reason, approved_by, applied_version,"
    " created_at, decided_at, request_digest FROM profile_change_proposals"
)
_SELECT_TEMPORARY = (
    "SELECT profile_id, version, base_version, proposal_id, horizon_waves, waves_begun, ended,"
    " started_at, ended_at FROM adaptations"
)


def propose(
    tx: Tx,
    *,
    proposal_id: str,
    requested_by: str,
    profile_id: str,
    base_version: int,
    effective_waves: int,
    payload: str,
    request_digest: str = "",
) -> ChangeProposal:
    """Store a pending change. Idempotent by ``proposal_id``: an existing row is returned."""
    tx.execute(
        "INSERT INTO profile_change_proposals(proposal_id, requested_by, base_profile_id,"
        " base_profile_version, effective_waves, proposal_json, status, created_at, request_digest)"
        " VALUES (?,?,?,?,?,?,'pending',?,?) ON CONFLICT(proposal_id) DO NOTHING",
        (
            proposal_id,
            requested_by,
            profile_id,
            base_version,
            effective_waves,
            payload,
            tx.now(),
            request_digest,
        ),
    )
    return load(tx.connection, proposal_id)


def decide(
    tx: Tx,
    proposal_id: str,
    status: Literal["approved", "rejected", "expired"],
    *,
    by: str = "",
    code: str = "",
    reason: str = "",
    applied_version: int | None = None,
) -> ChangeProposal:
    """Decide a pending change, by compare-and-set on ``pending``.

    ``by`` is the principal who approves; ``code`` and ``reason`` say why it was rejected. Raises
    :class:`AlreadyDecided`, :class:`NotFound`.
    """
    changed = tx.execute(
        "UPDATE profile_change_proposals SET status=?, rejection_code=?, rejection_reason=?,"
        " approved_by=?, applied_version=?, decided_at=? WHERE proposal_id=? AND status='pending'",
        (
            status,
            code if status == "rejected" else None,
            reason if status == "rejected" else None,
            by if status == "approved" else None,
            applied_version,
            tx.now(),
            proposal_id,
        ),
    )
    proposal = load(tx.connection, proposal_id)
    if changed.rowcount != 1:
        raise AlreadyDecided(f"The profile change {proposal_id} is already {proposal.status}.")
    return proposal


def find(connection: sqlite3.Connection, proposal_id: str) -> ChangeProposal | None:
    """Read the change of that id, or None."""
    row = connection.execute(f"{_SELECT_CHANGE} WHERE proposal_id=?", (proposal_id,)).fetchone()
    return ChangeProposal(*row) if row else None


def load(connection: sqlite3.Connection, proposal_id: str) -> ChangeProposal:
    """Read the change of that id. Raises :class:`NotFound`."""
    proposal = find(connection, proposal_id)
    if proposal is None:
        raise NotFound(
            f"There is no profile change {proposal_id}; `cockpit proposals --all` lists them."
        )
    return proposal


def find_proposed(connection: sqlite3.Connection, proposal_id: str) -> ProfileProposed | None:
    """Return what the journal recorded when the change was proposed; None where that was pruned."""
    row = connection.execute(
        "SELECT detail_json FROM journal WHERE action=? AND json_extract(detail_json, '$.proposal_id')=?"
        " ORDER BY seq LIMIT 1",
        (str(Action.PROFILE_PROPOSED), proposal_id),
    ).fetchone()
    return None if row is None else decode_detail(ProfileProposed, row[0])


def select_changes(
    connection: sqlite3.Connection, limit: int = 200, *, status: ChangeStatus | None = None
) -> list[ChangeProposal]:
    """Read changes of one status (None: of every status), newest first."""
    where, values = ("", ()) if status is None else (" WHERE status=?", (status,))
    rows = connection.execute(
        f"{_SELECT_CHANGE}{where} ORDER BY created_at DESC, rowid DESC LIMIT ?", (*values, limit)
    )
    return [ChangeProposal(*row) for row in rows]


def has_change_of(connection: sqlite3.Connection, profile_id: str, version: int) -> bool:
    """Tell whether a temporary change runs, or one of this version was proposed, however it was decided."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM adaptations WHERE profile_id=:profile AND ended IS NULL)"
        " OR EXISTS (SELECT 1 FROM profile_change_proposals WHERE base_profile_id=:profile"
        " AND base_profile_version=:version)",
        {"profile": profile_id, "version": version},
    ).fetchone()
    return bool(row[0])


_UNAPPLIED = (
    " FROM profile_change_proposals c JOIN proposals p USING(proposal_id)"
    " WHERE c.status='pending' AND (p.status<>'pending' OR p.expires_at<=:now)"
)


def select_unapplied(connection: sqlite3.Connection, now: str) -> list[tuple[str, str]]:
    """Read (id, status of its proposal) of pending changes that were decided elsewhere.

    A proposal that is pending past its deadline at ``now`` counts as ``expired``. Oldest first.
    """
    rows = connection.execute(
        "SELECT c.proposal_id, CASE p.status WHEN 'pending' THEN 'expired' ELSE p.status END"
        f"{_UNAPPLIED} ORDER BY c.created_at, c.rowid",
        {"now": now},
    )
    return [(str(identity), str(status)) for identity, status in rows]


def find_undisturbed_version(
    connection: sqlite3.Connection, profile_id: str, now: str
) -> int | None:
    """Return a profile's active version, if no temporary change runs and none is to be applied.

    None also for a profile that is not there: the steps that change it say so.
    """
    row = connection.execute(
        "SELECT version FROM orientation_profiles WHERE profile_id=:profile AND status='active'"  # noqa: S608 - fixed text
        " AND NOT EXISTS (SELECT 1 FROM adaptations WHERE profile_id=:profile AND ended IS NULL)"
        f" AND NOT EXISTS (SELECT 1{_UNAPPLIED})",
        {"profile": profile_id, "now": now},
    ).fetchone()
    return None if row is None else int(row[0])


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


def link_base(tx: Tx, profile_id: str, version: int, base_version: int) -> None:
    """Record which version another one was made from."""
    tx.execute(
        "UPDATE orientation_profiles SET base_version=? WHERE profile_id=? AND version=?",
        (base_version, profile_id, version),
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
