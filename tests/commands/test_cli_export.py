"""A session as a file: everything of it, nothing that acts on whoever reads it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_world import Project
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from state_for_tests import state_of

from cockpit.commands.sessions.export import markdown, picture

pytestmark = pytest.mark.slow


def test_a_session_is_written_whole(project: Project, tmp_path: Path) -> None:
    words = ("run", "review main..feature", "--model", project.script())
    project.run(*words, "--approve", "all")
    document = project.json("sessions", "export", "last", "--format", "json")
    assert document["format"] == "cockpit.session/1"
    assert document["result"] == {"status": "done", "summary": "Notes written."}
    kinds = [entry["kind"] for entry in document["entries"]]
    assert kinds.count("wave") == 3
    said = [entry["text"] for entry in document["entries"] if entry["kind"] == "message"]
    assert said[-3:] == [
        "I need two files before I judge this.",
        "I write my notes down.",
        "That is all.",
    ]
    (action,) = (e for e in document["entries"] if e.get("proposal_kind") == "action")
    assert (action["status"], action["verdict"]["by"]) == ("approved", "policy:all")
    (result,) = (e for e in document["entries"] if e["kind"] == "result")
    assert (result["status"], result["proposal_id"]) == ("confirmed", action["proposal_id"])

    text = project.run("sessions", "export", document["session_id"]).stdout
    for part in ("## Wave 3", "> I write my notes down.", "approved by policy:all", "+# Notes"):
        assert part in text
    file = tmp_path / "session.svg"
    project.run("sessions", "export", "last", str(file))
    drawn = "".join(ElementTree.parse(file).getroot().itertext()).replace("\xa0", " ")
    assert "I write my notes down." in drawn
    assert "approved by policy:all" in drawn
    project.run("sessions", "export", "last", str(tmp_path / "no" / "where.md"), expect=2)
    # Masked even where the journal has it.
    secret = "ghp_" + "a1B2" * 9
    change = "UPDATE journal SET detail_json=replace(detail_json, 'I write my notes down.', ?)"
    with closing(sqlite3.connect(state_of(project.root) / "cockpit.db")) as connection, connection:
        connection.execute(change, (secret,))
    for form in ("md", "json", "svg"):
        assert secret not in project.run("sessions", "export", "last", "--format", form).stdout
    project.run("sessions", "export", "s-none", expect=2)


PIECES = [
    *("```", "~~~", "\n", "\n", "- ", "    ", "  ", "> ", "`", "<img src=x>", "<script>", "</div>"),
    *("<!--", "![a](http://x.example/b)", "\\", "words", "#", "\t", "&", "[a]: <b>", "1. ", "***"),
]


def told(text: str, title: str = "A title") -> dict[str, object]:
    message = {"kind": "message", "at": "2026-01-01", "title": "agent", "text": text}
    about = {"session_id": "s-1", "task_type": "chore", "model": "offline", "title": title}
    times = {"status": "completed", "created_at": "2026-01-01T00:00:00Z"}
    return {**about, **times, "entries": [message]}


@pytest.mark.search
@settings(max_examples=examples(40))
@given(st.lists(st.sampled_from(PIECES), max_size=24))
def test_text_of_a_session_is_neither_html_nor_a_picture_nor_a_heading_of_ours(
    parts: list[str],
) -> None:
    tokens = MarkdownIt("commonmark").parse(markdown(told("".join(parts))))
    inside = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inside)}
    assert not kinds & {"html_block", "html_inline", "image"}
    outside = [token for token in tokens if token.level == 0 and token.type == "heading_open"]
    assert len(outside) == 1


def test_code_stays_code_and_a_picture_is_sound() -> None:
    text = "Try:\n\n- one\n\n  ```html\n  <img src=x>\n  ```\n\nand `a < b`, <b>c</b>"
    document = markdown(told(text))
    assert ">   <img src=x>" in document
    assert "`a < b`, &lt;b>c&lt;/b>" in document
    for text in ("]]></svg><script>x</script>", "\x1b]52;c;eA==\x07a", "\ufffe\x00&<>"):
        drawn = picture(told(text, text))
        names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()}
        assert names <= {"svg", "style", "defs", "clipPath", "rect", "text", "g", "circle"}
        pattern = r"https?://(?!www\.w3\.org/2000/svg)|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
        assert not re.search(pattern, drawn)
