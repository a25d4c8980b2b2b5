"""The facts of a band, pins, the difference between packets, and feedback on waves."""

from __future__ import annotations

import pytest
from app_scenes import Scene
from app_world import on_screen, settled, text_of, until, write
from packet_scenes import compiled, done, fact

from cockpit.app.actions import packet_actions
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.band_facts import BandFacts, FactTextDialog
from cockpit.app.dialogs.file_view import FileView
from cockpit.app.dialogs.packet_diff import PacketDiffDialog
from cockpit.store.context import wave_feedback

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(still, project):
    return Scene(still.store, project).begin()


async def opened(pilot, app, scene, band="situational"):
    app.attach(scene.session_id)
    screen = await settled(pilot)
    packet_actions.show_band_facts(screen.host, band)
    await until(pilot, lambda: isinstance(app.screen, BandFacts))
    dialog = app.screen
    await until(pilot, lambda: dialog.list.rows)
    return dialog


async def test_a_band_lists_its_facts_with_their_fates_and_origins(still, scene, project, picture):
    (project / "src").mkdir()
    (project / "src" / "part_00042.py").write_text("def part_42():\n    return 'as it is now'\n")
    compiled(scene, *(fact(n) for n in range(160)))
    app = CockpitApp(still)
    async with app.run_test(size=(190, 30)) as pilot:
        dialog = await opened(pilot, app, scene)
        assert len(dialog.list.rows) == 160
        assert len({row.fate for row in dialog.list.rows}) > 1
        await until(pilot, lambda: "path src/part_00000.py" in text_of(app))
        await picture(pilot, "facts")
        await pilot.press("u")
        best = dialog.list.at_cursor.utility
        assert best == max(row.utility for row in dialog.list.rows)
        await pilot.press("u")
        assert dialog.list.at_cursor.utility == min(row.utility for row in dialog.list.rows)
        await pilot.press("slash")
        await write(pilot, "00042")
        await until(pilot, lambda: dialog.list.count == 1)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, FactTextDialog))
        await until(pilot, lambda: "return 42" in text_of(app))
        await pilot.press("escape", "f")
        await until(pilot, lambda: isinstance(app.screen, FileView))
        await until(pilot, lambda: "▌     return 'as it is now'" in text_of(app))
        await pilot.press("escape", "escape", "escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_a_pin_holds_from_the_next_wave(still, scene):
    weak = fact(0)  # utility 0: the first to be dropped
    compiled(scene, weak, *(fact(n) for n in range(1, 200)))
    app = CockpitApp(still)
    async with app.run_test(size=(140, 30)) as pilot:
        dialog = await opened(pilot, app, scene)
        assert next(r for r in dialog.list.rows if r.key == weak.fact_id).fate != "kept"
        await pilot.press("slash")
        await write(pilot, "part_00000", "enter", "p")
        await until(pilot, lambda: dialog.list.at_cursor.pinned)
        await until(pilot, lambda: "pinned from wave 2" in text_of(app))
    compiled(done(scene))
    told = await still.explain(scene.session_id)
    now = next(f for f in told.facts if f.fact_id == weak.fact_id)
    assert (now.verdict, now.reason) == ("kept", "pinned")


async def test_two_waves_are_compared(still, scene, picture):
    done(compiled(scene, fact(0), fact(1)))
    done(compiled(scene, fact(2)))
    await still.pin(scene.session_id, fact(1).fact_id)
    done(compiled(scene))
    async with on_screen(
        still, Scene(still.store, still.place.root).begin("other").session_id, size=(140, 30)
    ) as (pilot, app, screen):
        packet_actions.show_band_facts(screen.host, "situational")
        await until(pilot, lambda: len(app._notifications) == 1)
        assert "no packet yet" in next(iter(app._notifications)).message
        app.attach(scene.session_id)
        await settled(pilot)
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, PacketDiffDialog))
        await until(pilot, lambda: "now pinned" in text_of(app))
        await picture(pilot, "compared")
        await pilot.press("left")
        await until(pilot, lambda: "Packet of wave 2, compared with wave 1" in text_of(app))
        await until(pilot, lambda: "part_00002" in text_of(app))
        assert [row.fate for row in app.screen.list.rows] == ["added"]
        why = app.screen.list.rows[0].why
        assert why.partition(" · ")[0] in ("floor", "target", "utility"), why
        await pilot.press("right", "shift+left")
        await until(pilot, lambda: "Packet of wave 3, compared with wave 1" in text_of(app))
        await until(pilot, lambda: [r.fate for r in app.screen.list.rows] == ["added", "changed"])


async def test_plus_and_minus_judge_the_last_wave(still, scene):
    compiled(scene, fact(0))
    async with on_screen(still, scene.session_id, size=(140, 40)) as (pilot, app, screen):
        await pilot.press("plus")
        assert screen.prompt.text == "+"  # in the prompt it is a letter
        await pilot.press("backspace")
        screen.panes.conversation.focus()
        await pilot.press("plus")
        await until(pilot, lambda: "wave 1 was good" in text_of(app))
        await pilot.press("minus")
        await until(pilot, lambda: app.screen is not screen)
        await write(pilot, "no tests", "enter")
        await until(pilot, lambda: "wave 1 was bad: no tests" in text_of(app))
    kept = still.store.read_now(lambda c: wave_feedback.find_latest(c, scene.wave_id))
    assert (kept.assessment.operator.verdict, kept.assessment.operator.words) == ("bad", "no tests")
