"""``cockpit profile``: list, show and compare the versions of orientation profiles, and change them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.collection import Collection
from cockpit.commands.open_project import find_project, load_project_settings, read_store
from cockpit.commands.packets.profile_change import PROFILE, propose, rollback
from cockpit.commands.terminal import format_table, show, show_json
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.orient.profile_changes.change_preview import fetch_bound
from cockpit.orient.profile_changes.profile_json import profile_differences, profile_document
from cockpit.store.context import profile_changes
from cockpit.store.context.profile_model import WEIGHT_ONE, Profile, Rule
from cockpit.store.context.profiles import initial_profile, load, load_current, select_versions


class ProfileRow(Struct, frozen=True):
    """A version of a profile, and of the current one the temporary change that is active."""

    profile: Profile
    running: dict[str, Any] | None = None


def _read(profile_id: str) -> Sequence[ProfileRow]:
    name = profile_id or _first().profile_id
    versions: tuple[Profile, ...] = read_store(
        lambda connection: select_versions(connection, name), empty=()
    )
    return [ProfileRow(version) for version in versions]


def _find(name: str, profile_id: str) -> ProfileRow:
    if name == "current":
        return _chosen(profile_id, None)
    if not name.isdecimal():
        raise NotFound(f"{name} is no version. Write current, or a number.")
    return _chosen(profile_id, int(name))


def _describe(row: ProfileRow, profile_id: str) -> str:
    chosen, running = row.profile, row.running
    lines = [
        f"{chosen.profile_id} version {chosen.version} · {chosen.status} · {chosen.ranking}"
        f" · {chosen.total_token_budget:,} tokens",
        f"by {chosen.updated_by}{f' at {chosen.updated_at}' if chosen.updated_at else ''}"
        f" · digest {chosen.digest[:12]}",
    ]
    if running is not None:
        lines.append(
            f"temporary change: {running['waves_left']} of"
            f" {pluralize(running['horizon_waves'], 'wave')} left, then back to"
            f" version {running['base_version']} ({running['proposal_id']})"
        )
    bands = [
        (
            band.name,
            *(f"{n:,}" for n in (band.min_tokens, band.target_tokens, band.max_tokens)),
        )
        for band in chosen.bands
    ]
    rules = [
        (
            rule.rule_id,
            rule.source_type,
            *(f"{n / WEIGHT_ONE:g}" for n in _weights(rule)),
            f"{rule.recency_half_life} waves" if rule.recency_half_life else "–",
            "" if rule.enabled else "off",
        )
        for rule in chosen.rules
    ]
    lines += ["", format_table(("BAND", "FLOOR", "TARGET", "CEILING"), bands)]
    headings = ("RULE", "SOURCE", "PRIORITY", "NOVELTY", "RISK", "HALF-LIFE", "")
    lines += ["", format_table(headings, rules)]
    fetching = [rule for rule in chosen.rules if rule.enabled and rule.fetch]
    if fetching:
        lines += ["", "Sessions read without asking:"]
    lines += [
        f"  {rule.rule_id}: {', '.join(rule.fetch)} ({fetch_bound(rule)})" for rule in fetching
    ]
    return "\n".join(lines)


profile = Collection(
    "profile",
    short_help="Manage orientation profiles.",
    help="""Manage orientation profiles; without VERSION the versions of one are listed, the oldest first.

    A profile sets how many tokens each band of a packet gets and how its facts are ranked. VERSION is a
    number, or current; before the first session that is what the session will get. `cockpit profile current
    --json` exports it for `cockpit profile propose`. `cockpit proposals` decides what is proposed.
    """,
    examples=(
        "cockpit profile",
        "cockpit profile current",
        "cockpit profile propose change.json",
        "cockpit profile rollback",
    ),
    row="VERSION",
    columns={
        "VERSION": lambda row: str(row.profile.version),
        "STATUS": lambda row: row.profile.status,
        "BUDGET": lambda row: f"{row.profile.total_token_budget:,}",
        "RANKING": lambda row: row.profile.ranking,
        "BY": lambda row: row.profile.updated_by,
        "AT": lambda row: row.profile.updated_at[:16].replace("T", " "),
        "DIGEST": lambda row: row.profile.digest[:12],
    },
    read=_read,
    find=_find,
    describe=_describe,
    none="No versions yet. The first session creates the profile that `cockpit profile current` shows.",
    body=lambda row: profile_document(row.profile),
    document=lambda row, profile_id: {
        **profile_document(row.profile),
        "adaptation": row.running,
    },
    filters=[PROFILE],
    details=[PROFILE],
)
profile.add_command(propose)
profile.add_command(rollback)


@profile.command("diff", epilog=examples("cockpit profile diff 1 2"))
@click.argument("before", type=click.IntRange(min=1))
@click.argument("after", type=click.IntRange(min=1))
@PROFILE
@AS_JSON
def show_diff(before: int, after: int, profile_id: str, as_json: bool) -> None:
    """Compare two versions of a profile."""
    changes = profile_differences(
        _chosen(profile_id, before).profile, _chosen(profile_id, after).profile
    )
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


def _chosen(profile_id: str, version: int | None) -> ProfileRow:
    """Return a version, the current one for None. Before the first session the shipped profile is version 1.

    Raises :class:`NotFound`.
    """
    shipped = _first()
    name = profile_id or shipped.profile_id

    def read(connection: sqlite3.Connection) -> ProfileRow | None:
        if not select_versions(connection, name):
            return None
        if version is not None:
            return ProfileRow(load(connection, name, version))
        running = profile_changes.running_body(connection, name)
        return ProfileRow(load_current(connection, name), running)

    chosen = read_store(read) if find_project().database.exists() else None
    if chosen is not None:
        return chosen
    if name != shipped.profile_id or version not in (None, 1):
        raise NotFound(
            f"There is no profile {name} with that version. `cockpit profile` lists its versions."
        )
    return ProfileRow(shipped)


def _first() -> Profile:
    return initial_profile(load_project_settings(find_project()).runtime.token_budget)


def _weights(rule: Rule) -> tuple[int, int, int]:
    return (rule.priority_weight, rule.novelty_weight, rule.risk_weight)


def _lines(name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    if before is None or after is None:
        return [f"{name}: {'added' if before is None else 'removed'}"]
    return [
        f"{name} {field}: {before[field]} → {after[field]}"
        for field in before
        if before[field] != after[field]
    ]
