"""Print how large the program is: ``sizes.py [FOLDER…]``. It informs and never fails.

A code line is a line with a token of Python on it that is neither a comment nor a docstring.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NO_CODE = frozenset(
    (
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    )
)
_RECORDS = ("Struct", "NamedTuple", "TypedDict")
_FOLDERS = ("cockpit", "widgets", "themes", "tests", "bench")


def count_code(text: str) -> tuple[int, int]:
    """Return the code lines and the tokens of a module."""
    docstrings = _find_docstrings(ast.parse(text))
    lines: set[int] = set()
    tokens = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _NO_CODE or token.start[0] in docstrings:
            continue
        tokens += 1
        lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines), tokens


def _find_docstrings(tree: ast.AST) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if is_text and isinstance(statement.value.value, str):
                lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return lines


def count_records(tree: ast.AST) -> tuple[int, int]:
    """Return the record classes of a module, and their fields."""
    records = [
        [line for line in node.body if isinstance(line, ast.AnnAssign)]
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and (
            any(_last_name(base) in _RECORDS for base in node.bases)
            or any(_last_name(mark) == "dataclass" for mark in node.decorator_list)
        )
    ]
    return len(records), sum(map(len, records))


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return ast.unparse(node).rpartition(".")[2]


def print_faces() -> None:
    """Print how much of each kind the program offers."""
    import click

    from cockpit.api.application import OPERATIONS
    from cockpit.cli import root
    from cockpit.config.all_settings import KEYS
    from cockpit.mcp.tool_registry import TOOLS
    from cockpit.store.journal.details.table import DETAILS

    commands = list(_list_commands(root))
    options = [
        each
        for command in commands
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]
    print(
        f"{len(commands)} commands with groups, {len(options)} options, {len(KEYS)} settings,"
        f" {len(OPERATIONS)} HTTP operations, {len(TOOLS)} MCP tools, {len(DETAILS)} event types"
    )


def _list_commands(command: Any) -> Iterator[Any]:
    yield command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        inner = command.get_command(None, name)
        if not inner.hidden:
            yield from _list_commands(inner)


def main(folders: list[str]) -> None:
    """Print a line for each folder."""
    for folder in folders or _FOLDERS:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder],
            capture_output=True, text=True, check=True,
        ).stdout.split("\0")  # fmt: skip
        files = [Path(name) for name in listed if name and Path(name).is_file()]
        modules = [file for file in files if file.suffix == ".py"]
        counted = [count_code(file.read_text(encoding="utf-8")) for file in modules]
        data = sum(
            file.stat().st_size for file in files if file.suffix in (".sql", ".tcss", ".toml")
        )
        print(
            f"{folder:24} {len(modules):6,} modules {sum(each[0] for each in counted):8,} code lines"
            f" {sum(each[1] for each in counted):10,} tokens {data:9,} bytes of SQL, TCSS and TOML"
        )
        if folder == "cockpit":
            trees = [ast.parse(file.read_text(encoding="utf-8")) for file in modules]
            records, fields = map(sum, zip(*map(count_records, trees), strict=True))
            print(f"{'':24} {records:6,} record classes {fields:6,} fields")
    if not folders:
        print_faces()


if __name__ == "__main__":
    main(sys.argv[1:])
