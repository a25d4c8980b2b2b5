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


class Step(Struct, frozen=True):
    """One step of the agent: a call (``call`` names the tool), or text alone (``call`` is empty).

    ``replies`` are the user's messages that answered it, in order, until the next step that they could
    answer; ``status`` is how it ended.
    """

    wave: int
    place: int
    call: str
    arguments: Mapping[str, Any]
    status: str
    result: str
    text: str
    replies: tuple[str, ...] = ()

    @property
    def silent(self) -> bool:
        """True when the user wants to discuss it and has not sent a message yet."""
        return self.status == "discussed" and not self.replies


def read_history(prompt: Prompt) -> tuple[Step, ...]:
    """Return every step so far, in order, each with the user's replies."""
    bare = sorted(
        (step for fact in prompt.facts if (step := _step(fact))), key=lambda s: (s.wave, s.place)
    )
    messages = sorted(
        (fact.ordinal, fact.source_ref, fact.text)
        for fact in prompt.facts
        if fact.source_type == "person"
    )
    steps: list[Step] = []
    for at, step in enumerate(bare):
        until = bare[at + 1].wave if at + 1 < len(bare) else None
        answers = [
            words
            for ordinal, _, words in messages
            if ordinal > step.wave and (until is None or ordinal <= until)
        ]
        match = _USER_SAID.search(step.result) if step.status == "discussed" else None
        if match is not None:
            words = match["words"].removesuffix(_TAIL).strip()
            answers = [words, *(other for other in answers if other.strip() != words)]
        steps.append(
            Step(
                step.wave,
                step.place,
                step.call,
                step.arguments,
                step.status,
                step.result,
                step.text,
                tuple(word for word in answers if word.strip()),
            )
        )
    return tuple(steps)


def steps_calling(steps: Sequence[Step], *names: str) -> list[Step]:
    """Return the steps that called one of these tools."""
    return [step for step in steps if step.call in names]


def messages_since(steps: Sequence[Step], step: Step) -> list[str]:
    """Return the user's messages from ``step`` on, each once."""
    start = (step.wave, step.place)
    later = [other for other in steps if (other.wave, other.place) >= start]
    return list(dict.fromkeys(message for other in later for message in other.replies))


def _step(fact: PacketFact) -> Step | None:
    if fact.source_type != "exchange":
        return None
    provenance = fact.provenance
    place = _PLACE.match(fact.source_ref)
    arguments = provenance.get("arguments")
    return Step(
        wave=int(place[1]) if place else fact.ordinal,
        place=int(place[2]) if place else 0,
        call=str(provenance.get("call", "")),
        arguments=arguments if isinstance(arguments, Mapping) else {},
        status=str(provenance.get("status", "")),
        result=str(provenance.get("result", "")),
        text=str(provenance.get("text", "")),
    )
