"""Rendered Markdown shows its source in full: targets, HTML, images, and every word."""

from typing import Any

import pytest
from stage import settle
from textual.widgets import Markdown

import themes
from widgets.conversation.markdown import SafeMarkdown, renders_every_word


async def drawn(stage: Any, source: str, size: tuple[int, int] = (80, 30)) -> str:
    shown = SafeMarkdown(source)
    async with stage(shown, size=size) as pilot:
        await settle(pilot)
        return pilot.app.drawn


SHOWN = {
    "[the docs](https://evil.example/x)": "the docs (https://evil.example/x)",
    "[good.example](https://evil.example)": "good.example (https://evil.example)",
    '[a](https://b.example "title")': "a (https://b.example “title”)",
    "<https://a.example>": "https://a.example",
    "![pixel](https://track.example/p.png)": "[image: pixel] (https://track.example/p.png)",
    "<b>bold</b> <!-- hidden -->": "<b>bold</b> <!-- hidden -->",
    "<div>\nblock\n</div>": "<div> block </div>",
    "&#x202e;&#8203;&rlm;plain": "plain",
    "a [link](x) b": "a link (x) b",
    "```py evil words\ncode\n```": "py evil words",
    "def __init__(self, _cache_): ___x___": "def __init__(self, _cache_): ___x___",
    "_two words_ and __two more__": "two words and two more",
    "[/] [bold]x[/bold] [@click=app.quit]y": "[/] [bold]x[/bold] [@click=app.quit]y",
    "- one\n\n  ```\n  code in a list\n  ```\n- two": "code in a list",
    "```\n" + "a" * 100 + "Z\n```": "aZ",
    "[ref]\n\n[ref]: https://evil.example": "[ref]: https://evil.example",
}


async def test_nothing_is_hidden(stage):
    text = await drawn(stage, "\n\n".join(SHOWN), (80, 160))
    assert [shown for shown in SHOWN.values() if shown not in text] == []


@pytest.mark.parametrize("theme", [themes.DEFAULT, "textual-dark"])
async def test_nothing_is_underlined(stage, theme):
    """An underline covers the underscores of a path."""
    source = "# a_b\n\n## a_b\n\n### a_b\n\n[my_file.py](src/my_file.py) `a_b`"
    async with stage(SafeMarkdown(source), theme=theme) as pilot:
        await settle(pilot)
        strips = pilot.app.screen._compositor.render_strips()
        assert any("my_file.py" in strip.text for strip in strips)
        assert not [s.text for strip in strips for s in strip if s.style and s.style.underline]


async def test_a_click_on_a_link_opens_nothing(stage):
    async with stage(SafeMarkdown("[docs](https://evil.example)")) as pilot:
        await settle(pilot)
        await pilot.click(offset=(1, 0))
        await settle(pilot)
        assert not pilot.app.got(Markdown.LinkClicked)


@pytest.mark.parametrize(
    "source",
    [
        "# Head\n\n- one\n- two\n  - three\n\n1. a\n2. b\n\n> quote `code`\n\n```py\nx = 1\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        '[text](http://target "title") ![alt](src)',
        "<!-- comment --> <b>x</b>",
    ],
)
def test_usual_markdown_shows_every_word(source):
    assert renders_every_word(source)


def test_cells_beyond_the_last_column_are_not():
    assert not renders_every_word("| a |\n|---|\n| 1 | hidden |")


async def test_lists_are_lines_with_hanging_indent(stage):
    source = "- one two three four five\n- second\n  - inner\n    - deep\n\n9. nine\n10. ten"
    rows = [row.rstrip() for row in (await drawn(stage, source, (16, 20))).split("\n")]
    assert rows[:6] == ["• one two three", "  four five", "• second", "  ▪ inner", "    ‣ deep", ""]
    assert rows[6:8] == [" 9. nine", "10. ten"]


async def test_wide_tables_keep_their_words(stage):
    text = await drawn(stage, "| one | two |\n|---|---|\n| " + "word " * 12 + "END | x |", (40, 20))
    assert "END" in text


async def test_a_list_with_code_is_as_high_as_its_text(stage: Any) -> None:
    text = await drawn(stage, "- one\n\n  ```\n  code\n  ```\n- two\n\nend", (40, 30))
    rows = [row.strip() for row in text.split("\n")]
    assert rows[:6] == ["• one", "code", "", "• two", "", "end"]
