"""Trust rules on the screen: read with their evidence, accepted with a second key, and the short card."""

from __future__ import annotations

import pytest
from app_scenes import Scene
from app_world import look, on_screen, screen_of, settled, status_of, until
from loop.trust.trust_world import TrustWorld
from msgspec.structs import replace

from cockpit.app.application import CockpitApp
from cockpit.app.screens.lists.collection_screen import CollectionScreen
from cockpit.loop.runtime_settings import TrustSettings
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


async def opened(pilot) -> CollectionScreen:
    await settled(pilot)
    screen_of(pilot).act("trust")
    await until(pilot, lambda: getattr(pilot.app.screen, "PANE", "") == "trust")
    await until(pilot, lambda: len(pilot.app.screen.body.rows) > 0)
    await settled(pilot)
    return pilot.app.screen


def status(world: TrustWorld, rule_id: str) -> str:
    rule = world.store.read_now(lambda connection: trust_rules.find(connection, rule_id))
    return "" if rule is None else rule.status


async def test_a_rule_is_accepted_with_two_keys_suspended_and_revoked(
    still, world, picture
) -> None:
    world.accept(world.offers()[0])
    world.read(world.begin(), "file:tests/test_z.py")
    world.run(world.begin(), "pytest", "-q", "tests/test_z.py")
    app = CockpitApp(still)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await opened(pilot)
        await picture(pilot, "rules")
        await pilot.press("home" if not status(world, screen.rows[0].rule_id) else "end")
        rule_id = screen.row.rule_id
        await pilot.press("enter")
        await pilot.press("enter")
        assert status(world, rule_id) == "", "Enter alone accepts nothing"
        await pilot.press("enter")
        await pilot.press("n")
        await pilot.press("y")
        assert status(world, rule_id) == "", "any other key withdraws the question"
        await pilot.press("enter", "y")
        await until(pilot, lambda: status(world, rule_id) == "active")
        await until(pilot, lambda: screen.row is not None and screen.row.status == "active")
        await pilot.press("s")
        await until(pilot, lambda: status(world, rule_id) == "suspended")
        await until(pilot, lambda: screen.row is not None and screen.row.status == "suspended")
        await pilot.press("x", "y")
        await until(pilot, lambda: status(world, rule_id) == "revoked")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


REMARK = "LGTM. One remark.\n\nName the helper after what it does."


def card(still, rule_id: str, body: str = REMARK, name: str = "p-card") -> Scene:
    scene = Scene(still.store, still.place.root).begin(title="review pr 24")
    return scene.propose(
        name,
        title="gh pr review 24 --approve",
        kind="github",
        risk="high",
        fields=(("command", "gh pr review"), ("number", "24"), ("approve", "yes")),
        body=body,
        notes=("A hidden comment with this action's key is added at the end of the body.",),
        card={"rule_id": rule_id, "until": ""},
    )


def accepted(world: TrustWorld) -> str:
    """Accept the first offer; returns its rule."""
    rule_id = world.offers()[0]
    world.accept(rule_id)
    return rule_id


def texts(panel) -> str:
    """All that the pane draws, whether it is scrolled out or not."""
    scroll = panel.query_one("#proposal-scroll")
    return "\n".join(
        "".join(segment.text for segment in strip)
        for part in scroll.query("*")
        for strip in part.render_lines(part.size.region)
    )


async def test_a_short_card_shows_all_that_is_posted_takes_one_key_and_ends_with_its_rule(
    still, world
) -> None:
    """A rule that is suspended while its card waits gives the card its second key back."""
    rule_id = accepted(world)
    scene, other = card(still, rule_id), card(still, rule_id, name="p-other")
    async with on_screen(still, scene.session_id, size=(140, 36), ready=look) as (pilot, app, _):
        assert not app.main.queue.front.second_key
        panel = app.main.panes.proposals
        panel.focus()
        await until(pilot, lambda: "Name the helper after what it does." in texts(panel))
        shown = texts(panel)
        for text in ("approve yes", "LGTM. One remark.", "hidden comment", "Looks good"):
            assert text in shown
        assert len(panel.query("Fields")) == 0
        await pilot.press("v")
        await until(pilot, lambda: len(panel.query("Fields")) == 1)
        app.main.prompt.focus()
        await look(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: status_of(still, "p-card") == "approved")

        app.attach(other.session_id)
        await look(pilot)
        assert not app.main.queue.front.second_key
        world.suspend(rule_id)
        await until(pilot, lambda: app.main.queue.front.second_key)
        await look(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert status_of(still, "p-other") == "pending"
