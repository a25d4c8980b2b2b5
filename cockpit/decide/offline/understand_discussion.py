"""Understanding the user's messages in a discussion, by rules: a few phrases.

When the rules do not understand a message they say so; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.named_files import drop_long_runs
from cockpit.decide.offline.rules.draft_review import Verdict, Wishes
from cockpit.decide.offline.rules.wanted_context import Item

CONTEXT_HELP = (
    "I follow simple words here: “just the diff”, “only src/app.py”, “without the tests”, “less”, "
    "“also docs/api.md”, “as it was”. What would you like me to look at?"
)
REVIEW_HELP = (
    "I follow simple words here: “softer”, “shorter”, “drop the nits”, “drop the questions”, "
    "“drop src/app.py”, “comment instead”, “approve”, “request changes”, “add: …”. What should change?"
)
OTHER_TASKS = (
    "/new starts a session for another task, and /model chooses a model for more than reviews."
)

_NOTHING = re.compile(
    r"\b(?:just|only)\s+(?:use\s+)?(?:the\s+)?diff\b|\bdiff\s+only\b|"
    r"^\s*(?:no|nope|none|nothing|skip(?: it| this| that)?|stop|don'?t|enough|go ahead without.*|"
    r"no (?:more )?(?:context|reading|need))[.!]*\s*$",
    re.IGNORECASE,
)
_AGAIN = re.compile(
    r"^\s*(?:as it was|same again|keep (?:it|all|them)|ok(?:ay)?|yes|fine|go(?: ahead| on)?|"
    r"never ?mind|sure|all of (?:it|them)|approved?)[.!]*\s*$",
    re.IGNORECASE,
)
_LESS = re.compile(
    r"\b(?:less|fewer|smaller|cheaper|narrow(?:er)?|too (?:much|many|large|big))\b", re.I
)
_ONLY = re.compile(r"\b(?:only|just|keep)\b", re.IGNORECASE)
_WITHOUT = re.compile(r"\b(?:without|drop|skip|not|no|leave out|except|remove|omit|don'?t)\b", re.I)
_ALSO = re.compile(r"\b(?:also|add|and include|include|plus|look at|read)\b", re.IGNORECASE)
_WHY = re.compile(r"\bwhy\b|\bwhat for\b", re.IGNORECASE)
_PATH = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)+|[\w-]+\.[A-Za-z]{1,5}\b")
_SORTS = {
    "callers": re.compile(r"\b(?:callers?|usages?|uses|references?|symbols?)\b", re.IGNORECASE),
    "tests": re.compile(r"\btests?\b", re.IGNORECASE),
    "code": re.compile(
        r"\b(?:code|sources?|files?|modules?|surroundings?|context)\b", re.IGNORECASE
    ),
}


class Narrowed(Struct, frozen=True):
    """A request after a discussion. ``understood`` is False when the rules understood nothing; ``answer``
    is text for the user; ``why`` says that the user asked for the reasons only."""

    items: tuple[Item, ...]
    understood: bool
    answer: str = ""
    why: bool = False


def narrow(items: Sequence[Item], words: str) -> Narrowed:
    """Apply one message of the user to a request."""
    remaining = tuple(items)
    if _NOTHING.search(words):
        return Narrowed((), True, "I'll work from what I have.")
    if _AGAIN.match(words):
        return Narrowed(remaining, True, "I ask for the same again, as you say.")
    if _WHY.search(words):
        return Narrowed(remaining, True, why=True)
    for clause in re.split(r"[.;,]\s+|\s+but\s+|\n", words):
        named = [item for item in remaining if _names(clause, item)]
        fresh = [
            path for path in _PATH.findall(drop_long_runs(clause)) if not _is_listed(path, items)
        ]
        if _ONLY.search(clause) and (named or fresh):
            remaining = (*named, *_added(fresh))
        elif _WITHOUT.search(clause) and named:
            remaining = tuple(item for item in remaining if item not in named)
        elif _ALSO.search(clause) and fresh:
            remaining = (*remaining, *_added(fresh))
        elif fresh and not named:
            remaining = tuple(_added(fresh))
        elif named:
            remaining = tuple(named)
        elif _LESS.search(clause):
            remaining = _fewer(remaining)
    if remaining == tuple(items):
        return Narrowed(remaining, False)
    dropped = [item.scope for item in items if item not in remaining]
    new = [item.scope for item in remaining if item not in items]
    parts = [f"left out {_quoted(dropped)}"] if dropped else []
    parts += [f"added {_quoted(new)}"] if new else []
    return Narrowed(remaining, True, f"I {' and '.join(parts)}.")


def _fewer(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """About half: tests and code next to callers are what a diff itself tells most of."""
    order = {"diff": 0, "callers": 1, "code": 2, "tests": 3}
    ranked = sorted(items, key=lambda item: order[item.sort])
    chosen = ranked[: max(1, len(items) // 2)] if len(items) > 1 else []
    return tuple(item for item in items if item in chosen)


def _names(clause: str, item: Item) -> bool:
    text = clause.lower()
    for about in item.about:
        name = PurePosixPath(about).name.lower()
        stem = PurePosixPath(about).stem.lower()
        if re.search(rf"(?<![\w/]){re.escape(about.lower())}(?!\w)", text):
            return True
        if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text) and len(name) > 2:
            return True
        if "/" in about and len(stem) > 4 and re.search(rf"\b{re.escape(stem)}\b", text):
            return True
    pattern = _SORTS.get(item.sort)
    return bool(pattern and pattern.search(text))


def _is_listed(path: str, items: Sequence[Item]) -> bool:
    return any(
        path.lower() in (about.lower(), PurePosixPath(about).name.lower())
        for item in items
        for about in item.about
    )


def _added(paths: Sequence[str]) -> tuple[Item, ...]:
    return tuple(Item(f"file:{path}", "code", (path,), "you named it") for path in paths)


_VERDICTS: tuple[tuple[re.Pattern[str], Verdict], ...] = (
    (
        re.compile(
            r"\b(?:just|only|make it a|as a)?\s*comment\b(?! (?:on|out|about|in)\b)|"
            r"\bnot? (?:to )?(?:block|request(?:ing)? changes)\b|\bdon'?t (?:block|request)\b",
            re.IGNORECASE,
        ),
        "comment",
    ),
    (
        re.compile(r"\brequest changes\b|\bblock (?:it|this)\b|\breject it\b", re.I),
        "request changes",
    ),
    (re.compile(r"(?<!not )(?<!n't )\bapprove\b|\blgtm\b", re.IGNORECASE), "approve"),
)
_SOFTER = re.compile(
    r"\b(?:softer|kinder|nicer|gentler|friendlier|less harsh|too harsh|polite)\b", re.I
)
_SHORTER = re.compile(r"\b(?:shorter|brief(?:er)?|concise|too long|terse)\b", re.IGNORECASE)
_DROP = re.compile(r"\b(?:drop|no|without|remove|skip|leave out|omit|ignore|cut)\b", re.IGNORECASE)
_NOTE = re.compile(
    r"(?:^|[.;]\s+|\band\s+)(?:(?:please\s+)?(?:add|mention|note|also say|say|include|ask))"
    r"(?:\s+that)?\s*:?\s+(?P<note>.+)",
    re.IGNORECASE | re.DOTALL,
)


def wish(wishes: Wishes, words: str) -> Wishes:
    """Apply one message of the user to their wishes; unchanged when the rules do not understand it."""
    text = words.strip()
    note = _NOTE.search(text)
    if note is not None:
        wishes = replace(wishes, notes=(*wishes.notes, note["note"].strip()))
        text = text[: note.start()]
    for pattern, verdict in _VERDICTS:
        if pattern.search(text):
            wishes = replace(wishes, verdict=verdict)
            break
    if _SOFTER.search(text):
        wishes = replace(wishes, softer=True)
    if _SHORTER.search(text):
        wishes = replace(wishes, shorter=True)
    for clause in re.split(r"[.;,]\s+|\s+but\s+|\n", text):
        if not _DROP.search(clause):
            continue
        if re.search(r"\bnits?\b", clause, re.IGNORECASE):
            wishes = replace(wishes, nits=False)
        if re.search(r"\bquestions?\b", clause, re.IGNORECASE):
            wishes = replace(wishes, questions=False)
        names = [*_PATH.findall(drop_long_runs(clause)), *re.findall(r"`([^`]+)`", clause)]
        wishes = replace(wishes, without=(*wishes.without, *names))
    return wishes


def wished(before: Wishes, after: Wishes) -> str:
    """Describe what changed between two wishes; '' when nothing did."""
    parts: list[str] = []
    if after.verdict != before.verdict and after.verdict:
        parts.append(f"made the verdict “{after.verdict}”")
    if after.softer and not before.softer:
        parts.append("softened the wording")
    if after.shorter and not before.shorter:
        parts.append("shortened it")
    if before.nits and not after.nits:
        parts.append("dropped the nits")
    if before.questions and not after.questions:
        parts.append("dropped the questions")
    if new := after.without[len(before.without) :]:
        parts.append(f"left out what concerns {_quoted(new)}")
    if after.notes[len(before.notes) :]:
        parts.append("added your words")
    return " and ".join(parts) if len(parts) < 3 else ", ".join(parts)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
