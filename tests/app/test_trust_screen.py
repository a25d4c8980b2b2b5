"""Trust rules on the screen: read with their evidence, accepted with a second key, and the short card."""

from __future__ import annotations

from dataclasses import replace

import pytest
from app_scenes import Scene
from app_world import look, screen_of, settled, until
from loop.trust.trust_world import TrustWorld

from cockpit.app.application import CockpitApp
from cockpit.app.screens.trust_screen import TrustScreen
from cockpit.loop.runtime_settings import TrustSettings
from cockpit.store.sessions import proposals
from cockpit.store.trust import trust_rules

pytestmark = pytest.mark.slow

SMALL = TrustSettings(3, 2, 90)


@pytest.fixture
def world(still, project) -> TrustWorld:
    """A project in which reading tests and running them were approved often enough."""
    settings = replace(still.engine.settings, trust=SMALL)
    still.engine = replace(still.engine, settings=settings)
    world = TrustWorld(still.store, project, settings, count=500)
    world.learn(
        lambda session, number: world.read(session, f"file:tests/test_{number}.py"),
        lambda session, number: world.run(session, "pytest", "-q", f"tests/test_{number}.py"),
    )
    return world


async def opened(pilot) -> TrustScreen:
    await settled(pilot)
    screen_of(pilot).act("trust")
    await until(pilot, lambda: isinstance(pilot.app.screen, TrustScreen))
    await until(pilot, lambda: len(pilot.app.screen.body.rows) > 0)
    await settled(pilot)
    return pilot.app.screen


def status(world: TrustWorld, rule_id: str) -> str:
    rule = world.store.read_now(lambda connection: trust_rules.find(connection, rule_id))
    return "" if rule is None else rule.status


async def test_a_rule_is_accepted_with_two_keys_suspended_and_revoked(still, world) -> None:
    app = CockpitApp(still)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await opened(pilot)
        rule_id = screen.rule.rule_id
        await pilot.press("enter")
        await pilot.press("enter")
        assert status(world, rule_id) == "", "Enter alone accepts nothing"
        await pilot.press("enter")
        await pilot.press("n")
        await pilot.press("y")
        assert status(world, rule_id) == "", "any other key withdraws the question"
        await pilot.press("enter", "y")
        await until(pilot, lambda: status(world, rule_id) == "active")
        await until(pilot, lambda: screen.rule is not None and screen.rule.status == "active")
        await pilot.press("s")
        await until(pilot, lambda: status(world, rule_id) == "suspended")
        await until(pilot, lambda: screen.rule is not None and screen.rule.status == "suspended")
        await pilot.press("x", "y")
        await until(pilot, lambda: status(world, rule_id) == "revoked")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


def card(still) -> Scene:
    scene = Scene(still.store, still.place.root).begin(title="review pr 24")
    body = "LGTM. One remark.\n\nName the helper after what it does."
    return scene.propose(
        "p-card",
        title="gh pr review 24 --approve",
        kind="github",
        risk="high",
        fields=(("command", "gh pr review"), ("number", "24")),
        body=body,
        card={"rule_id": "t-1a2b3c4d5e", "line": "LGTM. One remark. (+2 lines)"},
    )


async def test_a_short_card_takes_one_key_and_unfolds(still) -> None:
    scene = card(still)
    app = CockpitApp(still)
    async with app.run_test(size=(160, 45)) as pilot:
        app.attach(scene.session_id)
        await look(pilot)
        assert not app.main.queue.front.second_key
        panel = app.main.panes.proposals
        panel.focus()
        assert len(panel.query("Fields")) == 0
        await pilot.press("v")
        await until(pilot, lambda: len(panel.query("Fields")) == 1)
        app.main.prompt.focus()
        await look(pilot)
        await pilot.press("enter")
        await until(
            pilot,
            lambda: (
                still.store.read_now(lambda c: proposals.load(c, "p-card")).status == "approved"
            ),
        )


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
def test_picture_of_the_rules(still, world, snap_compare, size) -> None:
    world.accept(world.offers()[0])
    world.read(world.begin(), "file:tests/test_z.py")
    world.run(world.begin(), "pytest", "-q", "tests/test_z.py")
    app = CockpitApp(still)

    async def before(pilot):
        await opened(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)


def test_picture_of_a_short_card(still, snap_compare) -> None:
    scene = card(still)
    app = CockpitApp(still)

    async def before(pilot):
        app.attach(scene.session_id)
        await look(pilot)

    assert snap_compare(app, terminal_size=(120, 36), run_before=before)
