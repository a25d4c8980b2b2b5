"""The interface of an adapter, and the outcome of an attempt.

Failures are transient (retry), permanent, conflicts (the project changed since the preview), refused (the
reading sandbox did not let a command do what it tried), or of the machine: it was short of something.
See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from cockpit.act.workspace import Workspace
from cockpit.core.failure_lines import clip_start
from cockpit.core.secrets import mask

Found = Literal["done", "not_done", "unknown"]
Failure = Literal["transient", "permanent", "conflict", "refused", "machine"]

TAIL = 8_000
"""Characters of a program's output that a receipt keeps from its end, beside lines that say what failed."""

_WINDOW = 64_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


class Outcome(Struct, frozen=True):
    """The result of one attempt.

    ``failure`` is None for a success. A transient failure is retried, one of the machine pauses the session;
    ``maybe`` says that its effect may have happened. ``detail`` has JSON values for the receipt.
    """

    status: Literal["success", "failure", "timeout"]
    summary: str
    failure: Failure | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    maybe: bool = False


class Adapter(Protocol):
    """Performs one type of action.

    ``ends_when_cancelled``: cancelling :meth:`perform` ends the work and no probe is needed; otherwise a
    probe finds out whether it happened.
    """

    ends_when_cancelled: bool

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Perform ``payload``, leaving ``key`` where :meth:`probe` can find it.

        A change by the user or another program since the preview is a conflict, and nothing is done. Raises
        ``CockpitError`` only when nothing happened.
        """
        ...

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Return whether the effect is there. Changes nothing."""
        ...


def succeeded(summary: str, **detail: Any) -> Outcome:
    """Return the outcome of a success."""
    return Outcome("success", summary, None, detail)


def failed(failure: Failure, summary: str, *, maybe: bool = False, **detail: Any) -> Outcome:
    """Return the outcome of a failure: the effect did not happen, or only in part."""
    return Outcome("failure", summary, failure, detail, maybe)


def tail(output: bytes, limit: int = TAIL) -> str:
    """Return the end of a program's output for a receipt, and in front of it the lines that say what failed.

    The text is masked, without escapes, and cut at a line.
    """
    text = _ESCAPES.sub("", output.decode("utf-8", "replace")).replace("\r\n", "\n")
    if len(text) <= _WINDOW:
        return clip_start(mask(text), limit)
    # Masking megabytes takes long: of what comes before, only the lines that are kept are masked.
    begin = text.find("\n", -_WINDOW) + 1 or len(text) - _WINDOW
    return clip_start(mask(text[begin:]), limit, before=text[:begin])
