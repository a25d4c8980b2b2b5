"""Plans by the offline rules: a request that lists its parts is split there, any other needs a model.

See ``docs/reference/plans.md``, plans by a model.
"""

from __future__ import annotations

import re
from typing import Any

from cockpit.decide.model import Prompt
from cockpit.decide.offline.model_answer import Answer, finishing
from cockpit.decide.offline.other_tasks import NEEDS_MODEL, user_request
from cockpit.decide.offline.session_history import messages_since, read_history, steps_calling

MOST_PARTS = 20
_TITLE = 160
_LONGEST_EXTRAS = 400
_LISTED = re.compile(r"^[^\S\n]*+(?:[-*+]|\d++[.)])\s++(?P<words>\S.*)$", re.MULTILINE)
_EXTRA = r"(?:the\s+|its\s+)?(?:(?:unit\s+)?tests?|docs?|documentation)"
_WITH = re.compile(
    rf"(?i)[\s,]+(?:with|plus|and|including)\s+(?P<extras>{_EXTRA}(?:\s*(?:,|and|&|plus)\s*{_EXTRA})*)[.!]?\s*\Z"
)
_VERBS = (
    "add|build|change|create|document|drop|extend|fix|implement|improve|introduce|migrate|move|port|"
    "refactor|remove|rename|replace|support|test|update|upgrade|write"
)
_NEXT = re.compile(
    rf"(?i)\s*(?:;|\.\s|,?\s+(?:and\s+)?then\s+|,\s*(?:and\s+)?|\s+and\s+)(?=(?:{_VERBS})\b)"
)
_TYPES = {
    "bug": r"\b(?:fix|repair|bug|crash)",
    "refactor": r"\b(?:refactor|rename|move|clean)",
    "test": r"^(?:test|(?:write|add) (?:a |the )?tests?)\b",
    "docs": r"^(?:document|(?:write|update) (?:the )?docs?)\b",
    "chore": r"\b(?:upgrade|bump|update dependenc)",
}


def answer_plan(prompt: Prompt) -> Answer:
    """Return the plan of a request that lists its parts; else say that planning needs a model."""
    steps = read_history(prompt)
    if steps_calling(steps, "propose_plan") and messages_since(steps, steps[0]):
        why = "The offline rules cannot change a plan as you say; edit it, or let a model plan."
        return finishing("blocked", f"{why} {NEEDS_MODEL}")
    tasks = split_request(user_request(prompt))
    if len(tasks) < 2:
        why = "Planning this needs a model: your request lists no parts at which rules could split it."
        how = "Or write the tasks as a list: `cockpit plan FILE`."
        return finishing("blocked", f"{why} {NEEDS_MODEL} {how}")
    notes = "Offline rules split your own words at their lists and commas; they did not look at the project."
    text = f"I am rules, not a model. Your request lists {len(tasks)} parts, and I propose one task for each."
    return Answer(text, (("propose_plan", {"tasks": tasks, "notes": notes}),))


def split_request(words: str) -> list[dict[str, Any]]:
    """Return the tasks that a request lists: items of a list, or clauses, and the tests and docs named."""
    parts = [match["words"] for match in _LISTED.finditer(words)]
    extras = ""
    if len(parts) < 2:
        plain = " ".join(words.split())
        if match := _WITH.search(plain, max(0, len(plain) - _LONGEST_EXTRAS)):
            extras, plain = match["extras"].casefold(), plain[: match.start()]
        parts = _NEXT.split(plain)
    titles = list(dict.fromkeys(filter(None, map(_clean, parts))))[:MOST_PARTS]
    tasks = [_task(title, _guess_type(title), []) for title in titles]
    numbers = [str(place) for place in range(1, len(tasks) + 1)]
    subject = titles[0] if len(titles) == 1 else "all of it"
    if "test" in extras:
        tasks.append(_task(f"Test: {subject}", "test", numbers))
    if "doc" in extras:
        tasks.append(_task(f"Document: {subject}", "docs", numbers))
    return tasks


def _task(title: str, kind: str, after: list[str]) -> dict[str, Any]:
    tried = "." if kind in ("docs", "test") else ", and a test shows it."
    check = f"It does what its title says{tried}"
    return {"title": title, "task_type": kind, "acceptance": [check], "after": after}


def _guess_type(title: str) -> str:
    kinds = (kind for kind, pattern in _TYPES.items() if re.search(pattern, title, re.IGNORECASE))
    return next(kinds, "feature")


def _clean(part: str) -> str:
    text = " ".join(part.split()).strip(" ,;.")
    text = text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
    return text[:1].upper() + text[1:]
