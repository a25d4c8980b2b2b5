"""Exchanges: what the agent said and called, and what came back, as facts of the next wave.

A call and its result are one fact: kept or dropped together. Ids of providers are replaced by
places (``call-3-1``: third wave, first call), so that the same story has the same facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.secrets import mask, mask_value
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.context.facts import Fact, Level

RESULT_LIMIT = 24_000
"""Characters of a result that are kept; the rest is cut with a notice."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call and its result. ``call`` is empty for words without a call.

    ``status`` is one of approved, narrowed, rejected, discussed, expired, confirmed, failed,
    uncertain, refused, malformed, fetched, said, interrupted.
    """

    wave: int
    place: int
    text: str
    call: str
    arguments: Mapping[str, Any]
    result: str
    status: str

    def fact(self) -> Fact:
        """The exchange as a fact of the situational band, the newest never dropped lightly."""
        result = mask(clipped(self.result))
        arguments = mask_value(dict(self.arguments))
        text = mask(self.text)
        told = text if not self.call else f"{self.call} {canonical_json(arguments)}\n→ {result}"
        full = f"{text}\n{told}" if text and self.call else told
        name = self.call or "words"
        brief = f"wave {self.wave}: {name} → {self.status}"
        return Fact(
            source_type="exchange",
            source_ref=f"exchange:{self.wave}.{self.place}",
            band="situational",
            full=Level(full, count_tokens(full)),
            reference=Level(brief, count_tokens(brief)),
            provenance={
                "text": text,
                "call": self.call,
                "call_id": f"call-{self.wave}-{self.place}" if self.call else "",
                "arguments": arguments,
                "result": result,
                "status": self.status,
            },
            utility=800_000,
        )


def clipped(text: str, limit: int = RESULT_LIMIT) -> str:
    """``text``, its middle cut out when it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return (
        f"{text[:half]}\n[… {pluralize(len(text) - limit, 'character')} left out …]\n{text[-half:]}"
    )


def spoken(source_type: str, source_ref: str, text: str, *, band: str = "objectives") -> Fact:
    """Words to the agent (a person's, or a notice of cockpit's) as a pinned fact."""
    safe = mask(text)
    brief = safe.strip().splitlines()[0][:120] if safe.strip() else source_ref
    return Fact(
        source_type=source_type,
        source_ref=source_ref,
        band=band,
        full=Level(safe, count_tokens(safe)),
        reference=Level(brief, count_tokens(brief)),
        pinned=True,
        utility=1_000_000,
    )
