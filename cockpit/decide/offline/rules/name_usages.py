"""The uses of a name, as far as the packet shows them, and how certain each is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from cockpit.decide.offline.rules.changed_definitions import Definition
from cockpit.decide.offline.rules.code_and_comments import quoted, split_line
from cockpit.decide.offline.rules.reviewed_change import Change, Reference, is_code

_CALL_LINES = 12


def sorted_uses(change: Change, target: Definition) -> tuple[list[Reference], list[Reference]]:
    """Lines of code that use ``target``, and those that may mean another of its name."""
    found = list(_uses(change, target.name))
    sure = [use for use in found if _is_certain(change, use, target)]
    called = _called_or_imported(target.name)
    return sure, [use for use in found if use not in sure and called.search(use.text)]


def call_at(change: Change, use: Reference, name: str) -> ast.Call | None:
    """The call of ``name`` that starts on this line, where all of it is known."""
    match = re.search(rf"\b{re.escape(name)}\s*\(", use.text)
    if match is None:
        return None
    following = change.after(use.path, use.line, _CALL_LINES)
    text = "\n".join([use.text[match.start() :], *following])
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and depth == 0:
            try:
                node = ast.parse(text[: at + 1], mode="eval").body
            except (SyntaxError, ValueError, RecursionError):
                return None
            return node if isinstance(node, ast.Call) else None
    return None


def _uses(change: Change, name: str) -> Iterator[Reference]:
    """Lines of code at the tip that hold ``name``, each once, by place; definitions are left out."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    defines = _defines(name)
    places = {
        (path, number): text
        for path, lines in change.lines.items()
        for number, text in lines.items()
        if word.search(text) and number not in quoted(change, path)
    }
    for each in change.references:
        if each.line not in change.lines.get(each.path, {}):
            places.setdefault((each.path, each.line), each.text)
    for (path, number), text in sorted(places.items()):
        code, _ = split_line(path, text)
        if is_code(path) and word.search(code) and not defines.match(code):
            yield Reference(path, number, text)


def _is_certain(change: Change, use: Reference, target: Definition) -> bool:
    """Return whether ``use`` can only mean ``target``: it is in the same file, imports the name from the
    target's module, is qualified with the module, or is in a file that imports it."""
    here = use.path == target.path
    name, module = re.escape(target.name), re.escape(PurePosixPath(target.path).stem)
    texts = [*change.lines.get(use.path, {}).values()]
    texts += [each.text for each in change.references if each.path == use.path]
    if not here and any(map(_defines(target.name).match, texts)):
        return False
    code, _ = split_line(use.path, use.text)
    if target.member:
        return here and bool(re.search(rf"\b(?:self|cls)\.{name}\b", code))
    if re.search(rf"(?<![\w.]){module}\.{name}\b", code):
        return True
    if re.search(rf"\.{name}\b", code):
        return False
    if here:
        # In a file seen in part, a word may stand in a docstring: only a call is surely code.
        code_like = use.path in change.whole or target.name.isupper()
        means_other = re.compile(
            rf"\b{name}\s*(?::[^=]+)?:?=(?!=)|\b(?:as|for|import)\s+{name}\b|\bdef\s+\w+\(.*\b{name}\b|"
            rf"^\s*{name}\s*[:,]|,\s*{name}\s*,"
        )
        called = code_like or _called_or_imported(target.name).search(use.text)
        return bool(called) and not any(map(means_other.search, texts))
    imports = re.compile(
        rf"from\s+[\w.]*(?<!\w){module}\s+import\b.*\b{name}\b|"
        rf"import\s*\{{[^}}]*\b{name}\b[^}}]*\}}\s*from"
    )
    return any(map(imports.search, texts))


def _called_or_imported(name: str) -> re.Pattern[str]:
    """Matches lines that call ``name`` or import it: more than a word that happens to be there."""
    return re.compile(rf"\b{re.escape(name)}\s*\(|\bimport\b.*\b{re.escape(name)}\b")


def _defines(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"\s*(?:(?:export\s+|pub\s+|default\s+|async\s+)*"
        rf"(?:def|class|func|fn|function|struct|enum|trait|interface|type|const|let)\s+"
        rf"(?:\([^)]*\)\s*)?{re.escape(name)}\b|{re.escape(name)}\s*(?::[^=]+)?=(?!=))"
    )
