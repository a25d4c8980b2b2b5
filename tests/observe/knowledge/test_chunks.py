"""How documents are cut: headings, fences, tables, docstrings; lines are those of the file."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.observe.knowledge.chunk_document import chunk_document, kind_of_file
from cockpit.observe.knowledge.chunk_markdown import LONGEST, chunk_markdown, chunk_plain

GUIDE = """\
---
title: How to deploy
---
# Deploy

Read this first.

## Roll back

Run this:

```sh
# not a heading
deploy --back

deploy --check
```

| a | b |
| --- | --- |
| 1 | 2 |

Other heading
-------------

Last words.
"""


def test_headings_above_a_chunk_are_its_title() -> None:
    chunks = {chunk.title: chunk for chunk in chunk_markdown(GUIDE)}
    assert set(chunks) == {"", "Deploy", "Deploy › Roll back", "Deploy › Other heading"}
    back = chunks["Deploy › Roll back"]
    lines = GUIDE.split("\n")
    assert "\n".join(lines[back.start - 1 : back.end]) == back.text
    assert back.text.startswith("## Roll back") and "| 1 | 2 |" in back.text


def test_a_fence_stays_whole_although_it_passes_the_target() -> None:
    fence = "```\n" + "word " * 400 + "\n\n" + "more " * 200 + "\n```"
    chunks = chunk_markdown(f"# T\n\npara\n\n{fence}\n\nafter\n")
    assert [fence in chunk.text for chunk in chunks].count(True) == 1


def test_a_long_list_is_cut_between_its_items() -> None:
    items = [f"- item {number} " + "x" * 200 for number in range(40)]
    chunks = chunk_markdown("# T\n\n" + "\n".join(items))
    assert len(chunks) > 4
    assert all(
        line.startswith(("# T", "- item")) or not line
        for c in chunks
        for line in c.text.split("\n")
    )


def test_headings_of_restructured_text_and_asciidoc() -> None:
    rst = "=====\nGuide\n=====\n\nWelcome.\n\nSetup\n=====\n\nInstall it.\n\nTools\n-----\n\nA list.\n"
    assert [chunk.title for chunk in chunk_plain(rst)] == [
        "Guide", "Guide › Setup", "Guide › Setup › Tools",
    ]  # fmt: skip
    assert [c.title for c in chunk_plain("= Book\n\nHi.\n\n== Part\n\nText.\n")] == [
        "Book",
        "Book › Part",
    ]


def test_docstrings_with_their_definitions() -> None:
    source = (
        '"""Module."""\n\n@deco\nclass A:\n    """Class."""\n\n'
        '    async def b(self):\n        """Method\n        here."""\n\n'
        "    def bare(self):\n        pass\n"
    )
    chunks = chunk_document("docstring", "src/a.py", "", source)
    assert [(c.title, c.start, c.end) for c in chunks] == [
        ("src/a.py", 1, 1),
        ("src/a.py › A", 4, 5),
        ("src/a.py › A › b", 7, 9),
    ]
    assert chunks[2].text == '    async def b(self):\n        """Method\n        here."""'
    assert chunk_document("docstring", "bad.py", "", "def (:\n") == []


def test_comments_of_a_shell_script() -> None:
    script = (
        "#!/bin/sh\n# Build the thing.\n# Twice.\n\n# apart\n\n"
        "# Clean up.\nclean() {\n  # inner\n  rm -f x\n}\n"
    )
    chunks = chunk_document("docstring", "build.sh", "", script)
    assert [(c.title, c.start, c.end) for c in chunks] == [
        ("build.sh", 2, 3),
        ("build.sh › clean", 7, 8),
    ]


def test_kinds_of_files() -> None:
    names = ("README.md", "docs/a.RST", "x.txt", "a.py", "run.sh", "photo.png", "Makefile")
    assert [kind_of_file(name) for name in names] == [
        "docs", "docs", "docs", "docstring", "docstring", None, None,
    ]  # fmt: skip


@pytest.mark.search
@settings(max_examples=examples(15), deadline=None)
@given(
    st.text(alphabet="# =-`~>*|\n\tab1.\"'[]()\x0c\u2028é", max_size=400),
    st.sampled_from(["a.md", "a.rst"]),
)
def test_any_text_is_cut_into_its_own_lines(text: str, name: str) -> None:
    lines = text.split("\n")
    last = 0
    for chunk in chunk_document("docs", name, "", text):
        assert chunk.start > last and chunk.end <= len(lines)
        assert "\n".join(lines[chunk.start - 1 : chunk.end]) == chunk.text
        assert len(chunk.text) <= LONGEST
        last = chunk.end
