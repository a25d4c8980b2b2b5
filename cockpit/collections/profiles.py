"""The versions of an orientation profile: how many tokens each band gets, and how facts are ranked.

Specified in ``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from cockpit.collections.collection import Collection, Field, Part, View
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.orient.profile_changes.profile_json import profile_document
from cockpit.store.context import profile_changes
from cockpit.store.context.profile_model import WEIGHT_ONE, Profile, Rule
from cockpit.store.context.profiles import initial_profile, load, load_current, select_versions


class ProfileRow(Struct, frozen=True):
    """A version of a profile, and of the current one the temporary change that is active."""

    profile: Profile
    running: dict[str, Any] | None = None


def _read(view: View, profile_id: str) -> Sequence[ProfileRow]:
    name = profile_id or _shipped(view).profile_id
    versions = () if view.connection is None else select_versions(view.connection, name)
    return [ProfileRow(version) for version in versions]


def find_version(view: View, name: str, profile_id: str = "") -> ProfileRow:
    """Return a version, or the one that is ``current``. Raises ``NotFound``.

    Before the first session the shipped profile is version 1.
    """
    if name != "current" and not name.isdecimal():
        raise NotFound(f"{name} is no version. Write current, or a number.")
    shipped, connection = _shipped(view), view.connection
    profile_id = profile_id or shipped.profile_id
    if connection is not None and select_versions(connection, profile_id):
        if name != "current":
            return ProfileRow(load(connection, profile_id, int(name)))
        running = profile_changes.running_body(connection, profile_id)
        return ProfileRow(load_current(connection, profile_id), running)
    if profile_id != shipped.profile_id or name not in ("current", "1"):
        raise NotFound(
            f"There is no profile {profile_id} with that version. `cockpit profile` lists its versions."
        )
    return ProfileRow(shipped)


def _shipped(view: View) -> Profile:
    return initial_profile(view.settings.token_budget)


def _word_weights(rule: Rule) -> str:
    weights = (rule.priority_weight, rule.novelty_weight, rule.risk_weight)
    names = ("priority", "novelty", "risk")
    words = [f"{name} {each / WEIGHT_ONE:g}" for name, each in zip(names, weights, strict=True)]
    words += [f"half-life {rule.recency_half_life} waves"] if rule.recency_half_life else []
    return ", ".join([*words, *([] if rule.enabled else ["off"])])


def _detail(row: ProfileRow) -> Iterator[Part]:
    from cockpit.orient.profile_changes.change_preview import fetch_bound

    chosen, running = row.profile, row.running
    left = "" if running is None else pluralize(running["horizon_waves"], "wave")
    yield Part(text=f"{chosen.profile_id} version {chosen.version}")
    facts = [
        ("status", chosen.status),
        ("ranking", chosen.ranking),
        ("budget", f"{chosen.total_token_budget:,} tokens"),
        ("by", f"{chosen.updated_by}{f' at {chosen.updated_at}' if chosen.updated_at else ''}"),
        ("digest", chosen.digest[:12]),
        (
            "temporary change",
            ""
            if running is None
            else f"{running['waves_left']} of {left} left, then back to version"
            f" {running['base_version']} ({running['proposal_id']})",
        ),
    ]
    yield Part(fields=facts)
    bands = [
        (
            f"{band.name:<12}",
            f"{band.min_tokens:,} to {band.max_tokens:,} tokens, target {band.target_tokens:,}",
        )
        for band in chosen.bands
    ]
    yield Part("bands", bands)
    width = max((len(rule.rule_id) for rule in chosen.rules), default=0)
    rules = [
        (f"{rule.rule_id:<{width}}", f"{rule.source_type}: {_word_weights(rule)}")
        for rule in chosen.rules
    ]
    yield Part("rules", rules)
    fetching = [
        (rule.rule_id, f"{', '.join(rule.fetch)} ({fetch_bound(rule)})")
        for rule in chosen.rules
        if rule.enabled and rule.fetch
    ]
    yield Part("sessions read without asking", fetching)


COLLECTION: Collection[ProfileRow] = Collection(
    name="profiles",
    command="profile",
    title="Profile",
    summary="Manage orientation profiles.",
    help="""Manage orientation profiles; without VERSION the versions of one are listed, the oldest first.

    A profile sets how many tokens each band of a packet gets and how its facts are ranked. VERSION is a
    number, or current; before the first session that is what the session will get. `cockpit profile current
    --json` exports it for `cockpit profile propose`. `cockpit proposals` decides what is proposed.
    """,
    examples=(
        "cockpit profile",
        "cockpit profile current",
        "cockpit profile 2 --since 1",
        "cockpit profile propose change.json",
        "cockpit profile rollback",
    ),
    row="VERSION",
    sample="1",
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
    find=find_version,
    none="No versions yet. The first session creates the profile that `cockpit profile current` shows.",
    detail=lambda row: tuple(_detail(row)),
    body=lambda row: profile_document(row.profile),
    document=lambda row: {**profile_document(row.profile), "adaptation": row.running},
    filters=(
        Field(
            "profile_id",
            "Use this profile. Default: that of this project's token budget.",
            "--profile",
            default="",
            metavar="ID",
            of_row=True,
        ),
    ),
    synonyms="bands weights orientation",
)
