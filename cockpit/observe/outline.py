"""Outlines: the shape of a file in a fraction of its tokens.

Python by its syntax tree (signatures, first line of each docstring); other languages by the lines
that open something; anything else by its first lines.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings

_QUIET = threading.Lock()  # catch_warnings changes the whole process's filters and back

MOST_ENTRIES = 400
"""Entries of one outline; the rest are counted."""
_HEAD = 40
_HEADING = re.compile(r"#{1,6} \S")
_OPENS = re.compile(
    r"\s{0,8}(?:(?:export|default|public|private|protected|internal|static|final|abstract|async"
    r"|pub(?:\([a-z]{1,10}\))?|unsafe|extern|inline|override|open|data|sealed)\s{1,4}){0,5}"
    r"(?:function|class|interface|struct|enum|union|impl|trait|fn|func|def|defp?|defmodule|module"
    r"|namespace|package|type|object|record|protocol|extension|macro_rules!|sub|procedure)\b"
)
_C_FUNCTION = re.compile(r"[A-Za-z_][\w\s*&:<>,]{0,120}\([^;{}]{0,200}\)?\s{0,4}\{?\s*")
_C_SUFFIXES = (".c", ".h", ".cc", ".cpp", ".hpp", ".cxx", ".java", ".cs", ".m")
_MARKDOWN = (".md", ".markdown", ".rst", ".txt")


def text_lines(text: str) -> list[str]:
    """Lines as git, editors and compilers count them: ended by a newline and nothing else.

    Each keeps its newline, so that joining them gives the text.
    """
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def parse_python(text: str) -> ast.Module | None:
    """The syntax tree, or None when there is none (also for text nested too deep to parse)."""
    try:
        with _QUIET, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def outline(path: str, text: str, *, first: int = 1) -> str:
    """The outline of ``text``, whose first line has the number ``first`` in ``path``.

    One line an entry, each beginning with its line number.
    """
    if path.endswith((".py", ".pyi")):
        tree = parse_python(text)
        if tree is not None:
            entries = _python(tree, first)
            if entries:
                return _bounded(entries)
    lines = text_lines(text)
    chosen = [
        f"{first + at}: {line.rstrip()[:160]}"
        for at, line in enumerate(lines)
        if opens_something(path, line)
    ]
    if len(chosen) >= 2:
        return _bounded(chosen)
    head = [f"{first + at}: {line.rstrip()[:160]}" for at, line in enumerate(lines[:_HEAD])]
    more = len(lines) - _HEAD
    return "\n".join([*head, f"… {more} more lines"] if more > 0 else head)


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    """A definition's first line, as Python writes it."""
    try:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases]
            bases += [f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords if k.arg]
            return f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
        word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"{word} {node.name}({ast.unparse(node.args)}){returns}"
    except RecursionError:
        return node.name


def _python(tree: ast.Module, first: int) -> list[str]:
    entries: list[str] = []
    if doc := _doc(tree):
        entries.append(f"{first}: {doc.removeprefix('  # ')}")

    def walk(body: list[ast.stmt], depth: int) -> None:
        for node in body:
            number = first + node.lineno - 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                pad = "    " * depth
                entries.append(f"{number}: {pad}{signature(node)[:200]}{_doc(node)}")
                if isinstance(node, ast.ClassDef):
                    walk(node.body, depth + 1)
            elif depth == 0 and isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [t.id for t in targets if isinstance(t, ast.Name)]
                if names:
                    entries.append(f"{number}: {', '.join(names)} = …")

    walk(tree.body, 0)
    return entries


def _doc(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    doc = ast.get_docstring(node)
    return f"  # {doc.splitlines()[0][:120]}" if doc else ""


def opens_something(path: str, line: str) -> bool:
    """Whether a line (of a file that is not Python) begins a heading or a definition."""
    if len(line) > 400:
        return False
    if path.endswith(_MARKDOWN):
        return _HEADING.match(line) is not None
    if _OPENS.match(line):
        return True
    return path.endswith(_C_SUFFIXES) and _C_FUNCTION.fullmatch(line) is not None


def _bounded(entries: list[str]) -> str:
    if len(entries) <= MOST_ENTRIES:
        return "\n".join(entries)
    return "\n".join([*entries[:MOST_ENTRIES], f"… {len(entries) - MOST_ENTRIES} more entries"])
