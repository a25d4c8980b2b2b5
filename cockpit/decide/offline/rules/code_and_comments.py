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

_QUOTE = re.compile(r"[\"'`]")
_STRINGS = {
    '"': re.compile(r'"(?:[^"\\]++|\\.)*+"'),
    "'": re.compile(r"'(?:[^'\\]++|\\.)*+'"),
    "`": re.compile(r"`[^`]*+`"),
}
_HASH = frozenset({".py", ".pyi", ".rb", ".sh", ".bash", ".ex", ".exs", ".php"})
_DASHES = frozenset({".sql", ".lua", ".hs"})
_MASKED = re.compile(r"\[masked:[a-z-]+\]")


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi"))


def split_line(path: str, text: str) -> tuple[str, str]:
    """A line as (code without the insides of strings, comment). Good for one line at a time."""
    bare = _empty_strings(text)
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _HASH:
        mark = "#"
    elif suffix in _DASHES:
        mark = "--"
    else:
        mark = "//"
        if bare.lstrip().startswith(("*", "/*", "<!--")):
            return "", bare
        bare = bare.replace("/*", "//", 1)
    code, separator, comment = bare.partition(mark)
    return code, comment if separator else ""


def _empty_strings(text: str) -> str:
    parts: list[str] = []
    unclosed: set[str] = set()
    at = looked = 0
    while quote := _QUOTE.search(text, looked):
        looked = quote.end()
        if quote[0] in unclosed:
            continue
        if string := _STRINGS[quote[0]].match(text, quote.start()):
            parts += [text[at : quote.start()], '""']
            at = looked = string.end()
        else:
            unclosed.add(quote[0])  # what closes none here closes none further on
    return "".join([*parts, text[at:]])


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


def tree(change: Change, path: str) -> ast.Module | None:
    """The syntax tree of ``path`` as the change leaves it, where all of it is known."""
    if not is_python(path) or path not in change.whole:
        return None
    parsed = parse(change.whole[path])
    return parsed if isinstance(parsed, ast.Module) else None


def functions(module: ast.Module) -> Iterator[FunctionNode]:
    for node in ast.walk(module):
        if isinstance(node, FunctionNode):
            yield node


def binds(text: str, name: str) -> bool:
    """True when a Python file gives ``name`` a meaning beside its definition: a variable, a
    parameter, an import."""
    module = parse(text)
    for node in ast.walk(module) if isinstance(module, ast.Module) else ():
        match node:
            case ast.Name(id=found, ctx=ast.Store() | ast.Del()) if found == name:
                return True
            case ast.arg(arg=found) if found == name:
                return True
            case ast.alias() if name in (node.asname, node.name):
                return True
    return False


def quoted(change: Change, path: str) -> frozenset[int]:
    """Lines of ``path`` that lie inside a string over several lines, where that is known."""
    whole = change.whole.get(path) if is_python(path) else None
    return _quoted(whole) if whole is not None else frozenset()


@functools.lru_cache(maxsize=64)
def _quoted(text: str) -> frozenset[int]:
    module = parse(text)
    line_numbers: set[int] = set()
    for node in ast.walk(module) if isinstance(module, ast.Module) else ():
        if not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        is_text = isinstance(node, ast.JoinedStr) or isinstance(node.value, str | bytes)
        if is_text and node.end_lineno != node.lineno:
            line_numbers.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(line_numbers)


def added_code(change: Change) -> Iterator[tuple[str, int, str]]:
    """Added code, line by line, as (path, line, code); strings, comments and docstrings are out."""
    for file in change.files:
        inside = quoted(change, file.path)
        for line in file.added:
            if line.number not in inside:
                text = line.text.removesuffix("␍")
                code, _ = split_line(file.path, text)
                # Python has no backquotes: such a line is prose of a docstring seen in part.
                prose = is_python(file.path) and "``" in text
                if code.strip() and not prose:
                    yield file.path, line.number, code.rstrip()
