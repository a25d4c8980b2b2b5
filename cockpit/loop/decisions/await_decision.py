"""Waiting for a decision, following a person's edits, and what a revision changed.

Whoever is first decides: the screen, a command in another process, or a policy. A deadline that
passes ends the wait with :class:`DeadlinePassed`; the expired proposal stays settled as such.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.core.errors import CockpitError
from cockpit.loop.wave_context import Here
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

DISCUSS = (
    "The person wants to discuss before anything happens. Ask what is on their mind; do not reach the"
    " same end another way."
)
EDITED = "edited by the person"


class DeadlinePassed(CockpitError):
    """A proposal's deadline passed without a decision; the session rests until it is continued."""

    code = "deadline"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a proposal ended: the last revision that the person made of it, and its status."""

    proposal: Proposal

    @property
    def status(self) -> str:
        return self.proposal.status

    @property
    def told(self) -> str:
        """What the agent is told of it."""
        words = self.proposal.reason
        match self.status:
            case "approved":
                return f"Approved by {self.proposal.decided_by}."
            case "discussed":
                return DISCUSS + (f" They said: {words}" if words else "")
            case "rejected":
                return f"Rejected by {self.proposal.decided_by}" + (f": {words}" if words else ".")
            case _:
                return "Nobody decided before the deadline; it expired and did not happen."


async def await_verdict(here: Here, proposal_id: str) -> Verdict:
    """Wait until the proposal (or the person's edit of it) is decided.

    Raises :class:`DeadlinePassed` when it expires while this waits.
    """
    session_id = here.session.session_id
    first = here.store.read_now(lambda connection: _current(connection, proposal_id))
    if first.status != "pending":
        return Verdict(first)
    why = SessionWaiting(for_="proposal", why=first.title)
    await here.store.write(lambda tx: sessions.set_status(tx, session_id, "waiting", detail=why))

    def ask() -> Proposal | None:
        current = here.store.read_now(lambda connection: _current(connection, proposal_id))
        if current.status != "pending":
            return current
        if current.expires_at is not None:
            here.store.write_now(lambda tx: proposals.expire_due(tx, session_id))
            current = here.store.read_now(lambda connection: _current(connection, proposal_id))
        return None if current.status == "pending" else current

    decided = await here.engine.pulse.until(ask)
    if decided.status == "expired" and decided.decided_by == "deadline":
        how = f"go on with `cockpit run --continue {session_id}`"
        if here.session.role:
            how = f"`cockpit tasks unblock {here.session.task_id}` lets its task go on"
        raise DeadlinePassed(
            f"Nobody decided {decided.title!r} ({decided.proposal_id}) before its deadline. "
            f"Nothing happened; {how}."
        )
    await here.store.write(lambda tx: sessions.set_status(tx, session_id, "running"))
    return Verdict(decided)


def revised(
    connection: sqlite3.Connection, session_id: str, kind: str, proposal_id: str
) -> Proposal | None:
    """The discussed proposal that a new one of ``kind`` answers: the session's last of that kind,
    when it ended in discussion and nothing has answered it yet."""
    last = proposals.find_latest_of_kind(connection, session_id, kind, but=proposal_id)
    return last if last is not None and last.status == "discussed" else None


def changes_since(before: Proposal, body: Mapping[str, Any]) -> list[str]:
    """One line for each difference between a discussed proposal and its next revision."""
    if before.kind == "context":
        old = [item["item"] for item in before.body.get("items", ())]
        new = [item["item"] for item in body.get("items", ())]
        lines = [f"− {item}" for item in old if item not in new]
        lines += [f"+ {item}" for item in new if item not in old]
    else:
        lines = [
            f"{name}: changed" if before.body.get(name) and body.get(name) else f"{name}: new"
            for name in ("summary", "fields", "body", "diffs")
            if before.body.get(name) != body.get(name) and body.get(name)
        ]
    for name in ("purpose", "question"):
        if before.body.get(name) != body.get(name) and body.get(name):
            lines.append(f"{name}: {body[name]}")
    return lines or ["nothing changed"]


def _current(connection: sqlite3.Connection, proposal_id: str) -> Proposal:
    """The proposal, or the newest of the person's edits of it."""
    proposal = proposals.load(connection, proposal_id)
    while proposal.status == "discussed" and proposal.reason == EDITED:
        row = connection.execute(
            "SELECT proposal_id FROM proposals WHERE revises=? ORDER BY rowid DESC LIMIT 1",
            (proposal.proposal_id,),
        ).fetchone()
        if row is None:
            return proposal
        proposal = proposals.load(connection, str(row[0]))
    return proposal
