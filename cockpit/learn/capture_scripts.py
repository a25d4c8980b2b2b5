"""The files that a short program writes, read from its text: agents edit with scripts as often as with
editors.

Only a path that is written out, or a name with such a value, counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

MOST = 100_000
"""The longest program that is read, in characters."""
_DEEPEST = 20
_NAME = "<captured>"

_WRITES = frozenset("wax+")
_METHODS = frozenset(["write_text", "write_bytes", "touch", "unlink"])
_COPIES = frozenset(["copy", "copy2", "copyfile"])
_MOVES = frozenset(["move", "rename", "replace"])
_REMOVES = frozenset(["remove", "unlink"])
_HINTS = ("open", "write_text", "write_bytes", "touch", "shutil", "os.", "inplace", "unlink")
_NODE = re.compile(
    r"(?:writeFile|appendFile|unlink|rm)(?:Sync)?\(\s*(['\"`])([^'\"`$\n]{1,500})\1", re.ASCII
)


def list_node_writes(code: str) -> list[str]:
    """List the paths that this JavaScript program writes or removes, where they are written out."""
    return [path for _, path in _NODE.findall(code[:MOST])]


def list_python_writes(code: str, before: int | None = None) -> list[str]:
    """List the paths that this Python program writes or removes; none where it does not parse.

    ``before`` is the line at which it failed: that line and the lines below did not run.
    """
    if len(code) > MOST or not any(hint in code for hint in _HINTS):
        return []
    import ast  # only here: a hook that meets no program does not wait for it
    import warnings

    # An agent's odd backslashes must not print a warning on the terminal.
    warnings.filterwarnings("ignore", module=_NAME)
    try:
        tree = ast.parse(code, _NAME)
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.Call)]
        # In the order of the text: a name means what it was given last.
        nodes.sort(key=lambda node: (node.lineno, node.col_offset))
        return _Reading().paths([node for node in nodes if not before or node.lineno < before])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


class _Reading:
    """One program: the paths that its names stand for so far."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def paths(self, nodes: list[ast.Assign | ast.Call]) -> list[str]:
        import ast

        paths: list[str] = []
        for node in nodes:
            if isinstance(node, ast.Call):
                paths += [path for path in self._written(node) if path]
                continue
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._values[target.id] = self._text(node.value)
        return paths

    def _written(self, call: ast.Call) -> list[str]:
        import ast

        name, owner = _called(call)
        module = owner.id if isinstance(owner, ast.Name) else ""
        first = self._text(call.args[0]) if call.args else ""
        if name == "open":
            function = owner is None or module in ("io", "codecs")
            if not _WRITES.intersection(self._mode(call, 1 if function else 0)):
                return []
            return [first if function else self._text(owner)]
        if module in ("os", "shutil"):
            second = self._text(call.args[1]) if len(call.args) > 1 else ""
            if name in _COPIES:
                return [second]
            if name in _MOVES:
                return [first, second]
            return [first] if name in _REMOVES else []
        if name in _METHODS and owner is not None:
            return [self._text(owner)]
        inplace = any(word.arg == "inplace" for word in call.keywords)
        return [first] if name == "input" and inplace else []

    def _mode(self, call: ast.Call, place: int) -> str:
        if len(call.args) > place:
            return self._text(call.args[place])
        return next((self._text(word.value) for word in call.keywords if word.arg == "mode"), "")

    def _text(self, node: ast.expr | None, depth: int = 0) -> str:
        """Return the path that an expression is, or ''."""
        import ast

        if node is None or depth > _DEEPEST:
            return ""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name):
            return self._values.get(node.id, "")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
            left, right = self._text(node.left, depth + 1), self._text(node.right, depth + 1)
            between = "/" if isinstance(node.op, ast.Div) else ""
            return f"{left}{between}{right}" if left and right else ""
        if isinstance(node, ast.Call) and _called(node)[0] in ("Path", "str", "join", "abspath"):
            parts = [self._text(argument, depth + 1) for argument in node.args]
            return "/".join(parts) if all(parts) else ""
        return ""


def _called(call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the name of the called function and its owner: ``shutil.move`` is ``move`` of ``shutil``."""
    name = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
    return str(name), getattr(call.func, "value", None)
