"""``cockpit profile``: show, compare and export orientation profiles."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import WrongUse, find_project, load_project_settings, read_store
from cockpit.commands.packets.profile_change import COMMANDS
from cockpit.commands.terminal import format_table, json_text, say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.orient.profile_changes.change_preview import fetch_bound
from cockpit.orient.profile_changes.profile_json import profile_differences, profile_document
from cockpit.store.context import profile_changes
from cockpit.store.context.profile_model import WEIGHT_ONE, Profile, Rule
from cockpit.store.context.profiles import initial_profile, load, load_current, select_versions

VERSION = click.option(
    "--version", type=click.IntRange(min=1), help="Use this version. Default: the current one."
)
NAMED = click.argument("profile_id", default="")


@click.group(
    short_help="Manage orientation profiles.",
    epilog=examples(
        "cockpit profile show", "cockpit profile propose change.json", "cockpit profile rollback"
    ),
)
def profile() -> None:
    """Manage orientation profiles.

    A profile sets how many tokens each band of a packet gets and how its facts are ranked. Without
    PROFILE_ID a command uses the profile of this project's token budget.
    """


for _command in COMMANDS:
    profile.add_command(_command)


@profile.command("show", epilog=examples("cockpit profile show --version 2"))
@NAMED
@VERSION
@AS_JSON
def show_profile(profile_id: str, version: int | None, as_json: bool) -> None:
    """Show a profile.

    Before the first session it shows the profile that the session will get.
    """
    chosen, running = _chosen(profile_id, version)
    if as_json:
        show_json({**profile_document(chosen), "adaptation": running})
        return
    show(
        f"{chosen.profile_id} version {chosen.version} · {chosen.status} · {chosen.ranking}"
        f" · {chosen.total_token_budget:,} tokens"
        f"\nby {chosen.updated_by}{f' at {chosen.updated_at}' if chosen.updated_at else ''}"
        f" · digest {chosen.digest[:12]}"
    )
    if running is not None:
        show(
            f"temporary change: {running['waves_left']} of"
            f" {pluralize(running['horizon_waves'], 'wave')} left, then back to"
            f" version {running['base_version']} ({running['proposal_id']})"
        )
    show("")
    show(
        format_table(
            ("BAND", "FLOOR", "TARGET", "CEILING"),
            [
                (
                    band.name,
                    *(f"{n:,}" for n in (band.min_tokens, band.target_tokens)),
                    f"{band.max_tokens:,}",
                )
                for band in chosen.bands
            ],
        )
    )
    show("")
    show(
        format_table(
            ("RULE", "SOURCE", "PRIORITY", "NOVELTY", "RISK", "HALF-LIFE", ""),
            [
                (
                    rule.rule_id,
                    rule.source_type,
                    *(f"{n / WEIGHT_ONE:g}" for n in _weights(rule)),
                    f"{rule.recency_half_life} waves" if rule.recency_half_life else "–",
                    "" if rule.enabled else "off",
                )
                for rule in chosen.rules
            ],
        )
    )
    fetching = [rule for rule in chosen.rules if rule.enabled and rule.fetch]
    if fetching:
        show("\nSessions read without asking:")
    for rule in fetching:
        show(f"  {rule.rule_id}: {', '.join(rule.fetch)} ({fetch_bound(rule)})")


@profile.command("history", epilog=examples("cockpit profile history"))
@NAMED
@AS_JSON
def show_history(profile_id: str, as_json: bool) -> None:
    """List the versions of a profile, oldest first."""
    name = profile_id or _first().profile_id
    versions: tuple[Profile, ...] = read_store(
        lambda connection: select_versions(connection, name), empty=()
    )
    show_list(
        as_json,
        [profile_document(version) for version in versions],
        ("VERSION", "STATUS", "BUDGET", "RANKING", "BY", "AT", "DIGEST"),
        [
            (
                str(version.version),
                version.status,
                f"{version.total_token_budget:,}",
                version.ranking,
                version.updated_by,
                version.updated_at[:16].replace("T", " "),
                version.digest[:12],
            )
            for version in versions
        ],
        f"No profile {name} yet. The first session creates it.",
    )


@profile.command("diff", epilog=examples("cockpit profile diff 1 2"))
@click.argument("before", type=click.IntRange(min=1))
@click.argument("after", type=click.IntRange(min=1))
@click.option("--profile", "profile_id", default="", metavar="ID", help="Use this profile.")
@AS_JSON
def show_diff(before: int, after: int, profile_id: str, as_json: bool) -> None:
    """Compare two versions of a profile."""
    changes = profile_differences(_chosen(profile_id, before)[0], _chosen(profile_id, after)[0])
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


@profile.command("export", epilog=examples("cockpit profile export --output profile.json"))
@NAMED
@VERSION
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file. Default: standard output.",
)
def export(profile_id: str, version: int | None, output: Path | None) -> None:
    """Export a profile as JSON.

    `cockpit profile import` reads it.
    """
    chosen = _chosen(profile_id, version)[0]
    if output is None:
        show_json(profile_document(chosen))
        return
    try:
        output.write_text(json_text(profile_document(chosen), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{output} cannot be written: {error.strerror or error}.") from error
    say(f"Wrote {chosen.profile_id} version {chosen.version} to {output}")


@profile.command("changes", epilog=examples("cockpit profile changes"))
@AS_JSON
def show_changes(as_json: bool) -> None:
    """List proposed profile changes, newest first."""
    rows: list[profile_changes.ChangeProposal] = read_store(
        profile_changes.select_changes, empty=[]
    )
    show_list(
        as_json,
        [
            {
                **profile_changes.detail(change),
                "status": change.status,
                "code": change.rejection_code,
                "reason": change.rejection_reason,
                "approved_by": change.approved_by,
                "version": change.applied_version,
                "created_at": change.created_at,
                "decided_at": change.decided_at,
                "payload": json.loads(change.payload),
            }
            for change in rows
        ],
        ("CHANGE", "STATUS", "PROFILE", "FROM", "WAVES", "BECAME", "BY", "WHY"),
        [
            (
                change.proposal_id,
                change.status,
                change.profile_id,
                str(change.base_version),
                str(change.effective_waves) if change.effective_waves else "–",
                str(change.applied_version) if change.applied_version else "–",
                change.requested_by,
                change.rejection_code or "",
            )
            for change in rows
        ],
        "No profile changes yet. `cockpit profile propose FILE` proposes one.",
    )


def _chosen(profile_id: str, version: int | None) -> tuple[Profile, dict[str, Any] | None]:
    """Return the chosen profile, and for the current version its temporary change, if one is active.

    Before the first session the shipped profile is version 1. Raises :class:`NotFound`.
    """
    shipped = _first()
    name = profile_id or shipped.profile_id

    def read(connection: sqlite3.Connection) -> tuple[Profile, dict[str, Any] | None] | None:
        if not select_versions(connection, name):
            return None
        if version is not None:
            return load(connection, name, version), None
        return load_current(connection, name), profile_changes.running_body(connection, name)

    chosen = read_store(read) if find_project().database.exists() else None
    if chosen is not None:
        return chosen
    if name != shipped.profile_id or version not in (None, 1):
        raise NotFound(
            f"There is no profile {name} with that version. See `cockpit profile history`."
        )
    return shipped, None


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
