"""The ``offline`` model: rules, without a key or a network.

A pure function of the prompt. It reviews changes by rules and orients for every other task; it says plainly
when something needs a model.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

from cockpit.decide.model import Done, ModelEvent, Prompt, TextDelta, ToolCall, Usage
from cockpit.decide.offline.model_answer import Answer
from cockpit.decide.offline.other_tasks import answer_task
from cockpit.decide.offline.review_session import answer_review
from cockpit.decide.offline.split_request import answer_plan


class OfflineModel:
    """Implements :class:`~cockpit.decide.model.Model` without a model."""

    @property
    def name(self) -> str:
        return "offline"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Words line by line, then the calls, then :class:`Done`. Costs nothing; never raises."""
        answer = answer_of(prompt)
        for line in answer.words.splitlines(keepends=True):
            yield TextDelta(line)
        for place, (name, arguments) in enumerate(answer.calls, 1):
            written = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
            yield ToolCall(f"offline-{prompt.wave}-{place}", name, written)
        yield Done(Usage(cost_usd=0.0), "tool" if answer.calls else "end")


def answer_of(prompt: Prompt) -> Answer:
    """What the rules say and do next. Whatever has a diff to look at is reviewed."""
    if prompt.task_type == "plan":
        return answer_plan(prompt)
    has_diff = "range" in prompt.target or "pr" in prompt.target
    return answer_review(prompt) if has_diff else answer_task(prompt)
