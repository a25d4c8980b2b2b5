"""The uses of a name, as far as the packet shows them, and how certain each is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from cockpit.decide.offline.rules.changed_definitions import Definition
from cockpit.decide.offline.rules.code_and_comments import binds, quoted, split_line
from cockpit.decide.offline.rules.reviewed_change import Change, Reference, is_code

_CALL_LINES = 12


def uses(change: Change, name: str) -> Iterator[Reference]:
    """Lines of code at the tip that hold ``name``, each once, by place; definitions are left out."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    by_place: dict[tuple[str, int], Reference] = {}
    for path, lines in change.lines.items():
        inside = quoted(change, path)
        for number, text in lines.items():
            if word.search(text) and number not in inside:
                by_place[path, number] = Reference(path, number, text)
    for reference in change.references:
        line_text = change.lines.get(reference.path, {}).get(reference.line)
        if line_text is None and word.search(reference.text):
            by_place.setdefault((reference.path, reference.line), reference)
    for key in sorted(by_place):
        use = by_place[key]
        code, _ = split_line(use.path, use.text)
        if is_code(use.path) and word.search(code) and not _defines(name, code):
            yield use


def certain(change: Change, use: Reference, target: Definition) -> bool:
    """Return whether ``use`` can only mean ``target``: it is in the same file, imports the name from the
    target's module, is qualified with the module, or is in a file that imports it."""
    elsewhere = use.path != target.path
    if elsewhere and any(_defines(target.name, text) for text in _lines_of(change, use.path)):
        return False
    code, _ = split_line(use.path, use.text)
    name, module = re.escape(target.name), re.escape(PurePosixPath(target.path).stem)
    if target.member:
        return use.path == target.path and bool(re.search(rf"\b(?:self|cls)\.{name}\b", code))
    if re.search(rf"(?<![\w.]){module}\.{name}\b", code):
        return True
    if re.search(rf"\.{name}\b", code):
        return False
    if use.path == target.path:
        # In a file seen in part, a word may stand in a docstring: only a call is surely code.
        code_like = use.path in change.whole or target.name.isupper()
        return (code_like or called_or_imported(use, target.name)) and not _bound(
            change, use.path, target.name
        )
    imports = re.compile(
        rf"from\s+[\w.]*(?<!\w){module}\s+import\b.*\b{name}\b|"
        rf"import\s*\{{[^}}]*\b{name}\b[^}}]*\}}\s*from"
    )
    return any(imports.search(text) for text in _lines_of(change, use.path))


def _bound(change: Change, path: str, name: str) -> bool:
    """True when the file gives ``name`` another meaning somewhere, as far as it is known."""
    if path in change.whole and binds(change.whole[path], name):
        return True
    word = re.escape(name)
    means = re.compile(
        rf"\b{word}\s*(?::[^=]+)?=(?!=)|\b(?:as|for)\s+{word}\b|\bdef\s+\w+\(.*\b{word}\b|"
        rf"^\s*{word}\s*[:,]|,\s*{word}\s*,"
    )
    return any(means.search(text) for text in change.lines.get(path, {}).values())


def called_or_imported(use: Reference, name: str) -> bool:
    """True when the line calls ``name`` or imports it: more than a word that happens to be there."""
    word = re.escape(name)
    return bool(re.search(rf"\b{word}\s*\(|\bimport\b.*\b{word}\b", use.text))


def call_at(change: Change, use: Reference, name: str) -> ast.Call | None:
    """The call of ``name`` that starts on this line, where all of it is known."""
    match = re.search(rf"\b{re.escape(name)}\s*\(", use.text)
    if match is None:
        return None
    text = use.text[match.start() :] + "\n"
    text += "\n".join(change.after(use.path, use.line, _CALL_LINES))
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and depth == 0:
            return _parsed(text[: at + 1])
    return None


def _parsed(text: str) -> ast.Call | None:
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return node if isinstance(node, ast.Call) else None


def _lines_of(change: Change, path: str) -> Iterator[str]:
    yield from change.lines.get(path, {}).values()
    for reference in change.references:
        if reference.path == path:
            yield reference.text


def _defines(name: str, code: str) -> bool:
    escaped = re.escape(name)
    return bool(
        re.match(
            rf"\s*(?:(?:export\s+|pub\s+|default\s+|async\s+)*"
            rf"(?:def|class|func|fn|function|struct|enum|trait|interface|type|const|let)\s+"
            rf"(?:\([^)]*\)\s*)?{escaped}\b|{escaped}\s*(?::[^=]+)?=(?!=))",
            code,
        )
    )
