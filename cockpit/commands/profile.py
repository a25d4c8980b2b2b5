"""``cockpit profile``: how the token budget is shared out, and how that changed."""

from __future__ import annotations

import sqlite3
from typing import Any

import click

from cockpit.commands.project import here, look, settings_of
from cockpit.commands.terminal import listing, show, show_json, table
from cockpit.store.attention import WEIGHT_ONE, Profile, Rule, scaled, shipped
from cockpit.store.errors import NotFound
from cockpit.store.profiles import current, history, load

NAME = "default"


@click.group(short_help="The orientation profile and its versions.")
def profile() -> None:
    """Profiles say how many tokens each band gets and what is worth them."""


@profile.command("show")
@click.argument("profile_id", default=NAME)
@click.option("--version", type=click.IntRange(min=1), help="That version, not the current one.")
@click.option("--json", "as_json", is_flag=True, help="The profile as JSON.")
def show_profile(profile_id: str, version: int | None, as_json: bool) -> None:
    """Show PROFILE_ID; before any session that is the one a first session would get."""
    found: tuple[Profile, ...] = look(
        lambda connection: _find(connection, profile_id, version), empty=()
    )
    chosen = found[0] if found else _first(profile_id, version)
    if as_json:
        show_json(_record(chosen))
        return
    show(
        f"{chosen.profile_id} version {chosen.version} · {chosen.status} · {chosen.ranking}"
        f" · {chosen.total_token_budget:,} tokens"
        f"\nby {chosen.updated_by}{f' at {chosen.updated_at}' if chosen.updated_at else ''}"
        f" · digest {chosen.digest[:12]}\n"
    )
    show(
        table(
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
        table(
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


@profile.command("history")
@click.argument("profile_id", default=NAME)
@click.option("--json", "as_json", is_flag=True, help="A JSON list of whole profiles.")
def show_history(profile_id: str, as_json: bool) -> None:
    """List every version of PROFILE_ID, oldest first."""
    found: tuple[Profile, ...] = look(lambda connection: history(connection, profile_id), empty=())
    listing(
        as_json,
        [_record(version) for version in found],
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
            for version in found
        ],
        f"There is no profile {profile_id} here yet; the first session makes it.",
    )


def _find(
    connection: sqlite3.Connection, profile_id: str, version: int | None
) -> tuple[Profile, ...]:
    """The stored profile, or none while nothing of that id was stored."""
    if not history(connection, profile_id):
        return ()
    if version is None:
        return (current(connection, profile_id),)
    return (load(connection, profile_id, version),)


def _first(profile_id: str, version: int | None) -> Profile:
    if profile_id != NAME or version not in (None, 1):
        raise NotFound(f"There is no profile {profile_id} here; `cockpit profile history` lists.")
    return scaled(shipped(), settings_of(here()).runtime.token_budget)


def _weights(rule: Rule) -> tuple[int, int, int]:
    return (rule.priority_weight, rule.novelty_weight, rule.risk_weight)


def _record(found: Profile) -> dict[str, Any]:
    return {
        "profile_id": found.profile_id,
        "version": found.version,
        "status": found.status,
        "ranking": found.ranking,
        "total_token_budget": found.total_token_budget,
        "horizon_waves": found.horizon_waves,
        "updated_by": found.updated_by,
        "updated_at": found.updated_at,
        "digest": found.digest,
        "bands": [
            {
                "band": band.name,
                "min": band.min_tokens,
                "target": band.target_tokens,
                "max": band.max_tokens,
            }
            for band in found.bands
        ],
        "rules": [
            {
                "rule_id": rule.rule_id,
                "source_type": rule.source_type,
                "priority_weight": rule.priority_weight / WEIGHT_ONE,
                "novelty_weight": rule.novelty_weight / WEIGHT_ONE,
                "risk_weight": rule.risk_weight / WEIGHT_ONE,
                "recency_half_life": rule.recency_half_life,
                "enabled": rule.enabled,
            }
            for rule in found.rules
        ],
    }
