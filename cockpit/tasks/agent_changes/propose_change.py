"""Propose what an agent did in a worktree of its own, when its turn has ended.

One proposal shows the whole of it; when the agent changed more meanwhile, or the branch below moved on, it
is shown anew. See ``docs/reference/agents.md``, the change of a worktree.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cockpit.core.canonical_json import digest
from cockpit.core.errors import CockpitError
from cockpit.core.text import pluralize
from cockpit.loop.wave_context import Engine
from cockpit.store.chains import worktrees
from cockpit.store.chains.worktrees import DROP, TAKE, TYPES, Worktree
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import messages, proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session
from cockpit.tasks.agent_changes.read_change import WorktreeChange, read_change, read_merged
from cockpit.tasks.git import WorktreeError

INTO = "into"
"""The name in a session's target of the branch that its worktree began from."""
WORKTREE = "worktree"
"""The name in the target of a session over a chain's or a task's branch: the worktree's name."""
_ANEW = "shown anew"
CONFLICTS = " · conflicts"
"""The end of the title of a change that cannot be merged."""


async def propose_change(engine: Engine, session_id: str) -> Proposal | None:
    """Propose the change of the session's worktree, unless it waits already as it is.

    None for a session in the checkout, and where nothing changed. What cannot be compared becomes a notice
    of the session.
    """
    session, tree = await engine.store.read(lambda c: _load_reviewed(c, session_id))
    if tree is None or INTO not in session.target:
        return None
    into = str(session.target[INTO])
    try:
        change = await read_change(Path(tree.path), tree.branch, into, tree.base_commit)
    except (CockpitError, OSError) as error:
        words = f"The work on {tree.branch} is not proposed: {error}"
        await engine.store.write(
            lambda tx: messages.complete(tx, session_id=session_id, role="notice", text=words)
        )
        return None
    project = engine.repo or engine.place.home.name
    return await engine.store.write(
        lambda tx: _write_proposal(tx, session, tree, into, project, change)
    )


async def propose_removal(engine: Engine, session_id: str) -> Proposal:
    """Propose to remove the worktree and the branch of a session where nothing is left to merge.

    Raises :class:`WorktreeError` where git cannot say so.
    """
    session, tree = await engine.store.read(lambda c: _load_reviewed(c, session_id))
    if tree is None or INTO not in session.target:
        raise WorktreeError(f"{session_id} has no branch of its own.")
    into = str(session.target[INTO])
    is_checked_out = (Path(tree.path) / ".git").exists()
    root = Path(tree.path) if is_checked_out else engine.place.home
    tip, snapshot = await read_merged(
        root, tree.branch, into, tree.base_commit, is_checked_out=is_checked_out
    )
    body = {
        "agent": session.agent,
        "project": engine.repo or engine.place.home.name,
        "payload": _describe_payload(session, tree, into, tip, tip, snapshot),
    }
    name = into.removeprefix("refs/heads/") or "the commit it began at"
    title, body = describe_drop(body, f"nothing that {name} does not have", is_merged=True)

    def write(tx: Tx) -> Proposal:
        for waiting in select_pending(tx.connection, session_id):
            if waiting.body["type"] == DROP and waiting.body["payload"] == body["payload"]:
                return waiting
            proposals.decide(tx, waiting.proposal_id, "expired", by="engine", reason=_ANEW)
        earlier = _select_earlier(tx.connection, session_id)
        return create_proposal(
            tx, session_id, title, body, "medium", earlier[-1] if earlier else None
        )

    return await engine.store.write(write)


def find_worktree(connection: sqlite3.Connection, cwd: str) -> Worktree | None:
    """Return the worktree of an agent's session by its folder; None for any other folder."""
    return next(
        (
            tree
            for tree in worktrees.select(connection)
            if tree.path == cwd and tree.task_id is None and not tree.chain_id
        ),
        None,
    )


def _load_reviewed(
    connection: sqlite3.Connection, session_id: str
) -> tuple[Session, Worktree | None]:
    """Return a session with the worktree that it is about: the one that it names, or that it works in."""
    session = sessions.load(connection, session_id)
    if name := session.target.get(WORKTREE):
        return session, worktrees.load(connection, str(name))
    return session, find_worktree(connection, session.cwd)


def _describe_payload(
    session: Session, tree: Worktree, into: str, base: str, tip: str, snapshot: str
) -> dict[str, Any]:
    payload: dict[str, Any] = msgspec.to_builtins(
        ChangePayload(
            session=session.session_id,
            worktree=tree.name,
            agent=session.agent or "cockpit",
            branch=tree.branch,
            into=into,
            base=base,
            tip=tip,
            tree=snapshot,
        )
    )
    return payload


def select_pending(connection: sqlite3.Connection, session_id: str) -> list[Proposal]:
    """Return the session's proposals over its worktree that wait for a decision."""
    earlier = _select_earlier(connection, session_id)
    return [proposal for proposal in earlier if proposal.status == "pending"]


def _select_earlier(connection: sqlite3.Connection, session_id: str) -> list[Proposal]:
    """Return all proposals of the session over its worktree, decided or not, in their order."""
    return [
        proposal
        for proposal in proposals.select_for_session(connection, session_id)
        if proposal.body.get("type") in TYPES
    ]


def _write_proposal(
    tx: Tx,
    session: Session,
    tree: Worktree,
    into: str,
    project: str,
    change: WorktreeChange | None,
) -> Proposal | None:
    payload: dict[str, Any] = {}
    if change is not None:
        payload = _describe_payload(session, tree, into, change.base, change.tip, change.tree)
    for waiting in select_pending(tx.connection, session.session_id):
        if waiting.body["payload"] == payload:
            return waiting
        proposals.decide(tx, waiting.proposal_id, "expired", by="engine", reason=_ANEW)
    if change is None:
        return None
    if tree.task_id is None:
        worktrees.set_status(tx, tree.name, "active")
    earlier = _select_earlier(tx.connection, session.session_id)
    body = describe_change(session, tree, project, change, payload)
    revises = earlier[-1] if earlier else None
    if revises is not None:
        body["changes"] = _compare(revises.body["payload"], payload)
    title = title_change(tree, into, change)
    return create_proposal(tx, session.session_id, title, body, change.risk, revises)


def create_proposal(
    tx: Tx,
    session_id: str,
    title: str,
    body: dict[str, Any],
    risk: str,
    revises: Proposal | None,
) -> Proposal:
    """Store a proposal over a worktree, with the key of its action in it."""
    named = digest([session_id, title, body["payload"], revises and revises.proposal_id])
    return proposals.create(
        tx,
        proposal_id=f"p-{named[:10]}",
        kind="action",
        session_id=session_id,
        wave_id="",
        title=title,
        body={**body, "key": f"{body['type']}-{named[:24]}"},
        risk=risk,
        revises=revises.proposal_id
        if revises is not None and revises.body["type"] == TAKE
        else None,
    )


def title_change(tree: Worktree, into: str, change: WorktreeChange) -> str:
    """Return the title of a change's proposal: branch, where it goes and its size."""
    name = into.removeprefix("refs/heads/") or "the checkout"
    conflicts = CONFLICTS if change.conflicts else ""
    return f"take {tree.branch} into {name}: {change.size}{conflicts}"


def describe_change(
    session: Session,
    tree: Worktree,
    project: str,
    change: WorktreeChange,
    payload: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the body of a change's proposal, without the key of its action."""
    into = str(payload["into"]).removeprefix("refs/heads/")
    work = pluralize(change.commits, "commit")
    if change.uncommitted:
        work += f" and {pluralize(len(change.uncommitted), 'uncommitted file')}"
    names = ", ".join(change.conflicts[:10])
    more = f" and {len(change.conflicts) - 10:,} more" if len(change.conflicts) > 10 else ""
    conflicts = [("conflicts", names + more)] if names else []
    fields = [
        *conflicts,
        ("into", into),
        ("work", work),
    ]
    notes = list(change.notes)
    if change.uncommitted:
        notes.append("What is not committed is committed first, under the agent's name.")
    if change.conflicts:
        notes.append(
            "Nothing is merged while files conflict; `cockpit` shows both sides in the branch's diff."
        )
    return {
        "type": TAKE,
        "summary": f"All that {session.agent or 'cockpit'} did on {tree.branch} is merged into {into}.",
        "agent": session.agent,
        "project": project,
        "branch": tree.branch,
        "fields": [list(pair) for pair in fields],
        "diffs": [
            {"path": diff.path, "before": diff.before, "after": diff.after} for diff in change.diffs
        ],
        "notes": notes,
        "payload": dict(payload),
    }


def size_of(proposal: Proposal) -> str:
    """Return how large a proposed change is, in the words of its title."""
    return proposal.title.rpartition(": ")[2].removesuffix(CONFLICTS)


def describe_drop(
    shown: Mapping[str, Any], size: str, *, is_merged: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return title and body of the question whether a worktree is really dropped.

    ``shown`` is the body of the proposal to take it, ``size`` how much it changes.
    """
    payload = dict(shown["payload"])
    branch = str(payload["branch"])
    kept = f"refs/cockpit/dropped/{payload['session']}"
    keeps = f"Its work is kept as {kept}; `git branch NAME {kept}` brings it back."
    body = {
        "type": DROP,
        "summary": f"The worktree and the branch {branch} are removed; nothing is merged.",
        "agent": str(shown.get("agent", "")),
        "project": str(shown.get("project", "")),
        "branch": branch,
        "fields": [["branch", branch], ["size", size]],
        "notes": [
            "All of its work is merged." if is_merged else keeps,
            "Files that git ignores are removed with the worktree.",
        ],
        "payload": payload,
    }
    return f"drop {branch}: remove its worktree and branch", body


def _compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say how a revision differs from the one before."""
    changes = []
    if before.get("tree") != after["tree"]:
        changes.append("the agent's work changed")
    if before.get("base") != after["base"]:
        into = str(after["into"]).removeprefix("refs/heads/")
        changes.append(
            f"{into} moved from {str(before.get('base'))[:10]} to {str(after['base'])[:10]}"
        )
    return changes


DROPPED = "refs/cockpit/dropped/"
"""Where the work of a dropped worktree is kept, under its session's id."""


class ChangePayload(msgspec.Struct, frozen=True):
    """One worktree's change as it was shown; the adapters get exactly this."""

    session: str
    worktree: str
    """Its name in the store."""
    agent: str
    """The agent's title, as the author of what it left uncommitted."""
    branch: str
    into: str
    """The branch that it is merged into, as a full reference."""
    base: str
    """The commit of ``into`` when it was shown."""
    tip: str
    """The commit of the worktree's branch when it was shown."""
    tree: str
    """The tree of the worktree with what is not committed, when it was shown."""
