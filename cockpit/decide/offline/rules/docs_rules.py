"""Rules about documentation that a change leaves behind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.decide.offline.rules.changed_definitions import Definition, narrower, signature
from cockpit.decide.offline.rules.public_name_rules import (
    changed_signatures,
    new_names,
    removed_names,
)
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.reviewed_change import Change, is_docs


def untouched_docs(change: Change) -> Iterator[Finding]:
    """The surface changed, and no page did."""
    if any(is_docs(path) for path in change.paths):
        return
    gone = [old for old in removed_names(change) if old.public and not old.member]
    other = [new for old, new in changed_signatures(change) if new.public and _narrower(old, new)]
    fresh = [new for new in new_names(change) if not new.member and not new.name.isupper()]
    for verb, names in (("goes", gone), ("takes other arguments", other), ("is new", fresh)):
        if names:
            first = names[0]
            message = f"`{first.name}` {verb}, and no page of docs or changelog changes with it."
            yield Finding(first.path, first.near, "docs", "nit", message)
            return


def stale_docs(change: Change) -> Iterator[Finding]:
    """A page that was looked at still names what is gone."""
    for old in removed_names(change):
        word = re.compile(rf"\b{re.escape(old.name)}\b")
        pages = [
            (path, number)
            for path, lines in change.lines.items()
            if is_docs(path)
            for number, text in lines.items()
            if word.search(text)
        ]
        pages += [
            (reference.path, reference.line)
            for reference in change.references
            if is_docs(reference.path) and word.search(reference.text)
        ]
        if pages and old.public:
            path, number = min(pages)
            message = f"`{old.name}` is gone from `{old.path}`, and this page still tells of it."
            yield Finding(path, number, "stale-docs", "nit", message)


def _narrower(old: Definition, new: Definition) -> bool:
    before, after = signature(old.signature), signature(new.signature)
    return before is not None and after is not None and bool(narrower(before, after))
