"""What the screen looks like: pictures in ``snapshots/``, of real journals on a standing clock."""

from __future__ import annotations

import pytest
from app_scenes import ALL, THOUGHTS, Scene, to_decide
from app_world import calm, look, settled, until

import themes
from cockpit.app.application import CockpitApp
from cockpit.app.screens.replay_screen import ReplayApp
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action

pytestmark = pytest.mark.slow

WIDE = (150, 42)


@pytest.fixture
def scene(still, project):
    return Scene(still.store, project)


@pytest.fixture
def picture(still, snap_compare):
    """Compare the app, following ``scene``, with its picture."""

    def compare(
        scene=None, *, size=WIDE, keys=(), typed="", theme=themes.DEFAULT, armed=True, then=None
    ):
        app = CockpitApp(still, theme=theme)

        async def before(pilot):
            if scene is not None:
                app.attach(scene.session_id)
            ready = look if armed else settled
            screen = await ready(pilot)
            for key in keys:
                await pilot.press(key)
                await ready(pilot)
            for char in typed:
                await pilot.press(char)
                still.store.clock.advance(1)
            if typed:
                await settled(pilot)
            if then is not None:
                await then(pilot, screen)

        return snap_compare(app, terminal_size=size, run_before=before)

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


def test_empty_start(picture):
    assert picture()


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (100, 30), WIDE])
def test_welcome_back(picture, scene, size):
    to_decide(scene).edit()
    other_sessions(scene)
    assert picture(size=size, armed=False)


def test_streaming(picture, scene):
    to_decide(scene).stream(*(THOUGHTS[i : i + 40] for i in range(0, len(THOUGHTS), 40)))
    assert picture(other_sessions(scene))


def test_context_proposal(picture, scene):
    scene.begin().wave(*ALL[:4]).say("agent", "I need three things before I judge this.").ask()
    assert picture(other_sessions(scene))


def test_context_proposal_unarmed(picture, scene):
    scene.begin().wave(*ALL[:4]).say("agent", "I need three things before I judge this.").ask()
    assert picture(scene, armed=False)


def test_context_proposal_narrowed(picture, scene):
    scene.begin().wave(*ALL[:4]).say("agent", "I need three things before I judge this.").ask()
    assert picture(scene, keys=("ctrl+n", "j", "space"))


def test_context_proposal_with_refused_item_and_revision(picture, scene):
    scene.begin().wave(*ALL[:4]).ask().decide("p-context", "discussed", reason="too much")
    items = (
        ("file:src/http/client.py:40-160", 3_400, "situational", ""),
        ("file:.env", 0, "situational", "secrets are never read"),
    )
    scene.ask(
        "p-context-2",
        items=items,
        revises="p-context",
        changes=("− file:tests/test_retry.py", "− log:-5", "+ file:.env"),
    )
    assert picture(scene)


def test_action_with_diff(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    assert picture(other_sessions(scene))


def test_action_with_diff_full_screen(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    assert picture(scene, keys=("f4",))


def test_review_on_github(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").review(deadline_s=241)
    other_sessions(scene).edit("p-second")
    assert picture(scene)


def test_high_risk_asks_for_a_second_key(picture, scene):
    to_decide(scene).advance("acting").propose(
        title="run rm -r build",
        kind="run",
        risk="high",
        fields=(
            ("argv", "rm -r build"),
            ("folder", "."),
            ("sandbox", "no network · project writable"),
        ),
        notes=("It removes files that Git does not know.",),
    )
    assert picture(scene, keys=("enter",))


def test_discussing(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    assert picture(scene, keys=("escape",))


def test_words_discuss_the_proposal(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    assert picture(scene, typed="reset in on_open")


def test_approved_with_receipt(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    scene.decide("p-action", "approved").enter("running")
    scene.ran("edit src/http/retry.py", "src/http/retry.py: 1 line changed")
    scene.ran("run pytest -q", "", fails="exit 1: 1 failed, 41 passed in 2.1s")
    scene.advance("learning", "completed")
    scene.enter("completed", status="done", summary="the attempt is reset after a success")
    assert picture(other_sessions(scene))


def test_error(picture, scene):
    to_decide(scene).fail(
        "The model anthropic:claude-sonnet-5 cannot be reached: connection refused. "
        "Check the network, or go on with another model: ctrl+p, Change the session's model."
    )
    assert picture(scene)


@pytest.mark.parametrize("tab", ["conversation", "bands", "proposals", "work"])
def test_small(picture, scene, tab):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    key = {"conversation": "f2", "bands": "f3", "proposals": "f4", "work": "f5"}[tab]
    assert picture(other_sessions(scene), size=(80, 24), keys=(key,))


def test_large(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").review()
    assert picture(other_sessions(scene), size=(200, 50))


def test_very_wide(picture, scene):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    assert picture(other_sessions(scene), size=(300, 60))


@pytest.mark.parametrize("theme", [theme.name for theme in themes.THEMES] + ["gruvbox"])
def test_themes(picture, scene, theme):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    assert picture(other_sessions(scene), theme=theme)


def test_sessions(picture, scene):
    to_decide(scene)
    assert picture(other_sessions(scene), keys=("f6",))


def test_replay(still, scene, snap_compare):
    to_decide(scene).say("agent", THOUGHTS).advance("acting").edit()
    rows = still.store.read_now(journal.rows)
    mine = [row for row in rows if row.session_id == scene.session_id]
    app = ReplayApp(mine, scene.session_id, still.store)

    async def before(pilot):
        await until(pilot, lambda: app.screen.position == len(mine))
        await pilot.press("left", "left")
        await until(pilot, lambda: app.screen.position == len(mine) - 2)
        await calm(pilot)

    assert snap_compare(app, terminal_size=WIDE, run_before=before)


def test_meter_during_an_adaptation(picture, scene):
    scene.begin()
    scene.wave("observing", "orienting")
    scene.store.write_now(
        lambda tx: tx.append_row(
            Action.WAVE_STARTED, session_id=scene.session_id, body={"waves_left": 3, "ordinal": 1}
        )
    )
    scene.store.write_now(lambda tx: scene._packet(tx, scene.wave_id, 1))
    assert picture(scene)
