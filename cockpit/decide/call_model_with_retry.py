"""One streamed call of a provider's model, with its retries; a stream that breaks off keeps its text.

For Anthropic (Messages), OpenAI (Responses) and any OpenAI-compatible address (chat completions), through
pydantic-ai's direct API. See ``docs/reference/loop.md``, phases.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import TYPE_CHECKING

from cockpit.decide.call_cost import add_cost
from cockpit.decide.load_sdk import opened
from cockpit.decide.model import Done, ModelError, ModelEvent, Prompt, Retrying, TextDelta
from cockpit.decide.model_endpoint import Endpoint
from cockpit.decide.provider_errors import Failure, broken_off, failure_of
from cockpit.decide.provider_messages import to_messages, to_parameters, to_settings
from cockpit.decide.provider_names import restore_names
from cockpit.decide.provider_stream import NoContent, bound_answer, ending, text_of

if TYPE_CHECKING:
    from pydantic_ai.models import StreamedResponse

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
LONGEST_REQUESTED_WAIT_S = 120.0
"""The longest wait that a provider may request; for a longer one the call fails."""


def retry_wait_s(failure: Failure, attempt: int) -> float | None:
    """Return the seconds to wait before a retry after ``attempt`` (from 1) failed; None means no retry.

    The wait doubles from one second to thirty, without jitter: a wave must replay. A wait that the
    provider requests takes precedence, unless it is longer than two minutes.
    """
    if not failure.passing:
        return None
    if failure.asked_wait_s is not None:
        return failure.asked_wait_s if failure.asked_wait_s <= LONGEST_REQUESTED_WAIT_S else None
    return float(min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S))


class ProviderModel:
    """A :class:`~cockpit.decide.model.Model` behind HTTP. It keeps no connection between calls."""

    def __init__(
        self, endpoint: Endpoint, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._endpoint = endpoint
        self._sleep = sleep

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Yield text as it streams, then the complete tool calls, then :class:`Done`.

        Rate limits (429, with Retry-After), 5xx and lost connections are retried as long as no text or
        call has come; :class:`Retrying` announces each retry. A later break ends the call with
        ``Done(stop='cut')``. Cancelling, or closing the generator, closes the connection.

        Raises :class:`ModelError` when a retry cannot help or the retries are used up.
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
            wait_s = None
            if attempt <= self._endpoint.max_retries:
                wait_s = retry_wait_s(failure, attempt)
            if wait_s is None:
                raise _final_error(failure, attempt)
            yield Retrying(failure.reason, attempt, wait_s)
            await self._sleep(wait_s)

    async def _attempt(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        endpoint = self._endpoint
        settings = to_settings(prompt, endpoint)
        bounds = bound_answer(prompt, settings.get("max_tokens", 0), endpoint.timeout_s)
        has_text = False
        is_complete = False
        rest: list[ModelEvent] = []
        failure: Failure | None = None
        try:
            async with opened(endpoint, bounds.most) as model, AsyncExitStack() as stack:
                from pydantic_ai.direct import model_request_stream

                stream = await self._begin(
                    stack,
                    model_request_stream(
                        model,
                        to_messages(prompt, vendor=endpoint.vendor),
                        model_settings=settings,
                        model_request_parameters=to_parameters(prompt),
                        instrument=False,
                    ),
                )
                try:
                    async with aclosing(text_of(stream, bounds)) as fragments:
                        async for fragment in fragments:
                            has_text = True
                            yield TextDelta(fragment)
                    rest = ending(stream.get(), bounds, has_text=has_text)
                except Exception as error:
                    failure = failure_of(error, endpoint)
                    is_endless = failure is not None and failure.error.code == "endless_answer"
                    if failure is None or not (failure.passing or is_endless):
                        raise
                    rest = ending(stream.get(), bounds, has_text=has_text, broken=failure.reason)
                is_complete = True
        except Exception as error:
            # A failure while the connection closes takes nothing away from a complete answer.
            if not is_complete:
                failure = failure_of(error, endpoint)
                if failure is None:
                    raise
                raise _AttemptFailed(failure) from error
        if not has_text and _is_empty(rest):
            raise _AttemptFailed(failure or broken_off(endpoint))
        for event in restore_names(rest, prompt.tools):
            yield add_cost(event, endpoint.price) if isinstance(event, Done) else event

    async def _begin(
        self, stack: AsyncExitStack, opening: AbstractAsyncContextManager[StreamedResponse]
    ) -> StreamedResponse:
        """Wait for the first content of an answer. Raises :class:`NoContent`."""
        seconds = self._endpoint.timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await stack.enter_async_context(opening)
        except TimeoutError as error:
            raise NoContent(f"no content for {seconds:g} s") from error


class _AttemptFailed(Exception):
    """One attempt ended without text or calls."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def _is_empty(rest: list[ModelEvent]) -> bool:
    return len(rest) == 1 and isinstance(rest[0], Done) and rest[0].stop == "cut"


def _final_error(failure: Failure, attempts: int) -> ModelError:
    if not failure.passing or attempts == 1:
        return failure.error
    return ModelError(failure.error.code, f"{failure.error} Tried {attempts} times.")
