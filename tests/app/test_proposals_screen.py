"""Every proposal that waits in one list: filters, equal ones at once, rules, revisions, going to one."""

from __future__ import annotations

import asyncio

import pytest
from app_scenes import ITEMS, Scene
from app_world import on_screen, screen_of, settled, text_of, until, write
from loop.trust.trust_world import TrustWorld
from msgspec.structs import replace

from cockpit.app.application import CockpitApp
from cockpit.app.screens.lists.proposals_screen import ProposalsScreen
from cockpit.loop.runtime_settings import TrustSettings
from cockpit.loop.views.proposal_listing import read_history
from cockpit.store.sessions import proposals
from cockpit.store.trust import trust_rules

pytestmark = pytest.mark.slow

SMALL = TrustSettings(3, 2, 90)


@pytest.fixture
def world(still, project) -> TrustWorld:
    settings = replace(still.engine.settings, trust=SMALL)
    still.engine = replace(still.engine, settings=settings)
    return TrustWorld(still.store, project, settings, count=500)


def waiting(world: TrustWorld) -> dict[str, list[str]]:
    """Two sessions with five requests; returns ids by what they are."""
    first, second = world.begin(policy="ask"), world.begin(policy="ask")
    return {
        "tests": [
            world.read(first, "file:tests/a.py").proposal_id,
            world.read(second, "file:tests/b.py").proposal_id,
        ],
        "risky": [world.read(first, "file:tests/c.py", risk="medium").proposal_id],
        "other": [world.read(second, "file:src/d.py").proposal_id],
        "run": [world.run(second, "make", "test").proposal_id],
        "sessions": [first, second],
    }


def status(world: TrustWorld, proposal_id: str) -> str:
    return world.store.read_now(lambda c: proposals.load(c, proposal_id)).status


def test_revisions_say_what_changed_and_who_changed_it(still, project) -> None:
    scene = Scene(still.store, project).begin().wave("observing").ask("p-1")
    scene.decide("p-1", "discussed", reason="only the client").ask(
        "p-2", items=ITEMS[:1], revises="p-1"
    )
    last = still.store.read_now(lambda c: proposals.load(c, "p-2"))
    (earlier,) = still.store.read_now(lambda c: read_history(c, last))
    assert earlier.proposal.proposal_id == "p-1"
    assert not earlier.was_edited
    assert "-file:tests/test_retry.py, 2,100 tokens" in earlier.changes
    assert not any(line.startswith("+file") for line in earlier.changes)


class Slow(ProposalsScreen):
    """Draws no text before it may."""

    async def read_detail(self, row):
        await self.may_read.wait()
        return await super().read_detail(row)


async def test_all_that_waits_in_one_list(still, world, picture) -> None:
    world.learn(lambda session, number: world.read(session, f"file:tests/test_{number}.py"))
    asked = waiting(world)
    async with on_screen(still, size=(150, 44)) as (pilot, app, _):
        screen = Slow(app)
        screen.may_read = asyncio.Event()
        await app.open_screen(screen)
        await until(pilot, lambda: len(screen.body.rows) == 5)
        await until(pilot, lambda: "5 proposals of 2 sessions" in text_of(app))
        first = asked["tests"][0]

        # Equal ones are approved only once their texts are drawn.
        await until(pilot, lambda: "Reading what it asks for" in screen._detail.plain)
        assert set(screen.verbs(screen.row)) == {"open"}
        await pilot.press("b")
        assert screen._question is None
        screen.may_read.set()
        await until(pilot, lambda: "file:tests/a.py" in screen._detail.plain)

        await pilot.press("slash")
        await write(pilot, "risk:low kind:context")
        await until(pilot, lambda: len(screen.body.rows) == 3)
        await pilot.press("escape", "slash")
        await write(pilot, "older:10m")
        await until(pilot, lambda: len(screen.body.rows) == 0)
        still.store.clock.advance(601)
        await pilot.press("escape", "slash")
        await write(pilot, "older:10m")
        await until(pilot, lambda: len(screen.body.rows) == 5)
        await until(pilot, lambda: "low risk · 10m" in text_of(app))
        await pilot.press("escape", "g")

        await until(pilot, lambda: screen.row.proposal.proposal_id == first)
        await until(pilot, lambda: "equal" in screen.verbs(screen.row))
        await pilot.press("b")
        await until(pilot, lambda: "approves all 2 that are shown below" in text_of(app))
        await picture(pilot, "equal")
        drawn = screen._detail.plain
        assert "file:tests/a.py" in drawn
        assert "file:tests/b.py" in drawn
        more = world.read(asked["sessions"][0], "file:tests/e.py").proposal_id
        await until(pilot, lambda: len(screen.row.equal) == 3)
        await pilot.press("y")  # it was about two
        await until(pilot, lambda: "equal" in screen.verbs(screen.row))
        await pilot.press("b")
        await until(pilot, lambda: "approves all 3 that are shown below" in text_of(app))
        assert status(world, first) == "pending"
        await pilot.press("y")
        await until(
            pilot, lambda: {status(world, each) for each in (*asked["tests"], more)} == {"approved"}
        )
        await until(pilot, lambda: len(screen.body.rows) == 3)
        assert status(world, asked["risky"][0]) == "pending"

        new = world.read(asked["sessions"][0], "file:tests/f.py").proposal_id
        await until(pilot, lambda: len(screen.body.rows) == 4)
        await pilot.press("G")
        await until(pilot, lambda: screen.row.proposal.proposal_id == new)
        assert screen.row.rules == tuple(world.offers())
        await until(pilot, lambda: "always" in screen.verbs(screen.row))
        await pilot.press("a")
        await until(pilot, lambda: "lets such requests pass from now on: read file" in text_of(app))
        rule = screen.row.rules[0]
        await pilot.press("y")
        await until(pilot, lambda: status(world, new) == "approved")
        await until(
            pilot,
            lambda: (
                (rules := world.store.read_now(lambda c: trust_rules.find(c, rule))) is not None
                and rules.status == "active"
            ),
        )

        await until(pilot, lambda: len(screen.body.rows) == 3)
        await pilot.press("G")
        await until(pilot, lambda: screen.row.proposal.proposal_id == asked["run"][0])
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.session_id == asked["sessions"][1]
        assert screen_of(pilot).front_id == asked["run"][0]


async def test_what_was_decided_is_asked_for_again(still, world, monkeypatch) -> None:
    """What was discussed or rejected is listed on demand; the agent of its session is asked for it."""
    asked = waiting(world)
    rejected, discussed = asked["tests"][0], asked["run"][0]
    for name, verdict in ((rejected, "rejected"), (discussed, "discussed")):
        shown = world.store.read_now(lambda c, name=name: proposals.load(c, name)).shown_digest
        decide = still.reject if verdict == "rejected" else still.discuss
        words = {"reason": "no"} if verdict == "rejected" else {"words": "why?"}
        await decide(name, shown_digest=shown, **words)
    app = CockpitApp(still)
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(app, "send_message", lambda text, to=None: sent.append((text, to)))
    async with app.run_test(size=(130, 40)) as pilot:
        await settled(pilot)
        await pilot.press("alt+q")
        await until(pilot, lambda: isinstance(app.screen, ProposalsScreen) and app.screen.rows)
        screen = app.screen
        shown_ids = {row.proposal.proposal_id for row in screen.rows}
        assert not shown_ids & {rejected, discussed}
        await pilot.press("h")
        await until(
            pilot,
            lambda: {row.proposal.proposal_id for row in screen.rows} >= {rejected, discussed},
        )
        for name in (rejected, discussed):
            await pilot.press("slash")
            await write(pilot, name, "enter")
            await until(
                pilot, lambda name=name: screen.row and screen.row.proposal.proposal_id == name
            )
            words = "you: “no”" if name == rejected else "you: “why?”"
            await until(pilot, lambda words=words: words in text_of(app))
            app.clear_notifications()
            await pilot.press("r")
            await until(pilot, lambda name=name: sent and name in sent[-1][0])
            await until(pilot, lambda: app._notifications)
            assert sent[-1][0].startswith("Please propose this again, as it was: ")
            says = [each.message for each in app._notifications][-1]
            waits = {
                row.proposal.session_id for row in screen.rows if row.proposal.status == "pending"
            }
            assert ("after you decide p-" in says) == (sent[-1][1] in waits), says
            assert sent[-1][1] == screen.row.proposal.session_id
            await pilot.press("escape")
        assert len(sent) == 2
        await pilot.press("h")
        await until(pilot, lambda: {row.proposal.proposal_id for row in screen.rows} == shown_ids)
