"""``cockpit profile``: the group of the collection, comparing versions, and changing."""

from __future__ import annotations

from typing import Any

import click

from cockpit.collections.profiles import COLLECTION, ProfileRow, find_version
from cockpit.commands.collection_groups import format_parts, make_group, read_view
from cockpit.commands.packets.profile_change import propose, rollback
from cockpit.orient.profile_changes.profile_json import profile_differences

SINCE = click.option(
    "--since",
    type=click.IntRange(min=1),
    metavar="VERSION",
    help="Show what changed since this version.",
)


def _changes(row: ProfileRow, since: int) -> dict[str, Any]:
    name = row.profile.profile_id
    before = read_view(COLLECTION, lambda view: find_version(view, str(since), name))
    return profile_differences(before.profile, row.profile)


def _document(row: ProfileRow, since: int | None, **_: Any) -> Any:
    return COLLECTION.show_row(row) if since is None else _changes(row, since)


def _describe(row: ProfileRow, since: int | None, **_: Any) -> str:
    if since is None:
        return format_parts(COLLECTION.describe(row))
    changes = _changes(row, since)
    lines = [
        f"{name}: {' → '.join(str(value) for value in changes[name])}"
        for name in ("total_token_budget", "ranking", "cache")
        if changes[name][0] != changes[name][1]
    ]
    for kind in ("band", "rule_id"):
        for entry in changes["bands" if kind == "band" else "rules"]:
            lines += _lines(entry[kind], entry["before"], entry["after"])
    return "\n".join(lines) or "The versions are the same."


def _lines(name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    if before is None or after is None:
        return [f"{name}: {'added' if before is None else 'removed'}"]
    return [
        f"{name} {field}: {before[field]} → {after[field]}"
        for field in before
        if before[field] != after[field]
    ]


profile = make_group(COLLECTION, details=[SINCE], describe=_describe, document=_document)
profile.add_command(propose)
profile.add_command(rollback)
