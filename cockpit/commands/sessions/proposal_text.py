"""The text of a proposal: everything that its digest covers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.text import pluralize
from cockpit.store.sessions.proposals import Proposal
from widgets.text.clean import hidden

_RENDERED = frozenset(
    {
        *("purpose", "question", "escalation", "items", "total_tokens", "changes", "key"),
        *("type", "summary", "fields", "body", "diffs", "notes", "payload"),
        *("reason", "bands_before", "bands_after", "rules_before", "rules_after", "verdict"),
        *(
            "base_version",
            "profile_id",
            "effective_waves",
            "widening",
            "total_before",
            "total_after",
        ),
    }
)


def proposal_text(proposal: Proposal) -> str:
    """Return the full text of a proposal; a line says when it contains characters that cannot be shown."""
    lines = [
        f"{proposal.kind.upper()}  {proposal.title}",
        f"{proposal.proposal_id} · {proposal.risk} risk · {proposal.status}"
        f" · {f'session {proposal.session_id}' if proposal.session_id else 'outside any session'}"
        f" · shown {proposal.shown_digest}",
    ]
    if proposal.expires_at is not None and proposal.status == "pending":
        lines.append(f"expires {proposal.expires_at[:19]}Z")
    if proposal.revises:
        lines.append(f"revises {proposal.revises}")
    if proposal.decided_by:
        lines.append(f"{proposal.status} by {proposal.decided_by} at {proposal.decided_at}")
    if proposal.reason:
        lines.append(f"reason: {proposal.reason}")
    body = proposal.body
    lines += [f"  changed: {change}" for change in body.get("changes", ())]
    lines += body_lines(proposal.kind, body)
    others = {name: value for name, value in body.items() if name not in _RENDERED and value}
    if others:
        lines += ["", "also:", canonical_json(others)]
    if count := hidden(canonical_json(dict(body))):
        lines += [
            "",
            f"! It contains {pluralize(count, 'character')} that cannot be shown. Use --json.",
        ]
    return "\n".join(lines)


def body_lines(kind: str, body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the body of a proposal by lines: the items, the profile change or the action."""
    yield from {"context": _context, "profile": _profile}.get(kind, _action)(body)


def _context(body: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    for name in ("purpose", "question", "escalation"):
        if body.get(name):
            yield f"{name}: {body[name]}"
    yield ""
    for item in body.get("items", ()):
        if item.get("refused"):
            yield f"  ✘ {item['item']}: {item['refused']}"
            continue
        note = f"  ({item['note']})" if item.get("note") else ""
        yield f"  {item['item']}  {item['level']}, {item['tokens']:,} tokens, {item['band']}{note}"
    yield f"  about {body.get('total_tokens', 0):,} tokens"


def _profile(body: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    if body.get("reason"):
        yield f"reason: {body['reason']}"
    yield f"{body.get('profile_id', '')} version {body.get('base_version', '')} becomes:"
    for name, value in body.get("fields", ()):
        yield f"  {name}: {value}"
    yield "guard:"
    for entry in body.get("verdict", ()):
        yield f"  {'✔' if entry.get('ok') else '✘'} {entry.get('code')}: {entry.get('message')}"
    yield ""
    yield f"applies: {canonical_json(body.get('payload', {}))}"


def _action(body: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    if body.get("summary"):
        yield str(body["summary"])
    for name, value in body.get("fields", ()):
        yield f"  {name}: {value}"
    for note in body.get("notes", ()):
        yield f"  ! {note}"
    if body.get("body"):
        yield ""
        yield str(body["body"])
    for diff in body.get("diffs", ()):
        yield ""
        yield from _diff(diff)
    yield ""
    payload = body.get("payload", {})
    if set(payload) == {"markdown"}:
        yield from ("as it will be written:", str(payload["markdown"]))
    else:
        yield f"runs: {body.get('type', '')} {canonical_json(payload)}"


def _diff(diff: Mapping[str, Any]) -> Iterator[str]:
    before, after = diff.get("before"), diff.get("after")
    yield from difflib.unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        "/dev/null" if before is None else f"a/{diff['path']}",
        "/dev/null" if after is None else f"b/{diff['path']}",
        lineterm="",
    )
