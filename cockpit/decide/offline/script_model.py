"""The scripted model: plays a written scenario, for demos and tests. See :mod:`.scenario`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

from cockpit.core.text import end_sentence
from cockpit.decide.model import (
    Done,
    ModelError,
    ModelEvent,
    Prompt,
    Retrying,
    TextDelta,
    ToolCall,
    Usage,
)
from cockpit.decide.offline.scenario import Turn, load_scenario

_FRAGMENT = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+")
_CHARACTERS_PER_TOKEN = 4


class ScriptModel:
    """A :class:`~cockpit.decide.model.Model` that says what its file says.

    The same prompt gets the same events in any process: the turn, its call ids (``call-WAVE-N``)
    and the token counts (a fourth of the characters; nothing cached, no cost) come from the prompt
    and the file alone. ``sleep`` is how the pace and the waits of faults pass.
    """

    def __init__(
        self, path: str | Path, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Raises :class:`ModelError` (``script``) if the file cannot be read or played."""
        self._path = Path(path)
        self._scenario = load_scenario(self._path)
        self._sleep = sleep

    @property
    def name(self) -> str:
        return f"script:{self._path}"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Play the turn that fits. Raises :class:`ModelError`: the turn's own error, or ``script``
        when no turn fits."""
        turn = self._scenario.turn_for(prompt)
        if turn is None:
            raise ModelError(
                "script",
                f"The scenario {self._path} has no turn for wave {prompt.wave} of "
                f"{prompt.task_type or 'a task without a type'}. Add one whose conditions hold.",
            )
        if turn.error is not None:
            fault = turn.error
            if fault.times is None:
                raise ModelError(fault.code, f"{self.name} failed: {end_sentence(fault.message)}")
            for attempt in range(1, fault.times + 1):
                yield Retrying(fault.message, attempt, fault.wait_s)
                await self._sleep(fault.wait_s)
        pace = self._scenario.pace if turn.pace is None else turn.pace
        for number, fragment in enumerate(fragments(turn.text)):
            if number and pace:
                await self._sleep(pace)
            yield TextDelta(fragment)
        if turn.cut:
            yield Done(_usage(prompt, turn.text), "cut", "the scenario cuts the stream")
            return
        for number, call in enumerate(turn.call, start=1):
            yield ToolCall(f"call-{prompt.wave}-{number}", call.name, call.text)
        yield Done(_usage(prompt, _spoken(turn)), "tool" if turn.call else "end")


def fragments(text: str) -> list[str]:
    """The text in words, each with the blanks before it; joined they are the text again."""
    return _FRAGMENT.findall(text)


def _spoken(turn: Turn) -> str:
    return turn.text + "".join(call.name + call.text for call in turn.call)


def _usage(prompt: Prompt, answer: str) -> Usage:
    return Usage(
        input_tokens=prompt.count_characters() // _CHARACTERS_PER_TOKEN,
        output_tokens=len(answer) // _CHARACTERS_PER_TOKEN,
        cost_usd=0.0,
    )
