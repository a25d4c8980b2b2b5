"""All proposals of a project as a list: who asks, which are equal, which rule would cover one, its history.

Equal are low-risk proposals of one agent, kind and task type whose parts have the same shapes: those that
trust rules are learned from. Specified in ``docs/reference/screen.md``, proposals.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json
from cockpit.core.clock import Clock
from cockpit.core.text import format_size
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.decide_rules import list_offers
from cockpit.loop.trust.request_parts import list_parts
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session

_RECALLED = ("discussed", "rejected")
_PENDING_MOST = 10_000
_MOST_REVISIONS = 50

Compare = Callable[[Sequence[str], Sequence[str], int], Iterable[str]]
"""Returns the lines of a unified diff with so many lines of context, without the names of files."""


class ListedProposal(Struct, frozen=True):
    """A proposal, and what a list says about it."""

    proposal: Proposal
    agent: str
    """The external agent that asks, the role, or ``agent`` for the built-in one."""
    session: str
    """The title of its session."""
    where: str
    """The project and the branch that an external agent works on, as far as they are known."""
    equal: tuple[Proposal, ...] = ()
    """All waiting proposals that equal it, itself among them; empty where each is decided by itself."""
    rules: tuple[str, ...] = ()
    """Offered rules that together would cover all of it."""
    says: tuple[str, ...] = ()
    """What each of those rules covers, in words."""


class Revision(Struct, frozen=True):
    """An earlier version of a proposal, and how the next one differs from it, as lines of a diff."""

    proposal: Proposal
    was_edited: bool
    """Whether the user edited it: the next version is the user's."""
    changes: tuple[str, ...]


def list_proposals(
    connection: sqlite3.Connection, clock: Clock, settings: RuntimeSettings, *, decided: bool
) -> list[ListedProposal]:
    """Return what waits, the oldest first; with ``decided`` also what was discussed or rejected last."""
    rows = proposals.select_pending(connection, _PENDING_MOST)
    if decided:
        recent = proposals.select_recent(connection)
        rows += [each for each in recent if each.status in _RECALLED]
    by_id = _load_sessions(connection, rows)
    offers = {each.shape.digest: each.shape for each in list_offers(connection, clock, settings)}
    shapes = {each.proposal_id: _shapes(each, by_id) for each in rows}
    groups: dict[tuple[str, ...], list[Proposal]] = defaultdict(list)
    for each in rows:
        if shapes[each.proposal_id] and _may_join(each):
            groups[(each.kind, *shapes[each.proposal_id])].append(each)
    listed = []
    for each in rows:
        digests = shapes[each.proposal_id] if _may_join(each) else ()
        covering = [offers[digest] for digest in dict.fromkeys(digests) if digest in offers]
        is_covered = bool(digests) and len(covering) == len(set(digests))
        session = by_id.get(each.session_id)
        listed.append(
            ListedProposal(
                each,
                str(each.body.get("agent") or (session.role if session else "") or "agent"),
                session.title if session else "",
                _name_place(each),
                tuple(groups.get((each.kind, *digests), ())) if digests else (),
                tuple(shape.rule_id for shape in covering) if is_covered else (),
                tuple(shape.describe() for shape in covering) if is_covered else (),
            )
        )
    return listed


def _name_place(proposal: Proposal) -> str:
    names = (proposal.body.get("project"), proposal.body.get("branch"))
    return " · ".join(str(name) for name in names if name)


def _compare(before: Sequence[str], after: Sequence[str], around: int) -> Iterator[str]:
    yield from list(difflib.unified_diff(before, after, lineterm="", n=around))[2:]


def read_history(
    connection: sqlite3.Connection, proposal: Proposal, compare: Compare = _compare
) -> tuple[Revision, ...]:
    """Return the earlier versions of a proposal, the newest first, each with what changed after it."""
    revisions: list[Revision] = []
    later = proposal
    while later.revises and len(revisions) < _MOST_REVISIONS:
        earlier = proposals.load(connection, later.revises)
        before, after = (list(describe_body(each.body, compare)) for each in (earlier, later))
        was_edited = earlier.reason == proposals.EDITED
        revisions.append(Revision(earlier, was_edited, tuple(compare(before, after, 2))))
        later = earlier
    return tuple(revisions)


def describe_body(body: Mapping[str, Any], compare: Compare = _compare) -> Iterator[str]:
    """Yield what a proposal asks for as lines of text: everything that was drawn of it."""
    for name in ("summary", "purpose", "question", "escalation", "reason", "why"):
        if body.get(name):
            yield from f"{name}: {body[name]}".split("\n")
    for item in body.get("items", ()):
        level = "" if item.get("level", "full") == "full" else f", {item['level']}"
        refused = f", refused: {item['refused']}" if item.get("refused") else ""
        yield f"{item.get('item', '')}{level}, {format_size(item.get('tokens'))}{refused}"
    for name, value in body.get("fields", ()):
        yield from f"{name}: {value}".split("\n")
    for note in body.get("notes", ()):
        yield f"! {note}"
    if body.get("body"):
        yield from str(body["body"]).split("\n")
    for diff in body.get("diffs", ()):
        before, after = diff.get("before") or "", diff.get("after") or ""
        yield f"file {diff.get('path', '')}"
        yield from compare(before.split("\n"), after.split("\n"), 3)
    payload = body.get("payload") or {}
    if payload and not {"markdown", "plan"} & set(
        payload
    ):  # those are in the body, as they will be written
        yield f"{body.get('type', '')}: {canonical_json(payload)}"
    if body.get("input"):
        yield f"input: {canonical_json(body['input'])}"


def _load_sessions(
    connection: sqlite3.Connection, rows: Sequence[Proposal]
) -> Mapping[str, Session]:
    names = {each.session_id for each in rows if each.session_id}
    return {name: sessions.load(connection, name) for name in sorted(names)}


def _may_join(proposal: Proposal) -> bool:
    """Whether one key may decide it with others: nothing above low risk, no question, no widening."""
    body = proposal.body
    is_plain = not body.get("widening") and not body.get("questions")
    return proposal.status == "pending" and proposal.risk == "low" and is_plain


def _shapes(proposal: Proposal, by_id: Mapping[str, Session]) -> tuple[str, ...]:
    """Return the digests of the shapes of all parts, in order; empty where a part has none."""
    session = by_id.get(proposal.session_id)
    parts = list_parts(proposal, session) if session is not None else ()
    digests = [part.shape.digest for part in parts if part.shape is not None]
    return tuple(sorted(digests)) if parts and len(digests) == len(parts) else ()
