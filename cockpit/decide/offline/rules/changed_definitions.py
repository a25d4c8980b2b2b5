"""Names that a diff defines, removes, or gives another signature."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import Parameter, Signature

from msgspec import Struct

from cockpit.core.parse_diff import FileDiff, Hunk, Line
from cockpit.decide.offline.rules.code_and_comments import FunctionNode, is_python
from cockpit.decide.offline.rules.review_finding import quote_names

_PYTHON = re.compile(
    r"(?P<indent>\s*)(?:(?:async\s+)?(?P<def>def)\s+|class\s+)(?P<name>[^\W\d]\w*)|"
    r"(?P<constant>[A-Z][A-Z0-9_]{2,})\s*(?::[^=]+)?=(?!=)"
)
_EXPORTED = {
    r"\.[mc]?[jt]sx?\Z": r"export\s+(?:default\s+)?(?:async\s+)?"
    r"(?:function\*?|class|const|let|interface|type|enum)\s+(?P<name>\w+)",
    r"\.go\Z": r"(?:func\s+(?:\([^)]*\)\s*)?|type\s+)(?P<name>[A-Z]\w*)",
    r"\.rs\Z": r"\s*pub\s+(?:async\s+)?(?:fn|struct|enum|trait|const|type)\s+(?P<name>\w+)",
}
_LONGEST_HEADING = 200
"""Git cuts them at 80 bytes."""
_HEADING = re.compile(
    r"(?:(?:export|default|async|pub|static|public|private|protected|abstract|final)\s+)*"
    r"(?:def|class|func|fn|function|struct|interface)\s+(?:\([^)]*\)\s*)?(\w+)"
)
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


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


def defined(file: FileDiff, signs: str) -> Iterator[Definition]:
    """Definitions on the lines of a file that carry one of ``signs`` (``+``, ``-``, blank)."""
    for sign in signs:
        for hunk in file.hunks:
            for at, line in enumerate(hunk.lines):
                if line.sign == sign and (definition := _definition(file, hunk, at, line)):
                    yield definition


def touched(file: FileDiff) -> list[str]:
    """Functions and classes that hold changed lines and were there before, by headings and indentation."""
    fresh = {new.name for new in defined(file, "+")} - {old.name for old in defined(file, "-")}
    names: dict[str, None] = {}
    for hunk in file.hunks:
        heading = _HEADING.search(hunk.heading[:_LONGEST_HEADING])
        name, depth = (heading[1], 0) if heading else ("", 0)
        for line in hunk.lines:
            text = line.text.lstrip()
            indent = len(line.text) - len(text)
            if match := _HEADING.match(text):
                name, depth = match[1], indent
            if line.sign != " " and text and (match or indent > depth) and name not in fresh:
                names[name] = None
    return [name for name in names if name]


def parse_def(text: str) -> FunctionNode | None:
    """The function that a Python ``def`` is the head of, or None when its text is not all there."""
    try:
        node = ast.parse(f"{text.strip()} pass").body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError):
        return None
    return node if isinstance(node, FunctionNode) else None


def signature(text: str) -> Signature | None:
    """The parameters of a Python ``def`` without ``self``, or None when its text is not all there."""
    node = parse_def(text)
    if node is None:
        return None
    given = node.args
    placed = [*given.posonlyargs, *given.args]
    needed = len(placed) - len(given.defaults)
    params = [
        Parameter(each.arg, _BY_PLACE[at >= len(given.posonlyargs)], default=_default(at >= needed))
        for at, each in enumerate(placed)
    ]
    params = params[1:] if params and params[0].name in ("self", "cls") else params
    if given.vararg:
        params.append(Parameter(given.vararg.arg, Parameter.VAR_POSITIONAL))
    params += [
        Parameter(each.arg, Parameter.KEYWORD_ONLY, default=_default(default is not None))
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg:
        params.append(Parameter(given.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(params)


def takes(signature: Signature, call: ast.Call) -> bool:
    """True unless this call certainly does not fit."""
    names = [keyword.arg for keyword in call.keywords]
    if None in names or any(isinstance(each, ast.Starred) for each in call.args):
        return True
    try:
        signature.bind(*call.args, **{str(name): None for name in names})
    except TypeError:
        return False
    return True


def narrower(old: Signature, new: Signature) -> str:
    """In words, how ``new`` refuses calls that ``old`` took; '' when it takes them all."""
    kinds = {each.kind for each in new.parameters.values()}
    gone = sorted(set(_names(old, _BY_NAME)) - set(_names(new, _BY_NAME)))
    needed = sorted(_required(new) - _required(old))
    parts = []
    if gone and Parameter.VAR_KEYWORD not in kinds:
        parts.append(f"no longer takes {quote_names(gone)}")
    if needed:
        parts.append(f"now needs {quote_names(needed)}")
    before, after = _names(old, _BY_PLACE), _names(new, _BY_PLACE)
    if not parts and Parameter.VAR_POSITIONAL not in kinds and after[: len(before)] != before:
        parts.append("takes its arguments in another order")
    return " and ".join(parts)


def _default(given: bool) -> object:
    return None if given else Parameter.empty


def _names(signature: Signature, kinds: tuple[object, ...]) -> list[str]:
    return [each.name for each in signature.parameters.values() if each.kind in kinds]


def _required(signature: Signature) -> set[str]:
    names = {*_names(signature, _BY_PLACE), *_names(signature, _BY_NAME)}
    return {name for name in names if signature.parameters[name].default is Parameter.empty}


def _definition(file: FileDiff, hunk: Hunk, at: int, line: Line) -> Definition | None:
    near = 0 if file.status == "removed" else line.near
    if not is_python(file.path):
        for suffix, pattern in _EXPORTED.items():
            if re.search(suffix, file.path) and (match := re.match(pattern, line.text)):
                return Definition(file.path, line.number, near, match["name"])
        return None
    match = _PYTHON.match(line.text)
    if match is None:
        return None
    text = _whole_def(hunk, at, line.sign) if match["def"] else ""
    name = match["name"] or match["constant"]
    return Definition(file.path, line.number, near, name, bool(match["indent"]), text)


def _whole_def(hunk: Hunk, at: int, sign: str) -> str:
    """A ``def`` up to the colon that ends it, over several lines if need be."""
    text, depth = "", 0
    for line in hunk.lines[at : at + 40]:
        if line.sign != " " and (line.sign == "-") != (sign == "-"):
            continue
        text += line.text.removesuffix("␍") + "\n"
        depth += sum(line.text.count(c) for c in "([{") - sum(line.text.count(c) for c in ")]}")
        if depth <= 0:
            head = re.match(r"\s*(?:async\s+)?def\b.*?\)\s*(?:->[^\n]*?)?:(?=\s)", text, re.DOTALL)
            return head[0] if head else text
    return text
