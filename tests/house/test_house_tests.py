"""Tests run what ships, and wait for states: no class of Textual is changed, and no test sleeps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
LONGEST_S = 0.05
SUSPECT = re.compile(r"\bsleep\(|\btextual\b")


def list_faults(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line of each sleep, and of each assignment to a part of Textual."""
    names = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", "") or alias.name).partition(".")[0] == "textual"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            changed: ast.expr = node.value
        elif (
            isinstance(node, ast.Call) and node.args and _name(node.func) in ("setattr", "delattr")
        ):
            changed = node.args[0]
        elif isinstance(node, ast.Call) and node.args and _name(node.func) == "sleep":
            seconds = getattr(node.args[0], "value", 0)
            if isinstance(seconds, int | float) and seconds > LONGEST_S:
                yield node.lineno, f"it sleeps {seconds} s"
            continue
        else:
            continue
        while isinstance(changed, ast.Attribute):
            changed = changed.value
        if _name(changed) in names:
            yield node.lineno, f"it changes {ast.unparse(changed)} of Textual"


def _name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def test_no_test_changes_textual_or_sleeps() -> None:
    faults = [
        f"{path.relative_to(TESTS)}:{line}: {fault}"
        for path in sorted(TESTS.rglob("*.py"))
        if SUSPECT.search(text := path.read_text(encoding="utf-8"))
        for line, fault in list_faults(ast.parse(text))
    ]
    assert faults == []
