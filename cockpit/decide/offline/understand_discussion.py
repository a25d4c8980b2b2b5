"""Understanding the user's messages in a discussion, by rules: a few phrases.

When the rules do not understand a message they say so; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from cockpit.core.named_files import drop_long_runs
from cockpit.decide.offline.rules.draft_review import Wishes
from cockpit.decide.offline.rules.review_finding import quote_names
from cockpit.decide.offline.rules.wanted_context import Item

CONTEXT_HELP = (
    "I follow simple words here: “just the diff”, “only src/app.py”, “without the tests”, “less”, "
    "“also docs/api.md”, “as it was”. What would you like me to look at?"
)
REVIEW_HELP = (
    "I follow simple words here: “drop the nits”, “drop the questions”, “drop src/app.py”, “comment instead”,"
    " “approve”, “request changes”, “add: …”. /new starts another task, and /model chooses a model for it."
)

_NOTHING = re.compile(r"\b(?:just|only) the diff\b|\A\W*(?:no|none|nothing|skip|stop)\W*\Z", re.I)
_AGAIN = re.compile(r"\A\W*(?:as it was|same again|ok(?:ay)?|yes|fine|approved?)\W*\Z", re.I)
_LESS = re.compile(r"\b(?:less|fewer|smaller)\b", re.I)
_ONLY = re.compile(r"\b(?:only|just|keep)\b", re.I)
_WITHOUT = re.compile(r"\b(?:without|drop|skip|remove|ignore|not?)\b", re.I)
_ALSO = re.compile(r"\b(?:also|add|plus|read)\b", re.I)
_WHY = re.compile(r"\bwhy\b|\bwhat for\b", re.I)
_PATH = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)+|[\w-]+\.[A-Za-z]{1,5}\b")
_SORTS = {
    "callers": re.compile(r"\b(?:callers?|uses)\b", re.I),
    "code": re.compile(r"\b(?:code|files?|context)\b", re.I),
    "tests": re.compile(r"\btests?\b", re.I),
}
"""Sorts of items after the diff, in the order in which “less” keeps them."""
_CLAUSES = re.compile(r"[.;,]\s+|\s+but\s+|\n")
_VERDICTS: dict[Any, re.Pattern[str]] = {
    "comment": re.compile(r"\bcomment\b(?! (?:on|about|in)\b)|\b(?:not|don't) block\b", re.I),
    "request changes": re.compile(r"(?<!not )(?<!n't )\brequest changes\b", re.I),
    "approve": re.compile(r"(?<!not )(?<!n't )\b(?:approve|lgtm)\b", re.I),
}
_NOTE = re.compile(r"\badd\s*:\s*(?P<note>.+)", re.IGNORECASE | re.DOTALL)


def asks_why(words: str) -> bool:
    """Return whether the user asks for the reasons only."""
    return _WHY.search(words) is not None


def narrow(items: Sequence[Item], words: str) -> tuple[tuple[Item, ...], str]:
    """Apply one message of the user to a request; return it with a reply, '' where none was understood."""
    if _NOTHING.search(words):
        return (), "I'll work from what I have."
    if _AGAIN.match(words):
        return tuple(items), "I ask for the same again, as you say."
    remaining = list(items)
    for clause in _CLAUSES.split(words):
        named = [item for item in remaining if _names(clause, item)]
        listed = {name for item in items for about in item.about for name in _called(about)}
        paths = [path for path in _find_paths(clause) if path.lower() not in listed]
        fresh = [Item(f"file:{path}", "code", (path,), "you named it") for path in paths]
        if _WITHOUT.search(clause) and named and not _ONLY.search(clause):
            remaining = [item for item in remaining if item not in named]
        elif _ALSO.search(clause) and fresh and not _ONLY.search(clause):
            remaining += fresh
        elif named or fresh:
            remaining = named + fresh
        elif _LESS.search(clause):
            ranked = sorted(remaining, key=lambda item: ("diff", *_SORTS).index(item.sort))
            chosen = ranked[: max(1, len(ranked) // 2)] if len(ranked) > 1 else []
            remaining = [item for item in remaining if item in chosen]
    dropped = [item.scope for item in items if item not in remaining]
    new = [item.scope for item in remaining if item not in items]
    parts = [f"left out {quote_names(dropped, 8)}"] if dropped else []
    parts += [f"added {quote_names(new, 8)}"] if new else []
    return tuple(remaining), f"I {' and '.join(parts)}." if parts else ""


def wish(wishes: Wishes, words: str) -> tuple[Wishes, str]:
    """Apply one message of the user to their wishes; return them with what changed, '' for nothing."""
    text, changes, changed = words.strip(), [], dict[str, Any]()
    if note := _NOTE.search(text):
        text = text[: note.start()]
        changed["notes"] = (*wishes.notes, note["note"].strip())
        changes.append("added your words")
    if verdict := next((name for name, pattern in _VERDICTS.items() if pattern.search(text)), None):
        changed["verdict"] = verdict
        changes.append(f"made the verdict “{verdict}”")
    for clause in filter(_WITHOUT.search, _CLAUSES.split(text)):
        for section in ("nits", "questions"):
            if re.search(rf"\b{section}?\b", clause, re.IGNORECASE):
                changed[section] = False
                changes.append(f"dropped the {section}")
        if names := [*_find_paths(clause), *re.findall(r"`([^`]+)`", clause)]:
            changed["without"] = (*changed.get("without", wishes.without), *names)
            changes.append(f"left out what concerns {quote_names(names)}")
    after = replace(wishes, **changed)
    return after, " and ".join(changes) if after != wishes else ""


def _find_paths(clause: str) -> Iterable[str]:
    return _PATH.findall(drop_long_runs(clause))


def _called(about: str) -> Iterator[str]:
    """The ways in which a path or a name may be written."""
    yield about.lower()
    yield PurePosixPath(about).name.lower()


def _names(clause: str, item: Item) -> bool:
    """Whether a clause names an item: its path, its file, a long stem of it, its name, or its sort."""
    stems = [PurePosixPath(about).stem.lower() for about in item.about if "/" in about]
    names = [name for about in item.about for name in _called(about) if len(name) > 2]
    names += [stem for stem in stems if len(stem) > 4]
    text = clause.lower()
    matches = (re.search(rf"(?<![\w./]){re.escape(name)}(?!\w)", text) for name in names)
    pattern = _SORTS.get(item.sort)
    return any(matches) or bool(pattern and pattern.search(clause))
