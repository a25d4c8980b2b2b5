"""Code and comments of a line, and the syntax tree of a Python file."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath

from cockpit.decide.offline.rules.reviewed_change import Change

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_LONGEST_LINE = 1_000
"""Characters of a line that are told apart: one that others wrote can be of any length."""
_STRING = re.compile(r"""(["'])(?:(?!\1)[^\\]|\\.)*+\1|`[^`]*+`""")
_HASH = frozenset({".py", ".pyi", ".rb", ".sh", ".bash", ".ex", ".exs", ".php"})
_DASHES = frozenset({".sql", ".lua", ".hs"})
_MASKED = re.compile(r"\[masked:[a-z-]+\]")


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi"))


def split_line(path: str, text: str) -> tuple[str, str]:
    """A line as (code without the insides of strings, comment). Good for one line at a time."""
    bare = _STRING.sub('""', text[:_LONGEST_LINE])
    suffix = PurePosixPath(path).suffix.lower()
    mark = "#" if suffix in _HASH else "--" if suffix in _DASHES else "//"
    if mark == "//":
        if bare.lstrip().startswith(("*", "/*", "<!--")):
            return "", bare
        bare = bare.replace("/*", "//", 1)
    code, _, comment = bare.partition(mark)
    return code, comment


@functools.lru_cache(maxsize=64)
def parse(text: str) -> ast.Module | SyntaxError | None:
    """The tree of a Python file, the error that it has, or None when it cannot be told.

    Rules ask for the same file again and again; the tree is for reading only.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(_MASKED.sub("masked", text))
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError):
            return None


def functions(change: Change, path: str) -> list[FunctionNode]:
    """Every function of a Python file as the change leaves it; none where not all of it is known."""
    parsed = parse(change.whole[path]) if is_python(path) and path in change.whole else None
    nodes = ast.walk(parsed) if isinstance(parsed, ast.Module) else ()
    return [node for node in nodes if isinstance(node, FunctionNode)]


def quoted(change: Change, path: str) -> frozenset[int]:
    """Lines of ``path`` that lie inside a string over several lines, where that is known."""
    return (
        _find_quoted(change.whole[path])
        if path in change.whole and is_python(path)
        else frozenset()
    )


@functools.lru_cache(maxsize=64)
def _find_quoted(text: str) -> frozenset[int]:
    module = parse(text)
    numbers: set[int] = set()
    for node in ast.walk(module) if isinstance(module, ast.Module) else ():
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        ):
            last = node.end_lineno or node.lineno
            numbers.update(range(node.lineno, last + 1) if last > node.lineno else ())
    return frozenset(numbers)


def added_code(change: Change) -> Iterator[tuple[str, int, str]]:
    """Added code, line by line, as (path, line, code); strings, comments and docstrings are out."""
    for file, line in change.added():
        text = line.text.removesuffix("␍")
        code, _ = split_line(file.path, text)
        # Python has no backquotes: such a line is prose of a docstring seen in part.
        prose = is_python(file.path) and "``" in text
        if code.strip() and not prose and line.number not in quoted(change, file.path):
            yield file.path, line.number, code.rstrip()
