"""Trust rules: what the user lets pass from now on, as rows that count only as the journal has them.

The table can be written by any program of the user, so a rule covers something only where the journal says
that it was accepted like this, and nothing that ended it since. Specified in ``docs/reference/trust.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.details.trust import (
    EvidencePart,
    ShapeOfRule,
    TrustChanged,
    TrustUsed,
)
from cockpit.store.journal.event_types import Action
from cockpit.store.trust.shape import Effect, Shape, read_shape
from cockpit.store.trust.trust_decisions import TrustDecision

MOST_RULES = 2_000
LEARNED, FILE = "learned", "file"
EXPIRED = "it expired"
"""Why a rule is suspended whose days are over."""
_SELECT = (
    "SELECT rule_id, origin, effect, shape_json, task_type, risk, status, status_at, why, accepted_at,"
    " expires_at, uses, last_used_at FROM trust_rules"
)


class Rule(Struct, frozen=True):
    """One row of ``trust_rules``."""

    rule_id: str
    origin: str
    """``learned``, or ``file``: one of ``permissions.toml``, which has a row once it was used."""
    effect: Effect
    shape: Shape
    task_type: str
    risk: str
    """The highest risk that it covers."""
    status: str
    """``active``, ``suspended`` or ``revoked``."""
    status_at: str
    why: str
    """Why it has this status."""
    accepted_at: str | None
    expires_at: str | None
    uses: int
    last_used_at: str | None

    def status_on(self, now: str) -> str:
        """Return its status at a time: a rule past its end is ``expired``, whether that was seen or not."""
        if self.status == "suspended" and self.why == EXPIRED:
            return "expired"
        if self.status == "active" and self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return self.status


def find(connection: sqlite3.Connection, rule_id: str) -> Rule | None:
    """Read a rule, or None."""
    row = connection.execute(f"{_SELECT} WHERE rule_id=?", (rule_id,)).fetchone()
    return None if row is None else _read(row)


def load(connection: sqlite3.Connection, rule_id: str) -> Rule:
    """Read a rule. Raises :class:`NotFound`."""
    rule = find(connection, rule_id)
    if rule is None:
        raise NotFound(f"There is no rule {rule_id}; `cockpit trust rules` lists them.")
    return rule


def select_all(connection: sqlite3.Connection) -> list[Rule]:
    """Read every rule, by task type, those that were accepted last first."""
    rows = connection.execute(
        f"{_SELECT} ORDER BY task_type, accepted_at DESC, rule_id LIMIT ?", (MOST_RULES,)
    )
    return [_read(row) for row in rows]


def find_in_force(tx: Tx, rule_id: str) -> Rule | None:
    """Return the rule where it covers something now: accepted, not ended since, and not expired."""
    rule = find(tx.connection, rule_id)
    now = latest_moment(tx.connection, tx.now())
    if rule is not None and rule.status == "active" and rule.status_on(now) == "expired":
        # Journalled once it is seen: a clock that is set back revives no rule.
        end(tx, rule.shape, "suspended", why=EXPIRED, actor="engine")
        return None
    if rule is None or rule.accepted_at is None or rule.status_on(now) != "active":
        return None
    return rule


def latest_moment(connection: sqlite3.Connection, now: str) -> str:
    """Return ``now``, or the time at which a session changed last: a clock set back is behind that."""
    (latest,) = connection.execute("SELECT max(updated_at) FROM sessions").fetchone()
    return max(now, latest or "")


def is_ended(tx: Tx, rule_id: str) -> bool:
    """Whether a rule of ``permissions.toml`` was suspended, and not accepted again since."""
    rule = find(tx.connection, rule_id)
    return rule is not None and rule.status != "active"


def select_evidence(connection: sqlite3.Connection, rule_id: str) -> tuple[EvidencePart, ...]:
    """Read the decisions that a rule was accepted on, as the journal has them."""
    values = connection.execute(
        f"{journal.SELECT} WHERE action=? AND json_extract(detail_json, '$.rule_id')=?"
        " AND json_extract(detail_json, '$.status')='accepted' ORDER BY seq DESC LIMIT 1",
        (str(Action.TRUST_CHANGED), rule_id),
    ).fetchone()
    return () if values is None else journal.read_row(values).read(TrustChanged).evidence


def accept(
    tx: Tx,
    shape: Shape,
    *,
    risk: str,
    expires_at: str | None,
    evidence: Sequence[TrustDecision],
    rule_id: str = "",
    origin: str = LEARNED,
) -> Rule:
    """Store that the user accepted a rule, from now on, and journal it with its evidence.

    A rule that was suspended, revoked or expired begins again; the count of its uses stays.
    """
    rule_id = rule_id or shape.rule_id
    tx.execute(
        "INSERT INTO trust_rules(rule_id, origin, effect, shape_json, task_type, risk, status, status_at,"
        " why, accepted_at, expires_at, uses) VALUES (?,?,?,?,?,?,'active',?,'',?,?,0)"
        " ON CONFLICT(rule_id) DO UPDATE SET status='active', status_at=excluded.status_at, why='',"
        " accepted_at=excluded.accepted_at, expires_at=excluded.expires_at, risk=excluded.risk",
        (
            *(rule_id, origin, shape.effect, shape.as_json(), shape.task_type, risk),
            *(tx.now(), tx.now(), expires_at),
        ),
    )
    tx.journal(
        TrustChanged(
            rule_id=rule_id,
            status="accepted",
            says=shape.describe(),
            task_type=shape.task_type,
            effect=shape.effect,
            shape=ShapeOfRule(**asdict(shape)),
            risk=risk,
            expires_at=expires_at,
            evidence=tuple(
                EvidencePart(
                    proposal_id=each.proposal_id,
                    session_id=each.session_id,
                    decided_at=each.decided_at,
                )
                for each in evidence
            ),
        ),
        actor="person",
    )
    return load(tx.connection, rule_id)


def end(
    tx: Tx,
    shape: Shape,
    status: str,
    *,
    why: str,
    proposal_id: str = "",
    session_id: str = "",
    rule_id: str = "",
    origin: str = LEARNED,
    actor: str = "person",
) -> Rule:
    """Suspend or revoke the rule of a shape, or decline its offer, and journal it.

    ``status`` is ``suspended`` or ``revoked``.
    """
    rule_id = rule_id or shape.rule_id
    tx.execute(
        "INSERT INTO trust_rules(rule_id, origin, effect, shape_json, task_type, risk, status, status_at,"
        " why, uses) VALUES (?,?,?,?,?,'low',?,?,?,0) ON CONFLICT(rule_id) DO UPDATE SET"
        " status=excluded.status, status_at=excluded.status_at, why=excluded.why",
        (
            *(rule_id, origin, shape.effect, shape.as_json(), shape.task_type),
            *(status, tx.now(), why),
        ),
    )
    event = TrustChanged(
        rule_id=rule_id,
        effect=shape.effect,
        says=shape.describe(),
        task_type=shape.task_type,
        status=status,
        why=why,
        proposal_id=proposal_id,
    )
    tx.journal(event, actor=actor, session_id=session_id)
    return load(tx.connection, rule_id)


def count_use(
    tx: Tx,
    rule_id: str,
    shape: Shape,
    *,
    proposal_id: str,
    what: str,
    session_id: str,
    wave_id: str,
    origin: str = LEARNED,
) -> None:
    """Count that a rule was used, and journal what it let pass."""
    tx.execute(
        "INSERT INTO trust_rules(rule_id, origin, effect, shape_json, task_type, risk, status, status_at,"
        " why, uses, last_used_at) VALUES (?,?,?,?,?,'low','active',?,'',1,?) ON CONFLICT(rule_id)"
        " DO UPDATE SET uses=uses+1, last_used_at=excluded.last_used_at",
        (
            *(rule_id, origin, shape.effect, shape.as_json(), shape.task_type),
            *(tx.now(), tx.now()),
        ),
    )
    tx.journal(
        TrustUsed(
            rule_id=rule_id,
            says=shape.describe(),
            task_type=shape.task_type,
            effect=shape.effect,
            proposal_id=proposal_id,
            what=what,
            uses=load(tx.connection, rule_id).uses,
        ),
        actor=f"trust:{rule_id}",
        session_id=session_id,
        wave_id=wave_id,
    )


def _read(row: tuple[Any, ...]) -> Rule:
    rule_id, origin, effect, shape_json, *rest = row
    return Rule(rule_id, origin, effect, read_shape(shape_json), *rest)
