"""A provider's model: one streamed call, tried again while that can help, cut short without loss.

Anthropic (Messages), OpenAI (Responses) and any OpenAI-compatible address (chat completions),
through pydantic-ai's direct API. Source: design of Decide, RFC-003 §6.3.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from cockpit.decide.load_sdk import opened
from cockpit.decide.model import Done, ModelError, ModelEvent, Prompt, Retrying, TextDelta
from cockpit.decide.model_endpoint import Endpoint
from cockpit.decide.provider_errors import Failure, broken_off, failure_of, wait_before
from cockpit.decide.provider_messages import to_messages, to_parameters, to_settings
from cockpit.decide.provider_stream import ending, text_of


class ProviderModel:
    """A :class:`~cockpit.decide.model.Model` behind HTTP. Holds no connection between calls."""

    def __init__(
        self, endpoint: Endpoint, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._endpoint = endpoint
        self._sleep = sleep

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Text as it comes, then the complete tool calls, then :class:`Done`.

        As long as nothing worth keeping has come, rate limits (429, with Retry-After), 5xx and
        lost connections are tried again, each announced by :class:`Retrying`. Later, a break ends
        the call with ``Done(stop='cut')``. Raises :class:`ModelError` for everything that trying
        again does not mend. Cancelling, or closing the generator, closes the connection.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                async with aclosing(self._attempt(prompt)) as events:
                    async for event in events:
                        yield event
                return
            except _AttemptFailed as failed:
                failure = failed.failure
            wait = wait_before(failure, attempt) if attempt <= self._endpoint.max_retries else None
            if wait is None:
                raise _final(failure, attempt)
            yield Retrying(failure.reason, attempt, wait)
            await self._sleep(wait)

    async def _attempt(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        endpoint = self._endpoint
        said = False
        over = False
        rest: list[ModelEvent] = []
        failure: Failure | None = None
        try:
            async with opened(endpoint) as model:
                from pydantic_ai.direct import model_request_stream

                async with model_request_stream(
                    model,
                    to_messages(prompt, cache_points=endpoint.vendor == "anthropic"),
                    model_settings=to_settings(prompt, endpoint),
                    model_request_parameters=to_parameters(prompt),
                    instrument=False,
                ) as stream:
                    try:
                        async with aclosing(text_of(stream)) as fragments:
                            async for fragment in fragments:
                                said = True
                                yield TextDelta(fragment)
                        rest = ending(stream.get(), said=said)
                    except Exception as error:
                        failure = failure_of(error, endpoint)
                        if failure is None or not failure.passing:
                            raise
                        rest = ending(stream.get(), said=said, broken=failure.reason)
                    over = True
        except Exception as error:
            # What fails while the connection is being closed takes nothing away from the answer.
            if not over:
                failure = failure_of(error, endpoint)
                if failure is None:
                    raise
                raise _AttemptFailed(failure) from error
        if not said and _nothing(rest):
            raise _AttemptFailed(failure or broken_off(endpoint))
        for event in rest:
            yield event


class _AttemptFailed(Exception):
    """One attempt ended with nothing worth keeping."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def _nothing(rest: list[ModelEvent]) -> bool:
    return len(rest) == 1 and isinstance(rest[0], Done) and rest[0].stop == "cut"


def _final(failure: Failure, attempts: int) -> ModelError:
    if not failure.passing or attempts == 1:
        return failure.error
    return ModelError(failure.error.code, f"{failure.error} Tried {attempts} times.")
