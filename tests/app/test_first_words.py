"""Words of the screen are explained when they are first drawn: once per user, and dismissed for good."""

from __future__ import annotations

import pytest
from app_scenes import Scene
from app_world import look, settled, text_of, until

from cockpit.app.application import CockpitApp
from cockpit.app.screens.first_words import NAME, WORDS, FirstWords
from widgets.frame.word_bar import WordBar

pytestmark = pytest.mark.slow


@pytest.fixture
def explaining(still, tmp_path):
    """Open a screen that explains words."""

    def start() -> CockpitApp:
        app = CockpitApp(still)
        app.words_folder = str(tmp_path / "state")
        return app

    return start


async def test_words_are_explained_one_by_one_and_dismissed_for_good(explaining, still, project):
    scene = Scene(still.store, project).begin().wave("observing").ask("p-1")
    app = explaining()
    async with app.run_test(size=(60, 30)) as pilot:
        screen = await settled(pilot)
        assert not screen.word, "nothing is explained before it stands on the screen"
        app.attach(scene.session_id)
        screen = await look(pilot)
        assert screen.word == "wave"
        shown = " ".join(text_of(app).split())
        assert all(part in shown for part in (*WORDS["wave"].split()[:3], "alt+x", "dismiss"))
        await pilot.press("alt+x")
        await until(pilot, lambda: screen.word == "context request")
        await settled(pilot)
        await pilot.click(WordBar)
        await until(pilot, lambda: not screen.word)
        await until(pilot, lambda: "alt+x" not in text_of(app))
        assert screen.queue.front is not None, "no decision came of it"
    app = explaining()
    async with app.run_test(size=(60, 30)) as pilot:
        app.attach(scene.session_id)
        screen = await look(pilot)
        assert not screen.word, "after a restart neither comes back"
        scene.decide("p-1", "rejected").propose("p-2", body="Do it.")
        await look(pilot)
        assert screen.word == "action"


@pytest.mark.parametrize("text", ["", "{}", "[1, null]", "\x00", '["wave", "made up"]'])
def test_a_file_that_is_not_ours_explains_again(tmp_path, text):
    (tmp_path / NAME).write_text(text, encoding="utf-8")
    first = FirstWords(str(tmp_path))
    first.dismiss("packet")
    again = FirstWords(str(tmp_path))
    assert "packet" in again._dismissed
    assert again._dismissed <= set(WORDS)
