"""``cockpit profile``: the group of the collection, comparing versions, and changing."""

from __future__ import annotations

from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.profiles import COLLECTION, find_version
from cockpit.commands.collection_groups import make_group, read_view
from cockpit.commands.packets.profile_change import PROFILE, propose, rollback
from cockpit.commands.terminal import show, show_json
from cockpit.orient.profile_changes.profile_json import profile_differences
from cockpit.store.context.profile_model import Profile

profile = make_group(COLLECTION)
profile.add_command(propose)
profile.add_command(rollback)


@profile.command("diff", epilog=examples("cockpit profile diff 1 2"))
@click.argument("before", type=click.IntRange(min=1))
@click.argument("after", type=click.IntRange(min=1))
@PROFILE
@AS_JSON
def show_diff(before: int, after: int, profile_id: str, as_json: bool) -> None:
    """Compare two versions of a profile."""

    def find(version: int) -> Profile:
        row = read_view(COLLECTION, lambda view: find_version(view, str(version), profile_id))
        return row.profile

    changes = profile_differences(find(before), find(after))
    if as_json:
        show_json(changes)
        return
    lines = [
        f"{name}: {' → '.join(str(value) for value in changes[name])}"
        for name in ("total_token_budget", "ranking", "cache")
        if changes[name][0] != changes[name][1]
    ]
    for kind in ("band", "rule_id"):
        for entry in changes["bands" if kind == "band" else "rules"]:
            lines += _lines(entry[kind], entry["before"], entry["after"])
    show("\n".join(lines) or "The versions are the same.")


def _lines(name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    if before is None or after is None:
        return [f"{name}: {'added' if before is None else 'removed'}"]
    return [
        f"{name} {field}: {before[field]} → {after[field]}"
        for field in before
        if before[field] != after[field]
    ]
