"""Markdown drawn as lines shows its source in full: addresses, HTML, images, and every word."""

from __future__ import annotations

import re

import pytest
from stage import settle

from widgets.text.markdown import MarkdownLines, draw_markdown

SHOWN = {
    "[the docs](https://evil.example/x)": "[the docs](https://evil.example/x)",
    '[a](https://b.example "title")': '[a](https://b.example "title")',
    "![pixel](https://track.example/p.png)": "![pixel](https://track.example/p.png)",
    "<b>bold</b> <!-- hidden -->": "<b>bold</b> <!-- hidden -->",
    "<div>\nblock\n</div>": "<div> block </div>",
    "&#x202e;plain \u202etext": "&#x202e;plain text",
    "```py evil words\ncode\n```": "py evil words",
    "```aVeryLongWordThatIsNoLanguage\ncode\n```": "aVeryLongWordThatIsNoLanguage",
    "def __init__(self, _cache_): ___x___": "def __init__(self, _cache_): ___x___",
    "a * b * c and **bold** and *soft*": "a * b * c and bold and soft",
    "[/] [bold]x[/bold] [@click=app.quit]y": "[/] [bold]x[/bold] [@click=app.quit]y",
    "````\n```\ninner\n```\n````": "inner",
    "[ref]: https://evil.example": "[ref]: https://evil.example",
    "| a |\n|---|\n| 1 | hidden |": "| 1 | hidden |",
    "| a | b |\n|---|---|\n| one | **two** |": "one  two",
}


@pytest.mark.parametrize("source", SHOWN)
def test_nothing_is_hidden(source: str) -> None:
    rows = [row.plain for row in draw_markdown(source, 80)]
    assert any(SHOWN[source] in row for row in rows), rows


@pytest.mark.parametrize("width", [8, 20, 200])
def test_every_word_is_drawn_at_any_width(width: int) -> None:
    source = "\n\n".join(
        [*SHOWN, "# Head\n\n- one\n- two\n  - three\n\n1. a\n2. b\n\n> quote `code`"]
    )
    drawn = "".join(row.plain for row in draw_markdown(source, width))
    letters = re.sub(r"\W", "", drawn.replace("•", ""))
    for word in re.findall(r"[a-z]{2,}", source.lower()):
        assert word in letters.lower() or word == "py", word


def test_lists_have_a_hanging_indent() -> None:
    source = "- one two three four five\n- second\n  - inner\n\n9. nine\n10. ten"
    rows = [row.plain.rstrip() for row in draw_markdown(source, 16)]
    assert rows[:4] == ["• one two three", "  four five", "• second", "  • inner"]
    assert rows[5:] == ["9. nine", "10. ten"]


async def test_a_text_that_grows_is_drawn_as_one_that_is_there_at_once(stage) -> None:
    source = "# Head\n\ntext `code`\nand *more*\n\n- a\n- b\n\n```py\nx = 1\n\ny = 2\n```\n\nend"
    shown = MarkdownLines()
    async with stage(shown, size=(40, 30)) as pilot:
        for end in range(1, len(source) + 1):
            shown.show(source[:end])
        await settle(pilot)
        rows = [row.plain.rstrip() for row in draw_markdown(source, 40)]
        assert [row.rstrip() for row in pilot.app.drawn.split("\n")][: len(rows)] == rows
