"""A diff that is drawn line by line: what stands next to what, at any width, and nothing twice or never."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some
from stage import settle

from widgets.proposals.diff_list import DiffList
from widgets.text import compare_lines as comparing
from widgets.text import detail
from widgets.text.compare_lines import compare_lines, count_changed, group_changes
from widgets.text.diff_rows import DiffText, Layout
from widgets.text.language import name_language
from widgets.views import FileDiffView

pytestmark = pytest.mark.slow

LINES = some.lists(some.sampled_from(["", "}", "a", "b", "c", "d", "e", "f"]), max_size=14)


@given(LINES, LINES, some.sampled_from([0, 6, 40_000]))
def test_the_stretches_of_a_comparison_are_both_texts_in_order(before, after, pairs):
    most, comparing._MOST_PAIRS = comparing._MOST_PAIRS, pairs
    try:
        changes = compare_lines(before, after)
    finally:
        comparing._MOST_PAIRS = most
    assert [line for c in changes for line in before[c.low : c.high]] == before
    assert [line for c in changes for line in after[c.first : c.last]] == after
    assert all(before[c.low : c.high] == after[c.first : c.last] for c in changes if c.same)
    assert all(one.same != other.same for one, other in pairwise(changes))
    groups = [change for group in group_changes(changes, 2) for change in group]
    assert count_changed(groups) == count_changed(changes)


@given(
    before=some.lists(some.sampled_from("abcde"), max_size=40),
    after=some.lists(some.sampled_from("abcde"), max_size=40),
    around=some.integers(1, 4),
)
def test_a_unified_diff_makes_the_one_text_into_the_other(before, after, around):
    built: list[str] = []
    read = 0
    for text in comparing.unify_lines(before, after, around):
        if match := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", text):
            first, size, place, _ = (1 if part is None else int(part) for part in match.groups())
            low = first - 1 if size else first
            built += before[read:low]
            read = low
            assert len(built) == (place - 1 if match[4] != "0" else place)
            continue
        if text[0] != "+":
            assert text[1:] == before[read]
            read += 1
        if text[0] != "-":
            built.append(text[1:])
    assert [*built, *before[read:]] == after


@given(
    texts=some.lists(some.text("ab cé日 ", max_size=40), max_size=20), width=some.integers(12, 30)
)
@pytest.mark.parametrize("most", [2_000, 0])
def test_rows_of_a_detail_are_drawn_whole_at_any_width(texts, width, most):
    """Many of them are broken at the edge, few between words; each line is made when it is asked for."""
    rows = detail.quoted("Says", "\n".join(["-", *texts]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detail, "_FOLDED_FROM", most)
        wrapped = detail.WrappedRows(rows, width)
    drawn = [wrapped[y] for y in range(len(wrapped))]
    assert all(each.cell_length <= width for each in drawn)
    letters = "".join(each.plain.removeprefix("│ ") for each in drawn).replace(" ", "")
    assert letters == "".join(["Says", "-", *texts]).replace(" ", "")
    assert len(wrapped) == sum(
        len(detail.wrap_row(row, width, folds=len(rows) > most)) for row in rows
    )


@given(
    some.text("ab漢\t }\n", max_size=60),
    some.text("ab漢\t }\n", max_size=60),
    some.integers(12, 40),
)
def test_every_changed_line_has_rows_of_its_own_at_any_width(before, after, width):
    text = DiffText("a.py", before, after)
    for split in (False, True):
        rows = text.rows(split=split)
        removed = [r.old for r in rows if r.sign == "-" and r.old >= 0]
        added = [r.new for r in rows if (r.sign == "+" or (split and r.sign == "-")) and r.new >= 0]
        assert (len(added), len(removed)) == (text.added, text.removed)
        layout = Layout(text, rows, width, split=split)
        assert layout.height >= len(rows)
        assert [layout.find(y)[0] for y in layout.tops[:-1]] == list(range(len(rows)))


async def test_a_new_file_has_one_column_and_a_changed_one_two(stage):
    code = "".join(f"x{number} = {number}\n" for number in range(40))
    files = (
        FileDiffView("new.py", None, code),
        FileDiffView("changed.py", code, code.replace("x20 = 20", "x20 = 21")),
    )
    diffs = DiffList(files)
    async with stage(diffs, size=(120, 60)) as pilot:
        rows = pilot.app.rows
        assert any(row.strip() == "▎ 1 + x0 = 0" for row in rows)
        assert any("x20 = 20" in row and "x20 = 21" in row for row in rows)
        assert any("17 lines unchanged" in row for row in rows)
        diffs.focus()
        assert diffs.place == ("new.py", 1)
        await pilot.press("right_square_bracket")
        await settle(pilot)
        await pilot.press("space")
        await settle(pilot)
        assert [diff.folded for diff in diffs.files] == [False, True]
        await pilot.press("z")
        await settle(pilot)
        assert any("▸ changed.py  +1 −1" in row for row in pilot.app.rows)
        await pilot.press("z", "d", "G")
        await settle(pilot)
        assert not any("x20 = 20" in row and "x20 = 21" in row for row in pilot.app.rows)


async def test_a_click_on_a_title_folds_its_file(stage):
    files = tuple(FileDiffView(name, "one = 1\n", "two = 2\n") for name in ("a.py", "b.py"))
    async with stage(DiffList(files), size=(80, 30)) as pilot:
        for name, other in (("a.py", "b.py"), ("b.py", "a.py")):
            for sign in ("▸", "▾"):
                place = next(y for y, row in enumerate(pilot.app.rows) if name in row)
                await pilot.click(offset=(4, place))
                await settle(pilot)
                rows = [row for row in pilot.app.rows if name in row]
                assert sign in rows[0]
                assert "▾" in next(row for row in pilot.app.rows if other in row)


async def test_text_of_a_diff_can_be_selected(stage):
    diffs = DiffList((FileDiffView("a.py", "one = 1\n", "two = 2\n"),))
    async with stage(diffs, size=(60, 12)) as pilot:
        diffs.files[0].text_select_all()
        await settle(pilot)
        selected = pilot.app.screen.get_selected_text() or ""
        assert "one = 1" in selected and "two = 2" in selected


def test_the_language_of_a_file_is_that_of_its_name():
    named = {"src/a.py": "python", "a.tcss": "scss", "a.pl": "perl", "LICENSE": "text"}
    assert {path: name_language("use strict;\n", path) for path in named} == named
