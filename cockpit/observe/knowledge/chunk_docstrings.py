"""Cut the doc comments out of source code: Python's docstrings, and comments above shell functions.

Nothing is imported or run: Python is read by its syntax tree, shell text by tree-sitter. See
``docs/reference/knowledge.md``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cockpit.observe.knowledge.chunk_markdown import LONGEST, MOST_CHUNKS, join_title
from cockpit.observe.knowledge.passage import Chunk
from cockpit.observe.outline import parse_python

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SOURCE_CHARS = 150_000
"""Longer source files are not parsed: they are generated, and a parser cannot be interrupted."""
_DEEPEST = 12
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_SHEBANG = re.compile(r"#!")


def chunk_python(text: str, path: str) -> list[Chunk]:
    """Return one chunk for each module, class and function with a docstring; none of invalid source.

    A chunk reaches from the line of ``def`` or ``class`` to the end of the docstring; its title names the
    module and the definitions around it.
    """
    if len(text) > MAX_SOURCE_CHARS:
        return []
    tree = parse_python(text)
    if tree is None:
        return []
    lines = text.split("\n")
    return [
        Chunk(first, last, join_title(path, *names), "\n".join(lines[first - 1 : last])[:LONGEST])
        for first, last, names in _walk(tree, (), 0)
    ][:MOST_CHUNKS]


def _walk(
    node: _Documented, names: tuple[str, ...], depth: int
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    doc = _docstring(node)
    if doc is not None and doc.end_lineno is not None:
        first = doc.lineno if isinstance(node, ast.Module) else node.lineno
        yield first, doc.end_lineno, names
    if depth >= _DEEPEST:
        return
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(child, (*names, child.name), depth + 1)


def _docstring(node: _Documented) -> ast.expr | None:
    if not node.body or not isinstance(node.body[0], ast.Expr):
        return None
    value = node.body[0].value
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.strip():
        return value
    return None


def chunk_shell(text: str, path: str) -> list[Chunk]:
    """Return the comment at the top of a shell script, and those directly above its functions."""
    if len(text) > MAX_SOURCE_CHARS:
        return []
    from cockpit.access.parse_shell import shell_parser

    root = shell_parser().parse(text.encode("utf-8", "replace")).root_node
    lines = text.split("\n")
    comments: list[Node] = []
    chunks: list[Chunk] = []
    at_top = True
    for node in root.children:
        if node.type == "comment":
            if comments and node.start_point[0] != comments[-1].end_point[0] + 1:
                chunks += _top(comments, lines, path) if at_top else ()
                comments, at_top = [], False
            comments.append(node)
            continue
        follows = bool(comments) and node.start_point[0] == comments[-1].end_point[0] + 1
        if node.type == "function_definition" and follows:
            name = node.child_by_field_name("name")
            label = (
                "" if name is None or name.text is None else name.text.decode("utf-8", "replace")
            )
            first, last = comments[0].start_point[0], node.start_point[0]
            body = "\n".join(lines[first : last + 1])[:LONGEST]
            chunks.append(Chunk(first + 1, last + 1, join_title(path, label), body))
        elif at_top:
            chunks += _top(comments, lines, path)
        comments, at_top = [], False
    if at_top:
        chunks += _top(comments, lines, path)
    return chunks[:MOST_CHUNKS]


def _top(comments: Sequence[Node], lines: Sequence[str], path: str) -> Iterator[Chunk]:
    """Return the script's own comment, without the line that names its interpreter."""
    rows = [node.start_point[0] for node in comments]
    if rows and _SHEBANG.match(lines[rows[0]]):
        rows = rows[1:]
    if rows:
        text = "\n".join(lines[rows[0] : rows[-1] + 1])[:LONGEST]
        yield Chunk(rows[0] + 1, rows[-1] + 1, join_title(path), text)
