"""Stored versions of every profile.

A version is immutable: a change becomes a new version of the same ``profile_id``, and a wave pins
the version that it is compiled with. Weights are REAL in the tables and thousandths in memory.
Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import NotFound
from cockpit.core.read_record import decode_json
from cockpit.store.context.packet_epoch import CachePrices
from cockpit.store.context.profile_model import (
    BANDS,
    SHIPPED,
    WEIGHT_ONE,
    Band,
    Profile,
    ProfileInvalid,
    Rule,
    check,
    load_shipped,
    parse_predicate,
    predicate_body,
    scale,
    to_thousandths,
)
from cockpit.store.db.transaction import Tx

_RuleRow = tuple[str, str, str, float, float, float, int, int, str, int]


def initial_profile(total_budget: int) -> Profile:
    """Return the shipped profile scaled to a budget, which a first session there gets."""
    profile = load_shipped()
    if total_budget == profile.total_token_budget:
        return profile
    return replace(scale(profile, total_budget), profile_id=f"default-{total_budget}")


def ensure_default(tx: Tx, total_budget: int) -> Profile:
    """Return the current default profile for a budget, creating it where there is none.

    Each budget has its own profile id (``default``, ``default-60000``), so that processes with
    different settings do not replace each other's version. A shipped version that was not changed
    is replaced when the program ships a newer one.
    """
    profile = initial_profile(total_budget)
    newest = _newest(tx.connection, profile.profile_id)
    if newest is not None and (newest.updated_by != SHIPPED or newest.digest == profile.digest):
        return load_current(tx.connection, profile.profile_id)
    return insert_version(tx, replace(profile, version=newest.version + 1 if newest else 1))


def insert_version(tx: Tx, profile: Profile) -> Profile:
    """Store the next version; an active one retires the version that was active before.

    Versions of a profile are 1, 2, 3, … without gaps: any other number raises
    :class:`ProfileInvalid`, as does an invalid profile. Returns it as stored: rules sorted by id, with
    the time of the change.
    """
    check(profile)
    newest = _newest(tx.connection, profile.profile_id)
    expected = newest.version + 1 if newest else 1
    if profile.version != expected:
        raise ProfileInvalid(
            f"Profile {profile.profile_id!r}: the next version is {expected}, not"
            f" {profile.version}. It changed in the meantime; start from the current version."
        )
    rules = tuple(sorted(profile.rules, key=lambda rule: rule.rule_id))
    stored = replace(profile, rules=rules, updated_at=tx.now())
    if stored.status == "active":
        tx.execute(
            "UPDATE orientation_profiles SET status='retired'"
            " WHERE profile_id=? AND status='active'",
            (stored.profile_id,),
        )
    key = (stored.profile_id, stored.version)
    tx.execute(
        "INSERT INTO orientation_profiles(profile_id, version, total_token_budget, horizon_waves,"
        " status, ranking, updated_by, updated_at, cache_json) VALUES (?,?,?,?,?,?,?,?,?)",
        (
            *key,
            stored.total_token_budget,
            stored.duration_waves,
            stored.status,
            stored.ranking,
            stored.updated_by,
            stored.updated_at,
            canonical_json(stored.cache.body()),
        ),
    )
    tx.connection.executemany(
        "INSERT INTO orientation_budget_bands VALUES (?,?,?,?,?,?)",
        [
            (*key, band.name, band.min_tokens, band.target_tokens, band.max_tokens)
            for band in stored.bands
        ],
    )
    tx.connection.executemany(
        "INSERT INTO attention_rules VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [
            (
                rule.rule_id,
                *key,
                rule.source_type,
                canonical_json(predicate_body(rule.predicate)),
                rule.priority_weight / WEIGHT_ONE,
                rule.novelty_weight / WEIGHT_ONE,
                rule.risk_weight / WEIGHT_ONE,
                rule.recency_half_life,
                int(rule.enabled),
                stored.updated_at,
                canonical_json(list(rule.fetch)),
                rule.quota,
            )
            for rule in stored.rules
        ],
    )
    return stored


def load_current(connection: sqlite3.Connection, profile_id: str) -> Profile:
    """Read the active version. Raises :class:`~cockpit.core.errors.NotFound`."""
    return load(connection, profile_id, find_current_version(connection, profile_id))


def select_current(connection: sqlite3.Connection) -> tuple[Profile, ...]:
    """Read the active version of each profile, by name; at most 100."""
    rows = connection.execute(
        "SELECT profile_id, version FROM orientation_profiles WHERE status='active'"
        " ORDER BY profile_id LIMIT 100"
    ).fetchall()
    return tuple(load(connection, profile_id, version) for profile_id, version in rows)


def find_current_version(connection: sqlite3.Connection, profile_id: str) -> int:
    """Return the active version. Raises :class:`~cockpit.core.errors.NotFound`."""
    row = connection.execute(
        "SELECT version FROM orientation_profiles WHERE profile_id=? AND status='active'",
        (profile_id,),
    ).fetchone()
    if row is None:
        raise NotFound(f"No profile {profile_id!r} is active.")
    return int(row[0])


def load(connection: sqlite3.Connection, profile_id: str, version: int) -> Profile:
    """Read one version, whatever its status. Raises :class:`~cockpit.core.errors.NotFound`."""
    row = connection.execute(
        "SELECT total_token_budget, horizon_waves, status, ranking, updated_by, updated_at,"
        " cache_json FROM orientation_profiles WHERE profile_id=? AND version=?",
        (profile_id, version),
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no profile {profile_id!r} version {version}.")
    rooms = connection.execute(
        "SELECT band, min_tokens, target_tokens, max_tokens FROM orientation_budget_bands"
        " WHERE profile_id=? AND profile_version=?",
        (profile_id, version),
    )
    rules = connection.execute(
        "SELECT rule_id, source_type, predicate_json, priority_weight, novelty_weight, risk_weight,"
        " recency_half_life, enabled, fetch_json, quota FROM attention_rules"
        " WHERE profile_id=? AND profile_version=? ORDER BY rule_id",
        (profile_id, version),
    )
    return _profile(profile_id, version, row, tuple(rooms), tuple(rules))


@lru_cache(maxsize=16)
def _profile(
    profile_id: str,
    version: int,
    row: tuple[Any, ...],
    rooms: tuple[tuple[str, int, int, int], ...],
    rules: tuple[_RuleRow, ...],
) -> Profile:
    """Make the checked profile of these rows; the same rows give the same object."""
    budget, duration, status, ranking, updated_by, updated_at, cache = row
    bands = {name: Band(name, *room) for name, *room in rooms}
    return check(
        Profile(
            profile_id,
            version,
            budget,
            duration,
            status,
            ranking,
            tuple(bands[name] for name in BANDS if name in bands),
            tuple(_rule(rule) for rule in rules),
            updated_by,
            updated_at,
            _cache_prices(profile_id, cache),
        )
    )


def _cache_prices(profile_id: str, text: str) -> CachePrices:
    try:
        return decode_json(text, CachePrices)
    except msgspec.ValidationError as error:
        raise ProfileInvalid(
            f"Profile {profile_id!r}: its cache prices cannot be read: {error}."
        ) from error


def _rule(row: _RuleRow) -> Rule:
    rule_id, source_type, predicate, priority, novelty, risk, half_life, enabled, fetch, quota = row
    try:
        return Rule(
            rule_id,
            source_type,
            parse_predicate(msgspec.json.decode(predicate)),
            to_thousandths(priority),
            to_thousandths(novelty),
            to_thousandths(risk),
            half_life,
            bool(enabled),
            decode_json(fetch, tuple[str, ...]),
            quota,
        )
    except (ValueError, OverflowError) as error:
        raise ProfileInvalid(f"Rule {rule_id!r} cannot be read: {error}.") from error


def select_versions(connection: sqlite3.Connection, profile_id: str) -> tuple[Profile, ...]:
    """Read every version, oldest first; empty for an unknown profile."""
    rows = connection.execute(
        "SELECT version FROM orientation_profiles WHERE profile_id=? ORDER BY version",
        (profile_id,),
    ).fetchall()
    return tuple(load(connection, profile_id, version) for (version,) in rows)


def _newest(connection: sqlite3.Connection, profile_id: str) -> Profile | None:
    (version,) = connection.execute(
        "SELECT max(version) FROM orientation_profiles WHERE profile_id=?", (profile_id,)
    ).fetchone()
    return None if version is None else load(connection, profile_id, version)
