"""The history of a session, read from the packet alone.

A session that was killed and resumes in another process has the same facts, and so the same history. The
texts that are parsed here are written in :mod:`cockpit.loop.decisions.await_decision` and
:mod:`cockpit.loop.phases.tool_results`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.decide.model import PacketFact, Prompt

_PLACE = re.compile(r"exchange:(\d+)\.(\d+)")
_USER_SAID = re.compile(r"(?:They|The user) said: (?P<words>.*)", re.DOTALL)
_TAIL = " Nothing was read."
_TEXTS = ("call", "status", "result", "text")


class Step(Struct, frozen=True):
    """One step of the agent: a call (``call`` names the tool), or text alone (``call`` is empty).

    ``replies`` are the user's messages that answered it, in order, until the next step that they could
    answer; ``status`` is how it ended.
    """

    place: tuple[int, int]
    call: str
    arguments: Mapping[str, Any]
    status: str
    result: str
    text: str
    replies: tuple[str, ...]


def read_history(prompt: Prompt) -> list[Step]:
    """Return every step so far, in order, each with the user's replies."""
    facts = sorted((fact for fact in prompt.facts if fact.source_type == "exchange"), key=_place)
    messages = sorted(
        (fact.ordinal, fact.source_ref, fact.text)
        for fact in prompt.facts
        if fact.source_type == "person"
    )
    ends = [*(_place(fact)[0] for fact in facts[1:]), prompt.wave + 1]
    steps = []
    for fact, until in zip(facts, ends, strict=bool(facts)):
        wave, _ = _place(fact)
        replies = [words.strip() for ordinal, _, words in messages if wave < ordinal <= until]
        how = {name: str(fact.provenance.get(name, "")) for name in _TEXTS}
        if how["status"] == "discussed" and (match := _USER_SAID.search(how["result"])):
            replies.insert(0, match["words"].removesuffix(_TAIL).strip())
        given = fact.provenance.get("arguments")
        arguments = given if isinstance(given, Mapping) else {}
        answers = tuple(dict.fromkeys(filter(None, replies)))
        steps.append(Step(**how, place=_place(fact), arguments=arguments, replies=answers))
    return steps


def steps_calling(steps: Sequence[Step], *names: str) -> list[Step]:
    """Return the steps that called one of these tools."""
    return [step for step in steps if step.call in names]


def messages_since(steps: Sequence[Step], step: Step) -> list[str]:
    """Return the user's messages from ``step`` on, each once."""
    later = [other for other in steps if other.place >= step.place]
    return list(dict.fromkeys(message for other in later for message in other.replies))


def _place(fact: PacketFact) -> tuple[int, int]:
    match = _PLACE.match(fact.source_ref)
    return (int(match[1]), int(match[2])) if match else (fact.ordinal, 0)
