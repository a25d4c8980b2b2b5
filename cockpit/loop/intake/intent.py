"""The task that the user's words name: its type and its target.

Slash commands, pull request numbers and URLs, ranges, branches and plain words all resolve here. Text that
names no type becomes ``implement``, which has all tools, as every action is approved anyway. A plain
question becomes ``investigate``, as do words that open with a review and lack its target.
See ``docs/reference/task-types.md``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.loop.intake.review_target import (
    FoundTarget,
    IntentUnclear,
    Repository,
    find_issue,
    find_target,
)
from cockpit.loop.intake.task_types import TaskType

TITLE_MAX = 72
"""Characters of a task's title, the ellipsis included."""


class UnknownCommand(IntentUnclear):
    """A slash command that no task type has."""

    code = "unknown_command"


class Task(Struct, frozen=True):
    """What a session is about. ``target`` is ``{"pr": 24}`` (with ``"repo": "owner/name"`` when a
    URL gave it), ``{"range": "main..topic", "base": ID, "tip": ID}`` with the range as it was
    spelled and full commit ids as they stood then, ``{"issue": 7}``, or empty."""

    task_type: str
    title: str
    words: str
    target: Mapping[str, Any] = field(default_factory=dict)
    says_more: bool = False
    """Whether the words say more than which target is meant."""


_SLASH = re.compile(r"(/[A-Za-z][A-Za-z0-9_:-]*)(?:\s+|\Z)")
_POLITE = re.compile(
    r"(?:(?:please|pls|now|ok(?:ay)?|hi|hey|hello|just|also|then|and|so|let'?s|let us|"
    r"(?:can|could|would|will) you(?: please)?|i(?:'d| would) like (?:you )?to|"
    r"i (?:want|need)(?: you)? to|you (?:should|must)|we (?:should|must|need to|have to)|"
    r"(?:can|could) (?:we|i)(?: please)? (?:get|have)|do you mind|are you able to|"
    r"is it possible (?:for you )?to|(?:how|what) about|why (?:not|don'?t (?:you|we)))[\s,]+)+",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w")
_NAMED_ISSUE = re.compile(r"(?<![\w/#&])#[1-9]\d{0,8}(?!\w)|https?://\S+/issues/\d+")
_ASKING = r"(?:is|are|was|were|does|do|did|has|have|can|could|should|would|will)\b"
_QUESTION = re.compile(
    rf"(?:why|how|what|where|when|which|who|whose)\b(?=.*\?|\s+to\b|'s\b|\s+{_ASKING})|{_ASKING}(?=[^?]*\?)",
    re.IGNORECASE | re.DOTALL,
)
"""How a question begins; "do the release" and "what we need is a login page" are none."""
_SENTENCE = re.compile(r"(?<=[?.!])\s+|\n+")


async def resolve(
    words: str,
    types: Mapping[str, TaskType],
    git: Repository,
    skills: Collection[str] = (),
) -> Task:
    """Return the task that the user's ``words`` name; ``/NAME`` may also be one of ``skills``.

    Raises :class:`UnknownCommand` for an unknown slash command, and :class:`IntentUnclear` for
    empty words, a command without the target it needs, or a target that does not exist.
    """
    text = words.strip()
    if not text:
        raise IntentUnclear(
            "The task is empty. Describe it, or give a command such as /review-pr 24."
        )
    match = _SLASH.match(text)
    if match and _names_skill(match[1].lower(), types, skills):
        # The words keep the command: it is how they mention the skill.
        rest = text[match.end() :].strip()
        return _plain(types["investigate" if is_question(rest) else "implement"], text)
    if match:
        kind = _commanded(match[1].lower(), types)
        rest = text[match.end() :].strip()
        if kind.needs_issue:
            return await _about_issue(kind, match[1], text, rest, git)
        if not kind.needs_target:
            return _plain(kind, rest or kind.name.replace("_", " "))
        if not rest:
            raise IntentUnclear(
                f"{match[1]} needs a target: {match[1]} {kind.arguments}, for example "
                f"{match[1]} 24 or {match[1]} topic."
            )
        if (place := await find_target(rest, git, named=True)) is not None:
            return _about_target(kind, text, place)
    reads_only = False
    for kind, rest in _opened(text, types):
        reads_only |= kind.reads_only or kind.needs_target
        if kind.needs_issue:
            if (issue := await find_issue(rest, git)) is None:
                continue
            return Task(kind.name, _issue_title(kind, issue), text, {"issue": issue})
        if not kind.needs_target:
            return _plain(kind, text)
        if (place := await find_target(rest, git, named=False)) is not None:
            return _about_target(kind, text, place)
    reads_only |= is_question(text)
    return _plain(types["investigate" if reads_only else "implement"], text)


async def resolve_as(kind: TaskType, words: str, details: str, git: Repository) -> Task:
    """Return the task of a type that is known already, as a task of the backlog has.

    Its target is what ``words`` begin with; the issue may stand anywhere in them or in ``details``. Raises
    :class:`IntentUnclear` for a type whose target is not there.
    """
    text = words.strip()
    if kind.needs_issue:
        named = _NAMED_ISSUE.search(f"{text}\n{details}")
        issue = await find_issue(named[0] if named else text, git)
        if issue is None:
            raise IntentUnclear(
                f"A task of type {kind.name} needs an issue: name it as #7 in its title or description."
            )
        return Task(kind.name, _plain(kind, text).title, text, {"issue": issue})
    if not kind.needs_target:
        return _plain(kind, text)
    bare = next((rest for _, rest in _opened(text, {kind.name: kind})), text)
    place = await find_target(bare, git, named=True)
    title = _plain(kind, text).title
    return replace(_about_target(kind, text, place), title=title) if place else _plain(kind, text)


def is_question(words: str) -> bool:
    """Return whether ``words`` are a plain question: each of their sentences asks one.

    "How do I add a field?" is one; "Why does it fail? Fix it." goes on to ask for more.
    """
    sentences = [each for each in _SENTENCE.split(words.strip()) if _WORD.search(each)]
    bare = [_POLITE.sub("", each, count=1) for each in sentences]
    return bool(bare) and all(map(_QUESTION.match, bare))


def _names_skill(command: str, types: Mapping[str, TaskType], skills: Collection[str]) -> bool:
    """Whether a slash command is a skill's name, and no command of a task type."""
    commands = {word.lower() for kind in types.values() for word in (kind.command, *kind.aliases)}
    return command.removeprefix("/") in skills and command.replace("_", "-") not in commands


def read_command_kind(
    command: str, types: Mapping[str, TaskType], skills: Collection[str]
) -> Literal["task", "skill", ""]:
    """Say whose a slash command is: a task type's, that of a skill which it mentions, or nobody's."""
    if _names_skill(command.lower(), types, skills):
        return "skill"
    return "task" if _spell(command.lower()) in _by_command(types) else ""


def begins_with_command(words: str, types: Mapping[str, TaskType]) -> bool:
    """Whether ``words`` begin with the command of a task type."""
    first = words.split(maxsplit=1)[:1]
    return bool(first) and _spell(first[0].lower()) in _by_command(types)


def _spell(command: str) -> str:
    return command.replace("_", "-")


def _by_command(types: Mapping[str, TaskType]) -> dict[str, TaskType]:
    return {
        word.lower(): kind
        for kind in types.values()
        for word in (kind.command, *kind.aliases)
        if word.startswith("/")
    }


def _commanded(command: str, types: Mapping[str, TaskType]) -> TaskType:
    by_command, spelled = _by_command(types), _spell(command)
    if spelled in by_command:
        return by_command[spelled]
    near = difflib.get_close_matches(spelled, sorted(by_command), n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    commands = ", ".join(sorted(kind.command for kind in types.values()))
    raise UnknownCommand(f"There is no command {command}.{hint} Task commands: {commands}.")


def _opened(text: str, types: Mapping[str, TaskType]) -> Iterator[tuple[TaskType, str]]:
    """Yield the types that ``text`` starts with, the longest match first, with the text after it."""
    start = _POLITE.match(text)
    bare = text[start.end() :] if start else text
    openings: list[tuple[int, TaskType, str]] = []
    for kind in types.values():
        label = re.match(rf"{re.escape(kind.name)}:\s*", bare, re.IGNORECASE)
        if label:
            openings.append((label.end(), kind, bare[label.end() :]))
        for alias in kind.aliases:
            opening = re.match(rf"{re.escape(alias)}(?:\s+|\Z|(?=[#:]))", bare, re.IGNORECASE)
            if opening and not alias.startswith("/"):
                openings.append((opening.end(), kind, bare[opening.end() :]))
    for _, kind, rest in sorted(openings, key=lambda entry: (-entry[0], entry[1].name)):
        yield kind, rest.strip(" :\t\n")


def _about_target(kind: TaskType, text: str, place: FoundTarget) -> Task:
    says_more = _WORD.search(place.rest) is not None
    title = _target_title(kind, place.target)
    return Task(kind.name, title, text, place.target, says_more=says_more)


def _target_title(kind: TaskType, target: Mapping[str, Any]) -> str:
    verb = kind.name.split("_")[0].capitalize()
    return f"{verb} PR #{target['pr']}" if "pr" in target else f"{verb} {target['range']}"


async def _about_issue(kind: TaskType, command: str, text: str, rest: str, git: Repository) -> Task:
    issue = await find_issue(rest, git)
    if issue is None:
        raise IntentUnclear(
            f"{command} needs an issue: {command} {kind.arguments}, for example {command} 7."
        )
    return Task(kind.name, _issue_title(kind, issue), text, {"issue": issue})


def _issue_title(kind: TaskType, issue: int) -> str:
    return f"{kind.name.split('_')[0].capitalize()} issue #{issue}"


def _plain(kind: TaskType, words: str) -> Task:
    return Task(kind.name, _cut(words.split("\n", 1)[0]), words)


def make_title(words: str) -> str:
    """Return words as the title of a session: one line of at most :data:`TITLE_MAX` characters.

    Raises :class:`IntentUnclear` where nothing is left.
    """
    if not (title := _cut(words)):
        raise IntentUnclear("A session needs a title.")
    return title


def _cut(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= TITLE_MAX else line[: TITLE_MAX - 1].rstrip() + "…"
