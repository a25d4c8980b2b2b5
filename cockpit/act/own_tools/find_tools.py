"""Find the tools of a file by its syntax tree: their names and places. Nothing is imported or run.

What a tool takes and does is said by the child process, once the file is approved
(:mod:`cockpit.act.own_tools.describe_tools`). See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import ast
import re

from msgspec import Struct

from cockpit.act.own_tools.tool_files import ToolFile, ToolFileRefused, parse_python

NAME = re.compile(r"[a-z][a-z0-9_]{1,47}", re.ASCII)
"""Names of tools and their aliases."""


class FoundTool(Struct, frozen=True):
    """A tool in its source, before anything of it was run."""

    name: str
    function: str
    line: int
    signature: str
    """Its parameters as they are written."""
    summary: str
    """The first line of its docstring; empty without one."""


def find_tools(file: ToolFile) -> tuple[FoundTool, ...]:
    """Return the functions of ``file`` that are marked as tools, in their order.

    Raises :class:`ToolFileRefused`, whose message names the line, for a name that is computed.
    """
    tree = parse_python(file.name, file.files[file.name])
    marks = _list_marks(tree)
    try:
        return tuple(
            _read(file.name, node, mark)
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for mark in node.decorator_list
            if ast.unparse(mark.func if isinstance(mark, ast.Call) else mark) in marks
        )
    except RecursionError as error:
        raise ToolFileRefused(f"{file.name}: its code is nested too deeply.") from error


def _list_marks(tree: ast.Module) -> set[str]:
    """Return the names under which the file has cockpit's decorator."""
    marks = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "cockpit" and not node.level:
            marks |= {each.asname or "tool" for each in node.names if each.name == "tool"}
        elif isinstance(node, ast.Import):
            names = [each.asname or "cockpit" for each in node.names if each.name == "cockpit"]
            marks |= {f"{name}.tool" for name in names}
    return marks


def _read(file: str, node: ast.FunctionDef | ast.AsyncFunctionDef, mark: ast.expr) -> FoundTool:
    given = [each.value for each in getattr(mark, "keywords", ()) if each.arg == "name"]
    name = given[0].value if given and isinstance(given[0], ast.Constant) else node.name
    if (given and not isinstance(given[0], ast.Constant)) or not isinstance(name, str):
        raise ToolFileRefused(
            f"{file} line {mark.lineno}: name is computed; write it, because cockpit reads it without running"
            " the file."
        )
    summary = (ast.get_docstring(node) or "").partition("\n")[0]
    shown = f"{name or node.name}({ast.unparse(node.args)})"
    return FoundTool(name or node.name, node.name, node.lineno, shown, summary)
