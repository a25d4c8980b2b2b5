"""Pictures of one session in each of its states, of each kind of proposal, and of external agents."""

from __future__ import annotations

import pytest
from app_scenes import ALL, ITEMS, THOUGHTS, Scene, to_decide
from app_world import look, on_screen, settled, until
from loop.trust.trust_world import TrustWorld
from msgspec.structs import replace
from permission_scenes import Agents, several, tell_of_work
from test_plan_screen import PLAN
from test_trust_screen import card

from cockpit.access.principals import PERSON
from cockpit.app.application import CockpitApp
from cockpit.app.screens.replay_screen import ReplayApp, read_session_rows
from cockpit.backlog.planning.propose_plan import propose
from cockpit.loop.runtime_settings import TrustSettings
from cockpit.store.journal.details.sessions import SessionFailed, SessionStopped, SessionWaiting
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

SIZE = (120, 36)


@pytest.fixture
def session_picture(still, picture):
    """Compare the app, following ``scene``, with its picture after some keys."""

    async def compare(name, scene=None, *, keys=(), size=SIZE):
        app = CockpitApp(still)
        async with app.run_test(size=size) as pilot:
            if scene is not None:
                app.attach(scene.session_id)
            await look(pilot)
            for key in keys:
                await pilot.press(key)
                await look(pilot)
            await picture(pilot, name, ready=settled)

    return compare


def other_sessions(scene):
    """Two more sessions in the same project."""
    done = Scene(scene.store, scene.root).begin(
        "seed the jitter", title="seed the jitter", task_type="implement"
    )
    done.wave(*ALL).enter("completed", status="done", summary="the jitter is seeded and tested")
    work = Scene(scene.store, scene.root).begin(
        "docs for retry", title="docs for retry", task_type="docs"
    )
    work.wave("observing", "orienting", "deciding").spend(8_400, 0.03)
    return scene


async def test_welcome_back(scene, session_picture):
    other_sessions(to_decide(scene).edit())
    await session_picture("welcome-back")


async def test_streaming(scene, session_picture):
    to_decide(scene).stream(*(THOUGHTS[i : i + 40] for i in range(0, len(THOUGHTS), 40)))
    await session_picture("streaming", other_sessions(scene))


async def test_a_request_before_it_is_armed_and_narrowed(still, scene, picture):
    scene.begin().wave(*ALL[:4]).say("agent", "I need three things before I judge this.").ask()
    app = CockpitApp(still)
    async with app.run_test(size=SIZE) as pilot:
        app.attach(scene.session_id)
        await picture(pilot, "request-unarmed", ready=settled)
        await look(pilot)
        await pilot.press("ctrl+n", "j", "space")
        await picture(pilot, "request-narrowed", ready=look)


async def test_a_revision_with_a_refused_item(scene, session_picture):
    scene.begin().wave(*ALL[:4]).ask().decide("p-context", "discussed", reason="too much")
    items = (ITEMS[0], ("file:.env", 0, "situational", "secrets are never read"))
    changes = ("− file:tests/test_retry.py", "− log:-5", "+ file:.env")
    scene.ask("p-context-2", items=items, revises="p-context", changes=changes)
    await session_picture("request-revised", scene)


async def test_an_edit_full_screen_discussed_and_answered_in_words(still, scene, picture):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    async with on_screen(still, scene.session_id, size=SIZE, ready=look) as (pilot, _, _):
        await pilot.press("f4")
        await picture(pilot, "edit-full-screen", ready=look)
        await pilot.press("f4")
        await look(pilot)
        await pilot.press("escape")
        await picture(pilot, "edit-discussing", ready=look)
        await pilot.press("escape")
        await look(pilot)
        await pilot.press(*"reset in on_open")
        await picture(pilot, "edit-words", ready=look)


async def test_review_on_github(scene, session_picture):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").review(deadline_s=241)
    other_sessions(scene).edit("p-second")
    await session_picture("github-review", scene, size=(160, 45))


async def test_high_risk_asks_for_a_second_key(scene, session_picture):
    to_decide(scene).advance("acting").propose(
        title="run rm -r build",
        kind="run",
        risk="high",
        fields=(("argv", "rm -r build"), ("folder", "."), ("sandbox", "project writable")),
        notes=("It removes files that Git does not know.",),
    )
    await session_picture("second-key", scene, keys=("enter",))


async def test_approved_with_receipt(scene, session_picture):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    scene.decide("p-action", "approved").enter("running")
    scene.ran("edit src/http/retry.py", "src/http/retry.py: 1 line changed")
    scene.ran("run pytest -q", "", fails="exit 1: 1 failed, 41 passed in 2.1s")
    scene.advance("learning", "completed")
    scene.enter("completed", status="done", summary="the attempt is reset after a success")
    await session_picture("receipts", other_sessions(scene))


async def test_error(scene, session_picture):
    to_decide(scene).fail(
        "The model anthropic:claude-sonnet-5 cannot be reached: connection refused. "
        "Check the network, or go on with another model: ctrl+p, Change the session's model."
    )
    await session_picture("error", scene)


async def test_a_temporary_profile_change_is_proposed_and_in_effect(still, scene, picture):
    to_decide(scene).shift_attention()
    changed = Scene(scene.store, scene.root).begin().wave("observing", "orienting")
    body = {"waves_left": 3, "ordinal": 1}
    still.store.write_now(
        lambda tx: tx.append_row(Action.WAVE_STARTED, session_id=changed.session_id, body=body)
    )
    still.store.write_now(lambda tx: changed._packet(tx, changed.wave_id, 1))
    app = CockpitApp(still)
    async with app.run_test(size=(160, 45)) as pilot:
        app.attach(scene.session_id)
        await picture(pilot, "profile-proposal", ready=look)
        app.attach(changed.session_id)
        await picture(pilot, "profile-changed", ready=settled)


async def test_a_plan(still, session_picture):
    still.store.write_now(lambda tx: propose(tx, PLAN, PERSON))
    await session_picture("plan")


async def test_a_short_card(still, project, session_picture):
    trust = TrustSettings(3, 2, 90)
    still.engine = replace(still.engine, settings=replace(still.engine.settings, trust=trust))
    world = TrustWorld(still.store, project, still.engine.settings, count=500)
    world.learn(lambda session, number: world.read(session, f"file:tests/test_{number}.py"))
    rule_id = world.offers()[0]
    world.accept(rule_id)
    await session_picture("short-card", card(still, rule_id))


async def test_replay(still, scene, picture):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    rows = await read_session_rows(still.store, scene.session_id)
    app = ReplayApp(rows, scene.session_id, still.store)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.screen.position == len(rows))
        await pilot.press("left", "left")
        await until(pilot, lambda: app.screen.position == len(rows) - 2)
        await picture(pilot, "replay")


ENDS = {
    "failed": SessionFailed(message="claude ended with exit code 1 while it worked."),
    "stopped": SessionStopped(reason="interrupted"),
    "waiting": SessionWaiting(for_="person", why="the agent ended its turn"),
}


async def test_external_agents_at_work_and_at_their_ends(still, project, picture):
    agents = Agents(still.store, project)
    by_name = {}
    for name in ("work", *ENDS):
        by_name[name] = session_id = agents.begin("claude", "reset the backoff", task_type="agent")
        tell_of_work(still.store, session_id, at_work=name == "work")
        if name in ENDS:
            still.store.write_now(
                lambda tx, name=name: sessions.set_status(
                    tx, by_name[name], name, detail=ENDS[name]
                )
            )
    app = CockpitApp(still)
    async with app.run_test(size=SIZE) as pilot:
        for name, session_id in by_name.items():
            app.attach(session_id)
            await picture(pilot, f"agent-{name}", ready=settled)


CARDS = ("edit", "command", "server", "questions", "worktree")


async def test_permissions_of_external_agents(still, project, picture):
    agents = Agents(still.store, project)
    by_name = {name: agents.begin("claude", "reset the backoff") for name in CARDS}
    for name, session_id in by_name.items():
        if name == "worktree":
            agents.finish_work(session_id, name)
        else:
            agents.ask(session_id, name, getattr(agents, name)())
    app = CockpitApp(still)
    async with app.run_test(size=SIZE) as pilot:
        for name, session_id in by_name.items():
            app.attach(session_id)
            await picture(pilot, f"permission-{name}", ready=look)


async def test_several_agents_wait(still, project, picture):
    session_id = several(still, Agents(still.store, project))
    app = CockpitApp(still)
    async with app.run_test(size=SIZE) as pilot:
        await picture(pilot, "waiting-elsewhere", ready=settled)
        app.attach(session_id)
        await picture(pilot, "waiting-several", ready=look)
