"""What went wrong at a provider, whether waiting helps, and the words a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cockpit.decide.model import ModelError
from cockpit.decide.model_endpoint import Endpoint

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelHTTPError

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
LONGEST_ASKED_WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. ``reason`` is short and clean, for the line that says it is tried again;
    ``asked_wait_s`` is what the provider asked to wait, ``error`` what is raised in the end."""

    passing: bool
    reason: str
    asked_wait_s: float | None
    error: ModelError


def wait_before(failure: Failure, attempt: int) -> float | None:
    """Seconds to wait before trying again after ``attempt`` (1-based) failed; None: do not.

    Doubling from one second to thirty, without jitter: one person's cockpit is no herd, and a wave
    must replay. A provider's own wish goes before it, unless it is longer than two minutes.
    """
    if not failure.passing:
        return None
    if failure.asked_wait_s is not None:
        return failure.asked_wait_s if failure.asked_wait_s <= LONGEST_ASKED_WAIT_S else None
    return float(min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S))


def broken_off(endpoint: Endpoint) -> Failure:
    """The stream ended without an error, and without a word."""
    return _network(endpoint, "the stream ended before anything came")


def failure_of(error: Exception, endpoint: Endpoint) -> Failure | None:
    """The failure that an SDK's exception stands for; None when it is no provider's failure."""
    import httpx2
    from pydantic_ai import exceptions as sdk

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
    words = f"{status}: {_said(error.body) or 'no words'}"
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
    said = endpoint.clean(words)
    if not endpoint.key:
        text = f"{endpoint.title} asks for a key ({said}). Set {endpoint.key_variable}."
    elif status == 403:
        text = (
            f"The key in {endpoint.key_variable} may not use {endpoint.model} at {endpoint.title} "
            f"({said}). Use a key that may, or choose another model."
        )
    else:
        text = (
            f"The key in {endpoint.key_variable} was refused by {endpoint.title} ({said}). "
            "Set a valid key and start again."
        )
    return _lasting("auth", said, text)


def _not_found(endpoint: Endpoint, words: str, suggestion: str | None) -> Failure:
    said = endpoint.clean(words)
    meant = f" Did you mean {endpoint.clean(suggestion)}?" if suggestion else ""
    text = (
        f"{endpoint.title} does not know the model {endpoint.model!r} ({said}).{meant} "
        f"Choose another model, or check the address {endpoint.base_url}."
    )
    return _lasting("not_found", said, text)


def _too_long(endpoint: Endpoint, words: str) -> Failure:
    said = endpoint.clean(words)
    text = (
        f"The packet is longer than {endpoint.model} takes ({said}). "
        "Lower ORIENTATION_TOKEN_BUDGET, or choose a model with a larger window."
    )
    return _lasting("bad_request", said, text)


def _rejected(endpoint: Endpoint, words: str) -> Failure:
    said = endpoint.clean(words)
    text = f"{endpoint.title} refused the request for {endpoint.model}: {said}"
    return _lasting("bad_request", said, text)


def _quota(endpoint: Endpoint, words: str) -> Failure:
    said = endpoint.clean(words)
    text = (
        f"The account behind {endpoint.key_variable} has no credit left at {endpoint.title} "
        f"({said}). Top it up, or choose another model."
    )
    return _lasting("rate_limit", said, text)


def _limited(endpoint: Endpoint, words: str, retry_after: float | None) -> Failure:
    said = endpoint.clean(words)
    asked = f" It asks to wait {retry_after:g} s." if retry_after is not None else ""
    text = (
        f"{endpoint.title} limits how often {endpoint.model} may be called ({said}).{asked} "
        "Try again later, or choose another model."
    )
    return Failure(True, f"rate limited ({said})", retry_after, ModelError("rate_limit", text))


def _failing(endpoint: Endpoint, words: str, retry_after: float | None) -> Failure:
    said = endpoint.clean(words)
    text = f"{endpoint.title} fails to serve {endpoint.model} ({said}). Try again later."
    return Failure(True, f"the service failed ({said})", retry_after, ModelError("network", text))


def _network(endpoint: Endpoint, words: str) -> Failure:
    said = endpoint.clean(words)
    text = (
        f"No answer for {endpoint.model} from {endpoint.base_url} ({said}). "
        "Check the network, the proxy and the address, then try again."
    )
    return Failure(True, f"connection lost ({said})", None, ModelError("network", text))


def _lasting(code: str, reason: str, text: str) -> Failure:
    return Failure(False, reason, None, ModelError(code, text))


def _said(body: object) -> str:
    """The provider's own words out of an error body of any of the shapes in use."""
    if isinstance(body, Mapping):
        for key in ("error", "message", "detail"):
            inner = body.get(key)
            if inner:
                return _said(inner)
        return ""
    return body if isinstance(body, str) else ""


def _deepest(error: BaseException) -> str:
    """The words of the exception at the bottom: the SDKs above it only say 'Connection error.'"""
    words = str(error)
    while error.__cause__ is not None:
        error = error.__cause__
        words = str(error) or words
    return words or type(error).__name__
