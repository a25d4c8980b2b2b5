"""Pictures of one session in each of its states, of each kind of proposal, and of external agents."""

from __future__ import annotations

import pytest
from app_scenes import ALL, ITEMS, THOUGHTS, Scene, to_decide
from app_world import look, on_screen, settled, write
from loop.trust.trust_world import TrustWorld
from msgspec.structs import replace
from permission_scenes import Agents, several, tell_of_work
from test_plan_screen import PLAN
from test_trust_screen import card

from cockpit.access.principals import PERSON
from cockpit.backlog.planning.propose_plan import propose
from cockpit.loop.runtime_settings import TrustSettings
from cockpit.store.journal.details.sessions import SessionFailed, SessionStopped, SessionWaiting
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

SIZE = (120, 36)


def other_sessions(scene):
    """Two more sessions in the same project."""
    done = Scene(scene.store, scene.root).begin(
        "seed the jitter", title="seed the jitter", task_type="implement"
    )
    done.wave(*ALL).enter("completed", status="done", summary="the jitter is seeded and tested")
    work = Scene(scene.store, scene.root).begin(
        "docs for retry", title="docs for retry", task_type="docs"
    )
    return work.wave("observing", "orienting", "deciding").spend(8_400, 0.03)


async def test_sessions_of_a_project(still, scene, picture):
    """What each says comes once the screen is there, so that nothing but the last one waits."""
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    streaming = other_sessions(scene)
    async with on_screen(still, size=SIZE, ready=look) as (pilot, app, _):
        await picture(pilot, "welcome-back", ready=settled)

        async def shows(name, scene, *keys):
            app.attach(scene.session_id)
            await look(pilot)
            await pilot.press(*keys)
            await picture(pilot, name, ready=look)

        scene.decide("p-action", "approved").enter("running")
        scene.ran("edit src/http/retry.py", "src/http/retry.py: 1 line changed")
        scene.ran("run pytest -q", "", fails="exit 1: 1 failed, 41 passed in 2.1s")
        scene.advance("learning", "completed")
        scene.enter("completed", status="done", summary="the attempt is reset after a success")
        await shows("receipts", scene)

        streaming.stream(*(THOUGHTS[i : i + 40] for i in range(0, len(THOUGHTS), 40)))
        await shows("streaming", streaming)

        failed = Scene(scene.store, scene.root).begin().wave(*ALL[:3])
        failed.fail(
            "The model anthropic:claude-sonnet-5 cannot be reached: connection refused. "
            "Check the network, or go on with another model: ctrl+p, Change the session's model."
        )
        await shows("error", failed)

        asks = Scene(scene.store, scene.root).begin().wave(*ALL[:4]).ask("p-1")
        asks.decide("p-1", "discussed", reason="too much")
        items = (ITEMS[0], ("file:.env", 0, "situational", "secrets are never read"))
        changes = ("− file:tests/test_retry.py", "− log:-5", "+ file:.env")
        asks.ask("p-2", items=items, revises="p-1", changes=changes)
        await shows("request-revised", asks)

        asks.decide("p-2", "approved").propose(
            title="run rm -r build",
            kind="run",
            risk="high",
            fields=(("argv", "rm -r build"), ("folder", "."), ("sandbox", "project writable")),
            notes=("It removes files that Git does not know.",),
            proposal_id="p-3",
        )
        await shows("second-key", asks, "enter")

        tests = Scene(scene.store, scene.root).begin().wave(*ALL[:4])
        for place in ("test_client", "test_retry", "test_jitter"):
            argv = f"pytest -q tests/{place}.py"
            box = "reading: project read-only and without secrets, no network, nothing kept"
            fields = (("argv", argv), ("sandbox", box), ("time limit", "120 s"))
            tests.propose(place, title=f"run {argv}", kind="run", risk="low", fields=fields)
        await shows("several-alike", tests)


async def test_a_request_and_an_edit(still, scene, picture):
    scene.begin().wave(*ALL[:4]).say("agent", "I need three things before I judge this.").ask()
    async with on_screen(still, scene.session_id, size=SIZE) as (pilot, _, _):
        await picture(pilot, "request-unarmed", ready=settled)
        await look(pilot)
        await pilot.press("ctrl+n", "j", "space")
        await picture(pilot, "request-narrowed", ready=look)
        await pilot.press("escape")
        scene.decide("p-context", "approved")
        scene.advance("learning", "completed").enter("running").wave(*ALL[:4]).spend()
        scene.say("agent", THOUGHTS).edit()
        await look(pilot)
        await pilot.press("f4")
        await picture(pilot, "edit-full-screen", ready=look)
        await pilot.press("f4")
        await look(pilot)
        await pilot.press("escape")
        await picture(pilot, "edit-discussing", ready=look)
        await pilot.press("escape")
        await look(pilot)
        await write(pilot, "reset in on_open")
        await picture(pilot, "edit-words", ready=look)


async def test_a_review_and_a_temporary_profile_change(still, scene, picture):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").review(deadline_s=241)
    other_sessions(scene)
    scene.edit("p-second")
    async with on_screen(still, scene.session_id, size=(160, 45), ready=look) as (pilot, app, _):
        await picture(pilot, "github-review", ready=settled)
        scene.decide("p-review", "approved").decide("p-second", "approved").shift_attention()
        await picture(pilot, "profile-proposal", ready=look)
        changed = Scene(scene.store, scene.root).begin().wave("observing", "orienting")
        body = {"waves_left": 3, "ordinal": 1}
        still.store.write_now(
            lambda tx: tx.append_row(Action.WAVE_STARTED, session_id=changed.session_id, body=body)
        )
        still.store.write_now(lambda tx: changed._packet(tx, changed.wave_id, 1))
        app.attach(changed.session_id)
        await picture(pilot, "profile-changed", ready=settled)


async def test_a_short_card_and_a_plan(still, project, picture):
    trust = TrustSettings(3, 2, 90)
    still.engine = replace(still.engine, settings=replace(still.engine.settings, trust=trust))
    world = TrustWorld(still.store, project, still.engine.settings, count=500)
    world.learn(lambda session, number: world.read(session, f"file:tests/test_{number}.py"))
    rule_id = world.offers()[0]
    world.accept(rule_id)
    shown = card(still, rule_id)
    async with on_screen(still, shown.session_id, size=SIZE, ready=look) as (pilot, app, _):
        await picture(pilot, "short-card", ready=settled)
        shown.decide("p-card", "approved")
        still.store.write_now(lambda tx: propose(tx, PLAN, PERSON))
        app.attach("")
        await picture(pilot, "plan", ready=look)


ENDS = {
    "failed": SessionFailed(message="claude ended with exit code 1 while it worked."),
    "stopped": SessionStopped(reason="interrupted"),
    "waiting": SessionWaiting(for_="person", why="the agent ended its turn"),
}


async def test_external_agents_at_work_and_at_their_ends(still, project, picture):
    agents = Agents(still.store, project)
    async with on_screen(still, size=SIZE) as (pilot, app, _):
        for name in ("work", *ENDS):
            session_id = agents.begin("claude", "reset the backoff", task_type="agent")
            tell_of_work(still.store, session_id, at_work=name == "work")
            if name in ENDS:
                still.store.write_now(
                    lambda tx, session_id=session_id, name=name: sessions.set_status(
                        tx, session_id, name, detail=ENDS[name]
                    )
                )
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
    async with on_screen(still, size=SIZE) as (pilot, app, _):
        for name, session_id in by_name.items():
            app.attach(session_id)
            await picture(pilot, f"permission-{name}", ready=look)


async def test_several_agents_wait(still, project, picture):
    session_id = several(still, Agents(still.store, project))
    async with on_screen(still, size=SIZE) as (pilot, app, _):
        await picture(pilot, "waiting-elsewhere", ready=settled)
        app.attach(session_id)
        await picture(pilot, "waiting-several", ready=look)
