"""The text of a proposal: everything that its digest covers."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.text import format_size, format_total, pluralize
from cockpit.loop.views.quoted_text import count_columns, cut_columns
from cockpit.store.sessions.proposals import Proposal, shown_reason, shown_status
from widgets.text.clean import clean, hidden

WIDTH = 160
"""Columns of a line where no terminal says how many it has."""

_LABEL = re.compile(r"[a-z][a-z0-9 _-]{0,30}")

_RENDERED = frozenset(
    {
        *("purpose", "question", "escalation", "items", "total_tokens", "changes", "key"),
        *("type", "summary", "fields", "body", "diffs", "notes", "payload"),
        *(
            "agent",
            "transport",
            "project",
            "branch",
            "worktree",
            "cwd",
            "call_id",
            "tool",
            "server",
        ),
        *("why", "command", "reasons", "options", "waiter", "editable", "edit_argument"),
        *("edit_suffix", "input", "edited", "rule", "questions", "form", "answers"),
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


def proposal_text(proposal: Proposal, *, width: int = WIDTH) -> str:
    """Return the full text of a proposal in a frame; a line says when characters cannot be shown.

    Only lines of cockpit's own begin at the left margin. Each foreign text stands behind its label, or
    behind a bar on every line, and no line is longer than ``width`` columns, so that no terminal breaks it.
    """
    status = shown_status(proposal)
    lines = [
        *framed(proposal.kind.upper(), proposal.title, width),
        f"{proposal.proposal_id} · {proposal.risk} risk · {status}"
        f" · {f'session {proposal.session_id}' if proposal.session_id else 'outside any session'}"
        f" · shown {proposal.shown_digest}",
    ]
    if proposal.expires_at is not None and proposal.status == "pending":
        lines.append(f"expires {proposal.expires_at[:19]}Z")
    if proposal.revises:
        lines.append(f"revises {proposal.revises}")
    if proposal.decided_by:
        lines += framed(f"{status} at {proposal.decided_at} by", proposal.decided_by, width)
    if reason := shown_reason(proposal):
        lines += framed("reason", reason, width)
    body = proposal.body
    for change in body.get("changes", ()):
        lines += framed("  changed", str(change), width)
    lines += body_lines(proposal.kind, body, width=width)
    others = {name: value for name, value in body.items() if name not in _RENDERED and value}
    if others:
        lines += ["", "also:", *_values(others, width)]
    if count := hidden(canonical_json(dict(body))):
        lines += [
            "",
            f"! It contains {pluralize(count, 'character')} that cannot be shown. Use --json.",
        ]
    return "\n".join(lines)


def framed(label: str, text: str, width: int = WIDTH) -> list[str]:
    """Return the lines of a foreign text: behind its label if it fits there, else each behind a bar."""
    shown = clean(str(text))
    line = f"{label}: {shown}"
    if "\n" not in shown and count_columns(line) <= width:
        return [line]
    return [f"{label}:", *barred(shown, width)]


def barred(text: str, width: int = WIDTH) -> list[str]:
    """Return the lines of a foreign text, each behind a bar; ``┆`` continues the line above it."""
    lines: list[str] = []
    for line in clean(str(text)).split("\n"):
        for number, piece in enumerate(cut_columns(line, max(20, width - 4))):
            lines.append(f"  {'┆' if number else '│'} {piece}".rstrip())
    return lines


def body_lines(kind: str, body: Mapping[str, Any], *, width: int = WIDTH) -> Iterator[str]:
    """Yield the body of a proposal by lines: the items, the profile change or the action."""
    parts = {"context": _context, "profile": _profile, "permission": _permission}
    yield from parts.get(kind, _action)(body, width)


def _context(body: Mapping[str, Any], width: int) -> Iterator[str]:
    yield ""
    for name in ("purpose", "question", "escalation"):
        if body.get(name):
            yield from framed(name, body[name], width)
    yield ""
    for item in body.get("items", ()):
        if item.get("refused"):
            yield from framed("  ✗ item", item["item"], width)
            yield from framed("    refused", item["refused"], width)
            continue
        yield from framed("  item", item["item"], width)
        yield f"    {item['level']}, {format_size(item['tokens'])}, {item['band']}"
        if item.get("note"):
            yield from framed("    note", item["note"], width)
    yield f"  {format_total([item['tokens'] for item in body['items'] if not item.get('refused')])}"


def _profile(body: Mapping[str, Any], width: int) -> Iterator[str]:
    yield ""
    if body.get("reason"):
        yield from framed("reason", body["reason"], width)
    yield from framed(
        f"version {body.get('base_version', '')} of", body.get("profile_id", ""), width
    )
    yield "becomes:"
    for name, value in body.get("fields", ()):
        yield from _field(name, value, width)
    yield "guard:"
    for entry in body.get("verdict", ()):
        yield from framed(
            f"  {'✔' if entry.get('ok') else '✗'} {entry.get('code')}", entry.get("message"), width
        )
    yield ""
    yield "applies:"
    yield from _values(body.get("payload", {}), width)


def _values(value: object, width: int, *names: str) -> Iterator[str]:
    """Yield each text and number inside a value on a line of its own, behind the names that lead to it."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _values(inner, width, *names, str(name))
    elif isinstance(value, list | tuple) and value:
        for place, inner in enumerate(value, 1):
            yield from _values(inner, width, *names, str(place))
    elif names:
        text = value if isinstance(value, str) else canonical_json(value)
        is_plain = all(name.isdecimal() or _LABEL.fullmatch(name) for name in names)
        label = " ".join(names)
        yield from framed(f"  {label}", text, width) if is_plain else _field(label, text, width)


def _field(name: object, value: object, width: int) -> list[str]:
    """Return a field; a name that is not a plain word could itself look like something else."""
    label = str(name)
    if _LABEL.fullmatch(label):
        return framed(f"  {label}", str(value), width)
    return framed("  field", f"{label}: {value}", width)


def _permission(body: Mapping[str, Any], width: int) -> Iterator[str]:
    yield from _shown(body, width)
    if body.get("rule"):
        yield ""
        yield from framed("--always would allow", body["rule"].get("what", ""), width)
    if body.get("input"):
        yield ""
        yield "input:"
        yield from _arguments(body["input"], body, width)


def _action(body: Mapping[str, Any], width: int) -> Iterator[str]:
    yield from _shown(body, width)
    yield ""
    payload = body.get("payload", {})
    if set(payload) == {"markdown"}:
        yield "as it will be written:"
        yield from barred(payload["markdown"], width)
    elif set(payload) != {"plan"}:  # a model's plan is in the body with all that it would add
        yield from framed("runs", str(body.get("type", "")), width)
        yield from _arguments(payload, body, width)


def _arguments(arguments: Mapping[str, Any], body: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yield the arguments by lines, text as it is, without those that stand above already."""
    for name, value in arguments.items():
        if not _is_drawn(value, body):
            text = value if isinstance(value, str) else canonical_json(value)
            yield from _field(name, text, width)


def _is_drawn(value: object, body: Mapping[str, Any]) -> bool:
    """Return True for an argument that the diffs, the body or the fields show, as on the screen."""
    if not isinstance(value, str):
        return value is None or value is False
    if value in (str(field) for _, field in body.get("fields", ())):
        return True
    if value in str(body.get("body") or ""):
        return True
    return any(_is_in_diff(value, diff) for diff in body.get("diffs", ()))


def _is_in_diff(value: str, diff: Mapping[str, Any]) -> bool:
    """Return True for the path, for a side of the diff or its digest, and for text in its drawn lines."""
    sides = [side for side in (diff.get("before"), diff.get("after")) if side is not None]
    digests = [hashlib.sha256(side.encode("utf-8", "replace")).hexdigest() for side in sides]
    if value in (diff["path"], *sides, *digests):
        return True
    lines = list(_diff(diff))[2:]
    drawn = ("\n".join(line[1:] for line in lines if line[0] in signs) for signs in (" -@", " +@"))
    return any(value.rstrip("\n") in side for side in drawn)


def _shown(body: Mapping[str, Any], width: int) -> Iterator[str]:
    yield ""
    if body.get("summary"):
        yield from framed("summary", body["summary"], width)
    for name, value in body.get("fields", ()):
        yield from _field(name, value, width)
    for note in body.get("notes", ()):
        yield from framed("  ! note", note, width)
    if body.get("body"):
        yield ""
        yield "body:"
        yield from barred(body["body"], width)
    for diff in body.get("diffs", ()):
        yield ""
        yield from framed("diff", diff["path"], width)
        for line in _diff(diff):
            yield from barred(line, width)


def _diff(diff: Mapping[str, Any]) -> Iterator[str]:
    before, after = diff.get("before"), diff.get("after")
    yield from difflib.unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        "/dev/null" if before is None else f"a/{diff['path']}",
        "/dev/null" if after is None else f"b/{diff['path']}",
        lineterm="",
    )
