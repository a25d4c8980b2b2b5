"""What the loopback server answers, independent of the protocol it answers in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Use:
    """A tool call. ``arguments``: a table, or the text to send as it stands."""

    name: str
    arguments: dict[str, Any] | str
    call_id: str = ""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    def named(self, index: int) -> str:
        return self.call_id or f"call_{index}"


def sign(thinking: str) -> str:
    """Return the signature of a text that the model thought."""
    return base64.b64encode(hashlib.sha512(f"signed {thinking}".encode()).digest()).decode()


@dataclass(frozen=True, slots=True)
class Say:
    """An answer, streamed in words.

    ``thinking`` comes before the text, with ``redacted`` only encrypted; ``refusal`` (chat completions
    only) stands in its place.
    ``stop``: None picks the fitting reason, ``length`` is the token limit, ``filter`` the content
    filter. ``input_tokens`` includes ``cached_tokens``. ``cut_after``: the connection breaks after
    so many events of the stream. ``end_after``: the body ends there in good order, but the answer
    does not. ``hold_after``: silence there, until the client hangs up; with ``chatty``, comments that keep
    the connection alive. ``repeat_after``: the event before comes again and again. ``fail_after``: an error
    event stands there, of type ``fail_type``.
    """

    text: str = ""
    calls: tuple[Use, ...] = ()
    thinking: str = ""
    redacted: bool = False
    refusal: str = ""
    stop: str | None = None
    input_tokens: int = 1200
    output_tokens: int = 34
    cached_tokens: int = 1000
    cut_after: int | None = None
    end_after: int | None = None
    hold_after: int | None = None
    chatty: bool = False
    repeat_after: int | None = None
    fail_after: int | None = None
    fail_type: str = "overloaded_error"

    @property
    def fragments(self) -> list[str]:
        return re.findall(r"\s*\S+|\s+$", self.text)

    @property
    def signature(self) -> str:
        """What the server signs its thinking with; with ``redacted``, that itself, encrypted."""
        return sign(self.thinking)


@dataclass(frozen=True, slots=True)
class Refuse:
    """An HTTP error with a body in the provider's shape. ``retry_after``: seconds, as a header."""

    status: int
    message: str = "no"
    kind: str = "error"
    code: str | None = None
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection closes before the first byte of an answer."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing at all is answered until the client hangs up."""


Reply = Say | Refuse | Drop | Silence
