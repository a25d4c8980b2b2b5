"""External agents' permissions learn as the built-in agent's requests do, under the same coverage."""

from __future__ import annotations

import asyncio
from pathlib import Path

import permission_world
import pytest
from msgspec.structs import replace
from permission_world import World, bash, begin_session, edit

from cockpit.loop.permissions.permission_body import describe_request, find_place
from cockpit.loop.permissions.permission_rules import add_rule
from cockpit.loop.runtime_settings import TrustSettings
from cockpit.loop.trust.decide_rules import decide_rule
from cockpit.loop.trust.list_rules import ListedRule, list_rules


@pytest.fixture(autouse=True)
def few_approvals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = replace(
        permission_world.SETTINGS, trust=TrustSettings(2, 2, 90), user_dir=tmp_path / "user"
    )
    monkeypatch.setattr(permission_world, "SETTINGS", settings)


def rules(world: World) -> dict[str, ListedRule]:
    listing = world.store.read_now(
        lambda connection: list_rules(connection, world.store.clock, permission_world.SETTINGS)
    )
    return {rule.rule_id: rule for rule in listing.rules}


def decide(world: World, verb: str, rule_id: str) -> None:
    world.store.write_now(lambda tx: decide_rule(tx, permission_world.SETTINGS, verb, rule_id))


def session(world: World, policy: str) -> str:
    return world.store.write_now(lambda tx: begin_session(tx, world.root, policy))


async def learn(world: World, make: object) -> str:
    """Approve a request in two sessions, and accept what is offered; returns the rule's id."""
    for number in range(2):
        own = session(world, "ask")
        await world.answered(make(number), "approved", session_id=own)  # type: ignore[operator]
        world.store.clock.advance(1)  # type: ignore[attr-defined]
    (rule_id,) = [each.rule_id for each in rules(world).values() if each.status == "offered"]
    decide(world, "accept", rule_id)
    return rule_id


async def test_an_edit_is_learned_by_its_folder(world: World) -> None:
    (world.root / "src").mkdir()
    for number in range(4):
        (world.root / "src" / f"m{number}.py").write_text("x = 1\n")

    def make(number: int):
        return edit(world.root / "src" / f"m{number}.py", "x = 1", "x = 2")

    rule_id = await learn(world, make)
    assert rules(world)[rule_id].says == "claude: edit Edit src/*.py"
    trusted = session(world, "trusted")
    answer = await world.ask(make(2), policy="trusted", session_id=trusted)
    assert (answer.allowed, answer.by) == (True, f"trust:{rule_id}")
    asked, _ = await world.answered(make(3), "rejected", session_id=session(world, "ask"))
    assert not asked.allowed
    assert rules(world)[rule_id].status == "suspended"
    (row,) = world.rows("trust.used")
    assert row.actor == f"trust:{rule_id}"


async def test_a_command_is_learned_and_what_hides_behind_it_is_asked(world: World) -> None:
    rule_id = await learn(world, lambda number: bash("make check", timeout=number + 1))
    trusted = session(world, "trusted")
    answer = await world.ask(bash("make check"), policy="trusted", session_id=trusted)
    assert answer.by == f"trust:{rule_id}"
    for command in ("make check; id", "X=1 make check", "make  check", "make check CC=evil"):
        answer, _ = await world.answered(
            bash(command), "rejected", policy="trusted", session_id=trusted
        )
        assert answer.by == "person", command


async def test_rules_of_the_file_keep_working_and_are_listed_counted_and_suspended_with_the_others(
    world: World,
) -> None:
    user_dir = permission_world.SETTINGS.user_dir
    exact = describe_request(bash("make deploy"), find_place(world.root)).rule
    assert exact is not None
    add_rule(user_dir, exact)
    answer = await world.ask(bash(exact.what))
    assert answer.by == f"trust:{exact.rule_id}", "under every policy, as before"
    listed = rules(world)[exact.rule_id]
    assert (listed.stored_in, listed.uses, listed.status) == ("permissions.toml", 1, "active")
    decide(world, "suspend", exact.rule_id)
    asking = asyncio.create_task(world.ask(bash(exact.what)))
    (proposal,) = await world.pending()
    world.decide(proposal, "rejected")
    assert not (await asking).allowed
    decide(world, "accept", exact.rule_id)
    assert (await world.ask(bash(exact.what))).allowed
    decide(world, "revoke", exact.rule_id)
    assert (
        exact.rule_id not in rules(world)
        and "deploy" not in (user_dir / "permissions.toml").read_text()
    )
