"""The ``offline`` model: rules, without a key or a network.

A pure function of the prompt. It reviews changes by rules and orients for every other task; it says plainly
when something needs a model.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator

from cockpit.decide.model import Done, ModelEvent, Prompt, TextDelta, ToolCall, Usage
from cockpit.decide.offline.model_answer import Answer, written
from cockpit.decide.offline.other_tasks import answer_task
from cockpit.decide.offline.review_session import answer_review
from cockpit.decide.offline.split_request import answer_plan

_SENTENCE = re.compile(r".+?(?:[.!?]\s+|\n+|\Z)", re.DOTALL)


class OfflineModel:
    """Implements :class:`~cockpit.decide.model.Model` without a model."""

    @property
    def name(self) -> str:
        return "offline"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Words sentence by sentence, then the calls, then :class:`Done`. Costs nothing; never
        raises."""
        answer = answer_of(prompt)
        for sentence in sentences(answer.words):
            yield TextDelta(sentence)
        for place, (name, arguments) in enumerate(answer.calls, 1):
            yield ToolCall(f"offline-{prompt.wave}-{place}", name, written(arguments))
        yield Done(Usage(cost_usd=0.0), "tool" if answer.calls else "end")


def answer_of(prompt: Prompt) -> Answer:
    """What the rules say and do next. Whatever has a diff to look at is reviewed."""
    reviewed = "range" in prompt.target or "pr" in prompt.target
    if prompt.task_type == "plan":
        return answer_plan(prompt)
    return answer_review(prompt) if reviewed else answer_task(prompt)


def sentences(text: str) -> Iterator[str]:
    """``text`` in fragments that end with a sentence or a line; together they are ``text``."""
    for match in _SENTENCE.finditer(text):
        yield match[0]
