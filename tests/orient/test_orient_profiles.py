"""Profiles: what makes one sound, how one scales, and how versions follow each other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from orient_world import World

from cockpit.core.errors import NotFound
from cockpit.store.context import profiles
from cockpit.store.context.profile_model import (
    Band,
    Predicate,
    Profile,
    ProfileInvalid,
    Rule,
    check,
    parse,
)
from cockpit.store.db.connection import connect

SHIPPED = profiles.load_shipped()


def with_band(name: str, *room: int) -> Profile:
    return replace(
        SHIPPED,
        bands=tuple(Band(name, *room) if band.name == name else band for band in SHIPPED.bands),
    )


def with_rule(**known: object) -> Profile:
    made = replace(Rule("r", "file", Predicate(), 1, 1, 1, 1), **known)  # type: ignore[arg-type]
    return replace(SHIPPED, rules=(made,))


def test_the_shipped_profile_has_the_numbers_of_the_design() -> None:
    assert [(b.name, b.min_tokens, b.target_tokens, b.max_tokens) for b in SHIPPED.bands] == [
        ("identity", 12_000, 18_000, 25_000), ("objectives", 15_000, 25_000, 40_000),
        ("capabilities", 10_000, 15_000, 25_000), ("situational", 45_000, 75_000, 110_000),
        ("exploration", 5_000, 12_000, 25_000), ("reserve", 3_000, 5_000, 8_000),
    ]  # fmt: skip
    assert (SHIPPED.total_token_budget, SHIPPED.ranking) == (150_000, "utility")
    assert check(SHIPPED) is SHIPPED


@pytest.mark.parametrize(
    ("unsound", "words"),
    [
        (replace(SHIPPED, total_token_budget=89_999), "90,000 tokens, more than the budget of"),
        (replace(SHIPPED, total_token_budget=0), "not between 1 and"),
        (replace(SHIPPED, bands=SHIPPED.bands[1:]), "the bands must be"),
        (replace(SHIPPED, ranking="luck"), "'luck'"),  # type: ignore[arg-type]  # from a file
        (with_band("identity", 5, 4, 9), "5, 4, 9"),
        (with_band("identity", -1, 4, 9), "-1, 4, 9"),
        (with_rule(priority_weight=4_001), "priority_weight 4001"),
        (with_rule(novelty_weight=-1), "novelty_weight -1"),
        (with_rule(predicate=Predicate(band="cellar")), "'cellar'"),
        (replace(SHIPPED, rules=SHIPPED.rules[:1] * 2), "twice"),
    ],
)
def test_an_unsound_profile_is_refused_with_its_numbers(unsound: Profile, words: str) -> None:
    with pytest.raises(ProfileInvalid) as caught:
        check(unsound)
    assert words in str(caught.value)


def test_scaling_keeps_every_proportion_and_the_floors_within() -> None:
    for budget in (1, 7, 37_777, 149_999, 2_000_000):
        small = profiles.scale(SHIPPED, budget)
        assert small.total_token_budget == budget
        for band, whole in zip(small.bands, SHIPPED.bands, strict=True):
            assert band.min_tokens == whole.min_tokens * budget // 150_000
            assert band.max_tokens == whole.max_tokens * budget // 150_000
    for budget in (0, -5):
        with pytest.raises(ProfileInvalid, match="not between"):
            profiles.scale(SHIPPED, budget)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budget = ", "cannot be read"),
        ("budget = 5\nrules = []\n[bands]\n", "missing: identity"),
        ("budget = 5\nrules = []\nextra = 1\n[bands]\n", "extra"),
        ("budget = 5\nbands = {}\nrules = [{source = 'a', priority = nan}]\n", "priority"),
        ("budget = 5\nbands = {}\nrules = [{source = 'a', priority = 1e300}]\n", "priority"),
        ("budget = 5\nbands = {}\nrules = [{source = 'a', when = {path = 'x'}}]\n", "path"),
    ],
)
def test_a_file_that_is_no_profile_says_where(text: str, words: str) -> None:
    with pytest.raises(ProfileInvalid) as caught:
        parse(text, "mine")
    assert words in str(caught.value)


def test_a_version_comes_back_as_it_was_written(world: World) -> None:
    stored = world.store.read_now(lambda c: profiles.load_current(c, "default"))
    assert stored.digest == SHIPPED.digest
    assert stored == world.profile
    narrow = with_rule(
        predicate=Predicate("situational", "file:src/", 5, 3), priority_weight=1_234,
        novelty_weight=567, risk_weight=89, recency_half_life=11, enabled=False,
    )  # fmt: skip
    narrow = replace(narrow, profile_id="narrow", ranking="density", duration_waves=4)
    written = world.store.write_now(lambda tx: profiles.insert_version(tx, narrow))
    assert world.store.read_now(lambda c: profiles.load(c, "narrow", 1)) == written


def test_a_new_version_retires_the_one_before_and_keeps_it(world: World) -> None:
    second = replace(world.profile, version=2, duration_waves=3, updated_by="person")
    world.store.write_now(lambda tx: profiles.insert_version(tx, second))
    past = world.store.read_now(lambda c: profiles.select_versions(c, "default"))
    assert [(p.version, p.status) for p in past] == [(1, "retired"), (2, "active")]
    assert world.store.read_now(lambda c: profiles.load_current(c, "default")).version == 2
    for version in (1, 2, 4):
        with pytest.raises(ProfileInvalid, match="the next version is 3"):
            world.store.write_now(
                lambda tx, v=version: profiles.insert_version(tx, replace(second, version=v))
            )


def test_the_default_is_made_once_for_each_budget(world: World) -> None:
    for _ in range(2):
        small = world.store.write_now(lambda tx: profiles.ensure_default(tx, 60_000))
        assert (small.profile_id, small.version) == ("default-60000", 1)
        assert world.store.write_now(lambda tx: profiles.ensure_default(tx, 150_000)).version == 1


def change_rule(world: World, values: str) -> None:
    connection = connect(world.store.path)
    connection.execute(f"UPDATE attention_rules SET {values} WHERE rule_id='log'")
    connection.close()


def test_a_new_shipped_profile_follows_up_an_unchanged_one_only(world: World) -> None:
    change_rule(world, "priority_weight=0.1")
    followed = world.store.write_now(lambda tx: profiles.ensure_default(tx, 150_000))
    assert (followed.version, followed.digest) == (2, SHIPPED.digest)
    mine = replace(followed, version=3, duration_waves=9, updated_by="person")
    world.store.write_now(lambda tx: profiles.insert_version(tx, mine))
    change_rule(world, "priority_weight=0.1")
    assert world.store.write_now(lambda tx: profiles.ensure_default(tx, 150_000)).version == 3


def test_a_rule_that_cannot_be_read_closes_the_profile_and_an_unknown_one_is_not_found(world):
    for damage in (
        """predicate_json='{"min_utility":"x"}'""", "predicate_json='{'", "predicate_json='[]'",
        "priority_weight=9e999", "novelty_weight=-1",
    ):  # fmt: skip
        change_rule(world, damage)
        with pytest.raises(ProfileInvalid, match="log"):
            world.store.read_now(lambda c: profiles.load_current(c, "default"))
    with pytest.raises(NotFound):
        world.store.read_now(lambda c: profiles.load_current(c, "nobody"))
    with pytest.raises(NotFound):
        world.store.read_now(lambda c: profiles.load(c, "default", 9))
