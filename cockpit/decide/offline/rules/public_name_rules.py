"""Rules about names that others rely on: gone, with other arguments than before, or not in the docs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import Signature
from pathlib import PurePosixPath
from typing import NamedTuple

from cockpit.core.parse_diff import FileDiff
from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.changed_definitions import (
    Definition,
    defined,
    narrower,
    signature,
    takes,
)
from cockpit.decide.offline.rules.code_and_comments import functions, quoted, split_line
from cockpit.decide.offline.rules.review_finding import Finding, Grade
from cockpit.decide.offline.rules.reviewed_change import Change, is_code, is_docs


def removed_names(change: Change) -> list[Definition]:
    """Names that a file defined before and no longer does, tests and docs aside."""
    removed: list[Definition] = []
    for file in change.files:
        if is_test(file.old_path) or is_docs(file.old_path):
            continue
        remaining = {each.name for each in defined(file, "+ ")}
        remaining |= {node.name for node in functions(change, file.path)}
        for old in defined(file, "-"):
            if old.name not in remaining and not old.name.startswith("__"):
                remaining.add(old.name)
                removed.append(old)
    return removed


_CALL_LINES, _LONGEST_CALL = 12, 1_000
"""Lines and characters in which a call has its end."""


class Use(NamedTuple):
    """A line of code that holds a name."""

    path: str
    line: int
    text: str


def narrowed_functions(change: Change) -> Iterator[tuple[Definition, Signature, Signature, str]]:
    """Functions that refuse calls which they took before: each with what it took, takes, and how."""
    for old, new in changed_signatures(change):
        before, after = signature(old.signature), signature(new.signature)
        if before and after and (how := narrower(before, after)):
            yield new, before, after, how


def changed_signatures(change: Change) -> list[tuple[Definition, Definition]]:
    """(before, after) of Python functions whose parameters changed; ambiguous names are left out."""
    pairs = []
    for file in change.files:
        old, new = _once(file, "-"), _once(file, "+")
        for name in old.keys() & new.keys():
            if old[name].signature != new[name].signature and not is_test(file.path):
                pairs.append((old[name], new[name]))
    return sorted(pairs, key=lambda pair: (pair[1].path, pair[1].line))


def new_names(change: Change) -> list[Definition]:
    """Public names that source files gained."""
    names = []
    for file in change.files:
        if not is_test(file.path) and not is_docs(file.path):
            earlier = {each.name for each in defined(file, "- ")}
            names += [new for new in defined(file, "+") if new.public and new.name not in earlier]
    return names


def dropped_but_used(change: Change) -> Iterator[Finding]:
    moved = {new.name: new.path for file in change.files for new in defined(file, "+")}
    for old in removed_names(change):
        sure, unsure = _sorted_uses(change, old)
        gone = f"`{old.name}` is gone from `{old.path}`"
        if old.name in moved:
            # It lives elsewhere now: only who still imports it from the old place is wrong.
            stale = [use for use in sure if use.path != old.path and "import" in use.text]
            place = moved[old.name]
            words = f"`{old.name}` moved to `{place}`, and this imports it from its old place"
            yield from _at(stale, "moved-name", "blocking", words)
        elif sure:
            yield from _at(sure, "dropped-name", "blocking", f"{gone}, and is used here")
        elif unsure and old.public:
            words = f"{gone}. Is this the same one, used here"
            yield from _at(unsure, "dropped-name", "question", words, end="?")
        elif old.public and old.name not in change.looked_up and not old.member:
            words = f"`{old.name}` (line {old.line} before) is gone. Does anything outside use it?"
            yield Finding(old.path, old.near, "dropped-name", "question", words)


def broken_calls(change: Change) -> Iterator[Finding]:
    for new, before, after, how in narrowed_functions(change):
        sure, unsure = _sorted_uses(change, new)
        calls = [(use, _call_at(change, use, new.name)) for use in (*sure, *unsure)]
        wrong = [(use, call) for use, call in calls if call and not takes(after, call)]
        broken = [use for use, _ in wrong if use in sure]
        perhaps = [use for use, call in wrong if use not in sure and takes(before, call)]
        if broken:
            words = f"`{new.name}` {how}, and this call does not fit"
            yield from _at(broken, "broken-call", "blocking", words)
        elif perhaps:
            words = f"`{new.name}` {how}. Is it the one called here"
            yield from _at(perhaps, "broken-call", "question", words, end="?")
        elif new.public and new.name not in change.looked_up:
            words = f"`{new.name}` {how}. Are all callers outside of this diff ready for it?"
            yield Finding(new.path, new.line, "changed-signature", "question", words)


def untouched_docs(change: Change) -> Iterator[Finding]:
    """The surface changed, and no page did."""
    gone = [old for old in removed_names(change) if old.public and not old.member]
    other = [new for new, *_ in narrowed_functions(change) if new.public]
    fresh = [new for new in new_names(change) if not new.member and not new.name.isupper()]
    for verb, names in (("goes", gone), ("takes other arguments", other), ("is new", fresh)):
        if names and not any(is_docs(path) for path in change.paths):
            first = names[0]
            words = f"`{first.name}` {verb}, and no page of docs or changelog changes with it."
            yield Finding(first.path, first.near, "docs", "nit", words)
            return


def stale_docs(change: Change) -> Iterator[Finding]:
    """A page that was looked at still names what is gone."""
    seen = {(path, at): text for path, lines in change.lines.items() for at, text in lines.items()}
    for old in removed_names(change):
        word = re.compile(rf"\b{re.escape(old.name)}\b")
        pages = [at for at, text in seen.items() if is_docs(at[0]) and word.search(text)]
        if pages and old.public:
            words = f"`{old.name}` is gone from `{old.path}`, and this page still tells of it."
            yield Finding(*min(pages), "stale-docs", "nit", words)


def _at(
    uses: Sequence[Use], rule: str, grade: Grade, words: str, *, end: str = "."
) -> Iterator[Finding]:
    """One finding at the first use that names the others."""
    also = ", ".join(f"`{use.path}:{use.line}`" for use in uses[1:5])
    more = f" and {len(uses) - 5} more" if len(uses) > 5 else ""
    for first in uses[:1]:
        text = f"{words} (also {also}{more}){end}" if also else f"{words}{end}"
        yield Finding(first.path, first.line, rule, grade, text)


def _once(file: FileDiff, sign: str) -> dict[str, Definition]:
    """Functions of one side by name, those that are defined once in what the diff shows."""
    count = Counter(each.name for each in defined(file, f"{sign} "))
    return {
        each.name: each for each in defined(file, sign) if each.signature and count[each.name] == 1
    }


def _sorted_uses(change: Change, target: Definition) -> tuple[list[Use], list[Use]]:
    """Lines of code that use ``target``, and those that may mean another of its name."""
    all_uses = list(_uses(change, target.name))
    sure = [use for use in all_uses if _is_certain(change, use, target)]
    called = _called_or_imported(target.name)
    return sure, [use for use in all_uses if use not in sure and called.search(use.text)]


def _call_at(change: Change, use: Use, name: str) -> ast.Call | None:
    """The call of ``name`` that starts on this line, where all of it is known."""
    match = re.search(rf"\b{re.escape(name)}\s*\(", use.text)
    if match is None:
        return None
    following = change.after(use.path, use.line, _CALL_LINES)
    text = "\n".join([use.text[match.start() :], *following])[:_LONGEST_CALL]
    for end in re.finditer(r"\)", text):
        try:
            node = ast.parse(text[: end.end()], mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            continue  # a bracket inside of the call
        return node if isinstance(node, ast.Call) else None
    return None


def _uses(change: Change, name: str) -> Iterator[Use]:
    """Lines of code at the tip that hold ``name``, each once, by place; definitions are left out."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    defines = _defines(name)
    places = {
        (path, number): text
        for path, lines in change.lines.items()
        for number, text in lines.items()
        if word.search(text) and number not in quoted(change, path)
    }
    for (path, number), text in sorted(places.items()):
        code, _ = split_line(path, text)
        if is_code(path) and word.search(code) and not defines.match(code):
            yield Use(path, number, text)


def _is_certain(change: Change, use: Use, target: Definition) -> bool:
    """Return whether ``use`` can only mean ``target``: it is in the same file, imports the name from the
    target's module, is qualified with the module, or is in a file that imports it."""
    here = use.path == target.path
    name, module = re.escape(target.name), re.escape(PurePosixPath(target.path).stem)
    texts = change.lines.get(use.path, {}).values()
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
