"""Rules about names that other code relies on: removed, or with other arguments than before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.changed_definitions import (
    Definition,
    defined,
    narrower,
    signature,
)
from cockpit.decide.offline.rules.code_and_comments import functions, tree
from cockpit.decide.offline.rules.name_usages import call_at, called_or_imported, certain, uses
from cockpit.decide.offline.rules.parse_diff import FileDiff
from cockpit.decide.offline.rules.review_finding import Finding, Grade
from cockpit.decide.offline.rules.reviewed_change import Change, Reference, is_docs


def removed_names(change: Change) -> list[Definition]:
    """Names that a file defined before and no longer does, tests and docs aside."""
    removed: list[Definition] = []
    for file in change.files:
        if is_test(file.old_path) or is_docs(file.old_path):
            continue
        remaining = {name.name for sign in "+ " for name in defined(file, sign)}
        if (module := tree(change, file.path)) is not None and file.status != "removed":
            remaining |= {node.name for node in functions(module)}
        for old in defined(file, "-"):
            if old.name not in remaining and not old.name.startswith("__"):
                remaining.add(old.name)
                removed.append(old)
    return removed


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
    definitions = []
    for file in change.files:
        if is_test(file.path) or is_docs(file.path):
            continue
        earlier = {name.name for sign in "- " for name in defined(file, sign)}
        definitions += [new for new in defined(file, "+") if new.public and new.name not in earlier]
    return definitions


def dropped_but_used(change: Change) -> Iterator[Finding]:
    moved = {new.name: new.path for file in change.files for new in defined(file, "+")}
    for old in removed_names(change):
        sure, unsure = _sorted_uses(change, old)
        if old.name in moved:
            # It lives elsewhere now: only who still imports it from the old place is wrong.
            stale = [use for use in sure if use.path != old.path and "import" in use.text]
            if stale:
                message = f"`{old.name}` moved to `{moved[old.name]}`, and this imports it from its old place"
                yield _at(stale, "moved-name", "blocking", message)
        elif sure:
            yield _at(
                sure,
                "dropped-name",
                "blocking",
                f"`{old.name}` is gone from `{old.path}`, and is used here",
            )
        elif unsure and old.public:
            message = f"`{old.name}` is gone from `{old.path}`. Is this the same one, used here"
            yield _at(unsure, "dropped-name", "question", message, end="?")
        elif old.public and old.name not in change.looked_up and not old.member:
            yield Finding(
                old.path,
                old.near,
                "dropped-name",
                "question",
                f"`{old.name}` (line {old.line} before) is gone, and its callers were not looked "
                "for. Does anything outside of this diff use it?",
            )


def broken_calls(change: Change) -> Iterator[Finding]:
    for old, new in changed_signatures(change):
        before, after = signature(old.signature), signature(new.signature)
        if before is None or after is None or not (message := narrower(before, after)):
            continue
        sure, unsure = _sorted_uses(change, new)
        calls = [(use, call_at(change, use, new.name)) for use in sure]
        wrong = [use for use, call in calls if call is not None and not after.takes(call)]
        if wrong:
            yield _at(
                wrong,
                "broken-call",
                "blocking",
                f"`{new.name}` {message}, and this call does not fit",
            )
            continue
        perhaps = [
            use
            for use in unsure
            if (call := call_at(change, use, new.name)) is not None
            and not after.takes(call)
            and before.takes(call)
        ]
        if perhaps:
            message = f"`{new.name}` {message}. Is it the one called here"
            yield _at(perhaps, "broken-call", "question", message, end="?")
        elif new.public and new.name not in change.looked_up:
            yield Finding(
                new.path,
                new.line,
                "changed-signature",
                "question",
                f"`{new.name}` {message}. Are all callers outside of this diff ready for it?",
            )


def _sorted_uses(change: Change, target: Definition) -> tuple[list[Reference], list[Reference]]:
    all_uses = list(uses(change, target.name))
    sure = [use for use in all_uses if certain(change, use, target)]
    unsure = [use for use in all_uses if use not in sure and called_or_imported(use, target.name)]
    return sure, unsure


def _at(
    references: Sequence[Reference], rule: str, grade: Grade, message: str, *, end: str = "."
) -> Finding:
    first, *others = references
    also = ", ".join(f"`{use.path}:{use.line}`" for use in others[:4])
    more = f" and {len(others) - 4} more" if len(others) > 4 else ""
    text = f"{message} (also {also}{more}){end}" if others else f"{message}{end}"
    return Finding(first.path, first.line, rule, grade, text)


def _once(file: FileDiff, sign: str) -> dict[str, Definition]:
    """Functions of one side by name, those that are defined once in what the diff shows."""
    names = [name for side in (sign, " ") for name in defined(file, side)]
    count = Counter(name.name for name in names)
    return {
        name.name: name for name in defined(file, sign) if name.signature and count[name.name] == 1
    }
