"""Some hunks of a change: the text that is left is exact, and the rest is the user's edit."""

from __future__ import annotations

import pytest
from app_world import screen_of, text_of, until
from hypothesis import given
from hypothesis import strategies as st

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.pick_hunks import PickHunks
from cockpit.core.clock import SystemClock
from cockpit.core.text import changes_in_several_places
from cockpit.loop.decisions.keep_hunks import EditableChange
from cockpit.loop.runtime_settings import ModelSettings
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

BEFORE = "".join(f"line {number}\n" for number in range(1, 10))
AFTER = BEFORE.replace("line 2\n", "line two\nline 2b\n").replace("line 8\n", "")

texts = st.lists(st.sampled_from(("a\n", "b\n", "c\n", "\n")), max_size=8).map("".join)


@given(texts, texts, texts, texts)
def test_all_hunks_are_the_change_and_none_is_the_old_text(start, old, new, end):
    change = EditableChange.find(start + old + end, start + new + end, new)
    if change is None:
        return  # the text is not there exactly once, or nothing is left of it
    hunks = change.list_hunks()
    assert change.keep(range(len(hunks))) == change.new
    assert change.keep(()) == change.old
    assert (start + new + end).count(change.new) >= 1


def test_hunks_are_offered_where_there_are_several():
    assert changes_in_several_places(BEFORE, AFTER)
    assert not changes_in_several_places(BEFORE, BEFORE.replace("line 8\n", ""))
    assert not changes_in_several_places(BEFORE, BEFORE.replace("line 2\nline 3\n", "a\nb\n"))
    assert not changes_in_several_places("", AFTER)


def test_a_piece_of_a_file_is_found_at_its_line():
    new = "line two\nline 3\nline four"
    change = EditableChange.find(BEFORE, BEFORE.replace("line 2\nline 3\nline 4", new), new)
    assert change is not None
    assert [hunk.first for hunk in change.list_hunks()] == [2, 4]
    assert change.keep({0}) == "line two\nline 3\nline 4"


async def test_what_is_kept_is_proposed_as_an_edit(opened, project, tmp_path):
    (project / "lines.txt").write_text(BEFORE)
    # The first call is kept: nothing of the file was in the context yet.
    (tmp_path / "scenario.toml").write_text(
        2
        * f"""
[[turn]]
text = "I change two places."
[[turn.call]]
name = "write_file"
arguments = {{ path = "lines.txt", content = '''{AFTER}''' }}
"""
    )
    model = ModelSettings(model=f"script:{tmp_path / 'scenario.toml'}")
    async with opened(SystemClock(), model=model) as runtime:
        session_id = await runtime.start("fix the lines", policy="reads")
        app = CockpitApp(runtime, session_id=session_id)

        def pending():
            rows = runtime.store.read_now(proposals.select_pending)
            return rows[-1] if rows else None

        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: pending() is not None and "lines.txt" in pending().title)
            proposal = pending()
            screen = screen_of(pilot)
            await until(pilot, lambda: screen.key_policy.open is not None)
            screen.act("hunks")
            await until(pilot, lambda: isinstance(app.screen, PickHunks))
            await pilot.press("j", "space", "k", "enter")
            await until(pilot, lambda: pending() is not None and pending() != proposal)
            revision = pending()
            assert revision.revises == proposal.proposal_id
            assert revision.body["changes"] == [
                *("edited by you", "− lines: +2 −2", "+ lines: +2 −1"),
                *("lines.txt changed", "+ line 8"),
            ]
            (diff,) = revision.body["diffs"]
            assert diff["after"] == BEFORE.replace("line 2\n", "line two\nline 2b\n")
            await until(pilot, lambda: "edited by you" in text_of(app))
