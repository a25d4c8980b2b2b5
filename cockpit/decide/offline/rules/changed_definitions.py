"""Names that a diff defines, removes, or gives another signature."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from cockpit.decide.offline.rules.code_and_comments import FunctionNode, is_python
from cockpit.decide.offline.rules.parse_diff import FileDiff, Hunk, Line

_PYTHON = re.compile(
    r"(?P<indent>\s*)(?:(?:async\s+)?(?P<def>def)\s+|class\s+)(?P<name>[^\W\d]\w*)|"
    r"(?P<constant>[A-Z][A-Z0-9_]{2,})\s*(?::[^=]+)?=(?!=)"
)
_EXPORTED = (
    (
        re.compile(r"\.[mc]?[jt]sx?\Z"),
        re.compile(
            r"export\s+(?:default\s+)?(?:async\s+)?"
            r"(?:function\*?|class|const|let|interface|type|enum)\s+(?P<name>\w+)"
        ),
    ),
    (re.compile(r"\.go\Z"), re.compile(r"(?:func\s+(?:\([^)]*\)\s*)?|type\s+)(?P<name>[A-Z]\w*)")),
    (
        re.compile(r"\.rs\Z"),
        re.compile(r"\s*pub\s+(?:async\s+)?(?:fn|struct|enum|trait|const|type)\s+(?P<name>\w+)"),
    ),
)


class Definition(Struct, frozen=True):
    """A name defined on a line. ``line`` counts on its side of the diff, ``near``
    in the new file (0 when the file is gone); ``member`` is True for what is indented (a method);
    ``signature`` is the whole of a Python ``def``."""

    path: str
    line: int
    near: int
    name: str
    member: bool = False
    signature: str = ""

    @property
    def public(self) -> bool:
        return not self.name.startswith("_")


class Signature(Struct, frozen=True):
    """The parameters of a Python function, without ``self`` or ``cls``.

    ``placed`` are those that a call may fill by position, in order; ``required`` those without a
    default; ``named`` may be given by name. ``more`` and ``any_name``: it takes ``*args``, ``**kw``.
    """

    placed: tuple[str, ...]
    required: frozenset[str]
    named: frozenset[str]
    more: bool
    any_name: bool

    def takes(self, call: ast.Call) -> bool:
        """True unless this call certainly does not fit."""
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return True
        names = [keyword.arg for keyword in call.keywords]
        if None in names:
            return True
        filled = set(self.placed[: len(call.args)])
        if len(call.args) > len(self.placed) and not self.more:
            return False
        if not self.any_name and not set(names) <= self.named:
            return False
        return not filled & set(names) and self.required <= filled | set(names)


def defined(file: FileDiff, sign: str) -> Iterator[Definition]:
    """Definitions on the lines of ``one`` that carry ``sign`` (``+``, ``-`` or blank)."""
    for hunk in file.hunks:
        for at, line in enumerate(hunk.lines):
            if line.sign == sign and (definition := _definition(file, hunk, at, line)):
                yield definition


def signature(text: str) -> Signature | None:
    """What a Python ``def`` takes, or None when its text is not all there."""
    try:
        node = ast.parse(f"{text.strip()} pass").body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError):
        return None
    if not isinstance(node, FunctionNode):
        return None
    arguments = node.args
    placed = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    optional = set(placed[len(placed) - len(arguments.defaults) :] if arguments.defaults else [])
    required = [name for name in placed if name not in optional]
    if placed[:1] in (["self"], ["cls"]):
        placed, required = placed[1:], required[1:]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is None:
            required.append(argument.arg)
    only_placed = {argument.arg for argument in arguments.posonlyargs}
    named = ({*placed} - only_placed) | {argument.arg for argument in arguments.kwonlyargs}
    return Signature(
        placed=tuple(placed),
        required=frozenset(required),
        named=frozenset(named),
        more=arguments.vararg is not None,
        any_name=arguments.kwarg is not None,
    )


def narrower(old: Signature, new: Signature) -> str:
    """In words, how ``new`` refuses calls that ``old`` took; '' when it takes them all."""
    gone = sorted(old.named - new.named) if not new.any_name else []
    needed = sorted(new.required - old.required)
    parts = []
    if gone:
        parts.append(f"no longer takes {_quoted(gone)}")
    if needed:
        parts.append(f"now needs {_quoted(needed)}")
    if not parts and not new.more and new.placed[: len(old.placed)] != old.placed:
        parts.append("takes its arguments in another order")
    return " and ".join(parts)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _definition(file: FileDiff, hunk: Hunk, at: int, line: Line) -> Definition | None:
    near = 0 if file.status == "removed" else line.near
    if not is_python(file.path):
        for suffix, pattern in _EXPORTED:
            if suffix.search(file.path) and (match := pattern.match(line.text)):
                return Definition(file.path, line.number, near, match["name"])
        return None
    match = _PYTHON.match(line.text)
    if match is None:
        return None
    if match["constant"]:
        return Definition(file.path, line.number, near, match["constant"])
    text = _whole_def(hunk, at, line.sign) if match["def"] else ""
    return Definition(file.path, line.number, near, match["name"], bool(match["indent"]), text)


def _whole_def(hunk: Hunk, at: int, sign: str) -> str:
    """A ``def`` up to the colon that ends it, over several lines if need be."""
    text, depth = "", 0
    for line in hunk.lines[at : at + 40]:
        if line.sign not in (sign, " "):
            continue
        text += line.text.removesuffix("␍") + "\n"
        depth += sum(line.text.count(c) for c in "([{") - sum(line.text.count(c) for c in ")]}")
        if depth <= 0:
            head = re.match(r"\s*(?:async\s+)?def\b.*?\)\s*(?:->[^\n]*?)?:(?=\s)", text, re.DOTALL)
            return head[0] if head else text
    return text
