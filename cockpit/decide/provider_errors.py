"""Failures of a provider: whether a retry can help, and the message for the user."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from cockpit.decide.model import ModelError
from cockpit.decide.model_endpoint import Endpoint
from cockpit.decide.provider_stream import AnswerTooLong, NoContent

if TYPE_CHECKING:
    from httpx2 import Response
    from pydantic_ai.exceptions import ModelHTTPError

_DOCUMENTS = ("application/json", "text/html")
_LONGEST_PAGE = 300


class NoStream(Exception):
    """A service answered with a document, as routers do for errors; the text is its reason."""


async def refuse_document(response: Response) -> None:
    """Raise :class:`NoStream` for a successful answer that is a document in place of a stream.

    The SDKs read no event out of it, and say only that nothing came.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not response.is_success or kind not in _DOCUMENTS:
        return
    text = (await response.aread()).decode("utf-8", "replace")
    try:
        reason = _error_message(json.loads(text))
    except ValueError:
        reason = ""
    page = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    raise NoStream(reason or page[:_LONGEST_PAGE] or f"an empty document of type {kind}")


async def bound_response(response: Response, *, most: int) -> None:
    """Let the body of a response end with :class:`AnswerTooLong` after ``most`` bytes."""
    from httpx2 import AsyncByteStream

    class Bounded(AsyncByteStream):
        def __init__(self, stream: AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = most
            async for chunk in self._stream:
                left -= len(chunk)
                if left < 0:
                    raise AnswerTooLong(f"it sent more than {most:,} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    if isinstance(response.stream, AsyncByteStream):
        response.stream = Bounded(response.stream)


class Failure(Struct, frozen=True):
    """One failed attempt to call a model."""

    passing: bool
    """Whether a retry can help."""
    reason: str
    """A short text without secrets, for the line that announces a retry."""
    asked_wait_s: float | None
    """Seconds that the provider asks to wait."""
    error: ModelError
    """Raised when no retry follows."""


def broken_off(endpoint: Endpoint) -> Failure:
    """Return the failure of a stream that ended without an error and without text."""
    return _network(endpoint, "the stream ended before anything came")


def failure_of(error: Exception, endpoint: Endpoint) -> Failure | None:
    """Return the failure that an SDK's exception means; None when the provider did not cause it."""
    import httpx2
    from pydantic_ai import exceptions as sdk

    if isinstance(innermost := _find_innermost(error), NoStream):
        return _failing(endpoint, str(innermost), None)
    if isinstance(innermost, AnswerTooLong):
        return _endless(endpoint, str(innermost))
    if isinstance(error, NoContent):
        return _network(endpoint, str(error))
    if isinstance(error, sdk.ModelHTTPError):
        return _answered(error, endpoint)
    if isinstance(error, httpx2.TransportError | httpx2.StreamError | OSError):
        # A stream that breaks off mid-way is not wrapped by every SDK.
        return _network(endpoint, _deepest(error))
    if isinstance(error, sdk.ModelTimeoutError | sdk.ModelRequestTimeout):
        words = f"no answer for {endpoint.timeout_s:g} s"
        return _network(endpoint, words)
    if isinstance(error, sdk.ModelConnectionError):
        return _network(endpoint, _deepest(error))
    if isinstance(error, sdk.ModelContextWindowExceededError):
        return _too_long(endpoint, error.message)
    if isinstance(error, sdk.ModelRequestRejectedError):
        return _rejected(endpoint, error.message)
    if isinstance(error, sdk.ModelQuotaExceededError):
        return _quota(endpoint, error.message)
    if isinstance(error, sdk.ModelRateLimitError):
        return _limited(endpoint, error.message, error.retry_after)
    if isinstance(error, sdk.ModelAPIError | sdk.UnexpectedModelBehavior):
        return _failing(endpoint, error.message, None)
    if isinstance(error, sdk.UserError):
        return _rejected(endpoint, error.message)
    return None


def _answered(error: ModelHTTPError, endpoint: Endpoint) -> Failure:
    from pydantic_ai import exceptions as sdk

    status = error.status_code
    words = f"{status}: {_error_message(error.body) or 'no message'}"
    if isinstance(error, sdk.ModelQuotaExceededError):
        return _quota(endpoint, words)
    if isinstance(error, sdk.ModelAuthenticationError) or status in (401, 403):
        return _refused_key(endpoint, status, words)
    if isinstance(error, sdk.ModelNotFoundError) or status == 404:
        return _not_found(endpoint, words, error.suggested_model_id)
    if isinstance(error, sdk.ModelContextWindowExceededError) or status == 413:
        return _too_long(endpoint, words)
    if isinstance(error, sdk.ModelRateLimitError) or status == 429:
        return _limited(endpoint, words, error.retry_after)
    if status in (408, 409) or status >= 500:
        return _failing(endpoint, words, error.retry_after)
    return _rejected(endpoint, words)


def _refused_key(endpoint: Endpoint, status: int, words: str) -> Failure:
    detail = endpoint.clean(words)
    if not endpoint.key:
        text = f"{endpoint.title} asks for a key ({detail}). Set {endpoint.key_variable}."
    elif status == 403:
        text = (
            f"The key in {endpoint.key_variable} may not use {endpoint.model} at {endpoint.title} "
            f"({detail}). Use a key that may, or choose another model."
        )
    else:
        text = (
            f"The key in {endpoint.key_variable} was refused by {endpoint.title} ({detail}). "
            "Set a valid key and start again."
        )
    return _lasting("auth", detail, text)


def _not_found(endpoint: Endpoint, words: str, suggestion: str | None) -> Failure:
    detail = endpoint.clean(words)
    hint = f" Did you mean {endpoint.clean(suggestion)}?" if suggestion else ""
    text = (
        f"{endpoint.title} does not know the model {endpoint.model!r} ({detail}).{hint} "
        f"Choose another model, or check the address {endpoint.base_url}."
    )
    return _lasting("not_found", detail, text)


def _too_long(endpoint: Endpoint, words: str) -> Failure:
    detail = endpoint.clean(words)
    text = (
        f"The packet is longer than {endpoint.model} takes ({detail}). "
        "Lower ORIENTATION_TOKEN_BUDGET, or choose a model with a larger window."
    )
    return _lasting("bad_request", detail, text)


def _rejected(endpoint: Endpoint, words: str) -> Failure:
    detail = endpoint.clean(words)
    text = f"{endpoint.title} refused the request for {endpoint.model}: {detail}"
    return _lasting("bad_request", detail, text)


def _quota(endpoint: Endpoint, words: str) -> Failure:
    detail = endpoint.clean(words)
    text = (
        f"The account behind {endpoint.key_variable} has no credit left at {endpoint.title} "
        f"({detail}). Top it up, or choose another model."
    )
    return _lasting("rate_limit", detail, text)


def _limited(endpoint: Endpoint, words: str, retry_after: float | None) -> Failure:
    detail = endpoint.clean(words)
    wait_text = f" It asks to wait {retry_after:g} s." if retry_after is not None else ""
    text = (
        f"{endpoint.title} limits how often {endpoint.model} may be called ({detail}).{wait_text} "
        "Try again later, or choose another model."
    )
    return Failure(True, f"rate limited ({detail})", retry_after, ModelError("rate_limit", text))


def _endless(endpoint: Endpoint, words: str) -> Failure:
    text = f"{endpoint.title} did not end the answer of {endpoint.model}: {words}. Choose another model."
    return _lasting("endless_answer", words, text)


def _failing(endpoint: Endpoint, words: str, retry_after: float | None) -> Failure:
    detail = endpoint.clean(words)
    text = f"{endpoint.title} fails to serve {endpoint.model} ({detail}). Try again later."
    return Failure(True, f"the service failed ({detail})", retry_after, ModelError("network", text))


def _network(endpoint: Endpoint, words: str) -> Failure:
    detail = endpoint.clean(words)
    text = (
        f"No answer for {endpoint.model} from {endpoint.base_url} ({detail}). "
        "Check the network, the proxy and the address, then try again."
    )
    return Failure(True, f"connection lost ({detail})", None, ModelError("network", text))


def _lasting(code: str, reason: str, text: str) -> Failure:
    return Failure(False, reason, None, ModelError(code, text))


def _error_message(body: object) -> str:
    """Return the provider's message out of an error body of any of the shapes in use."""
    if isinstance(body, Mapping):
        for key in ("error", "message", "detail"):
            inner = body.get(key)
            if inner:
                return _error_message(inner)
        return ""
    return body if isinstance(body, str) else ""


def _deepest(error: BaseException) -> str:
    """Return the message of the innermost exception: the SDKs above it only say 'Connection error.'"""
    innermost = _find_innermost(error)
    return str(innermost) or str(error) or type(innermost).__name__


def _find_innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
