"""A proposal's text is drawn as Markdown, which joins lines: code and text that a program gets are fenced."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from cockpit.access.confined_paths import Confined
from cockpit.act.named_scripts import find_scripts
from cockpit.act.own_tools.preview_call import render_arguments
from cockpit.loop.permissions.permission_body import describe_request, find_place
from cockpit.loop.permissions.read_tool_request import read_claude_tool

CODE = (
    "# All that follows is a comment\nimport os\nif x:\n    os.remove(y)\n```\n~~~\n\n\n* a\n    b"
)


def kept_lines(body: str) -> list[str]:
    """Return the lines that no Markdown joins or indents anew."""
    tokens = MarkdownIt("commonmark").parse(body)
    return [line for token in tokens if token.type == "fence" for line in token.content.split("\n")]


def is_kept(body: str, indent: str = "") -> bool:
    lines = kept_lines(body)
    wanted = [f"{indent}{line}" for line in CODE.split("\n")]
    return any(lines[at : at + len(wanted)] == wanted for at in range(len(lines)))


@pytest.mark.parametrize("name", ["a.sh", "a b.sh", "`.sh", "a\nb.sh"])
def test_a_script_is_shown_line_by_line(tmp_path, name):
    (tmp_path / name).write_text(CODE, encoding="utf-8")
    body = find_scripts(("sh", name), Confined(tmp_path)).body()
    assert is_kept(body), body


def test_a_tool_s_arguments_are_shown_line_by_line() -> None:
    assert is_kept(render_arguments({"path": "a.py", "script": CODE}), indent="  ")
    assert render_arguments({}) == ""


def test_a_notebook_s_cell_is_shown_line_by_line(tmp_path):
    request = read_claude_tool("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": CODE})
    body = describe_request(request, find_place(tmp_path)).body["body"]
    assert is_kept(body), body
