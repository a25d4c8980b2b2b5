"""The tokens that a fact takes in a prompt: its text, and all that is written around it.

They are counted once, when the fact is made, so that the compiler adds whole numbers. See
``docs/reference/kernel.md``, the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json
from cockpit.core.fenced_text import (
    CALL_TOKENS,
    MESSAGE_SOURCES,
    MESSAGE_TOKENS,
    SEPARATOR,
    fence_for,
    heading,
    is_head,
)
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.context.facts import Fact, FactCost

_LEVEL_NAME = 3
"""Tokens of `` · outline`` and of `` · reference``."""
_JOIN = 1
"""Tokens of :data:`~cockpit.core.fenced_text.SEPARATOR`."""


def with_cost(fact: Fact) -> Fact:
    """Return the fact with its rendered cost at every level."""
    return replace(fact, cost=rendered_cost(fact))


def sum_costs(facts: Iterable[Fact]) -> int:
    """Return the tokens that a packet spends on facts in full."""
    return sum(fact.cost.full or rendered_cost(fact).full for fact in facts)


def rendered_cost(fact: Fact) -> FactCost:
    """Count the tokens of a fact as a prompt renders it: full, outline (0: none), reference."""
    outline = fact.outline.tokens if fact.outline else 0
    if is_head(fact.band, fact.source_type) or fact.source_type in MESSAGE_SOURCES:
        return _padded(fact.full.tokens, outline, fact.reference.tokens, _JOIN, _JOIN)
    if fact.source_type == "task":
        return _padded(
            fact.full.tokens, outline, fact.reference.tokens, MESSAGE_TOKENS, MESSAGE_TOKENS
        )
    fence = fence_for(fact.full.text)
    around = count_tokens(heading(fact.source_ref, "full", fence))
    around += count_tokens(f"\n{fence}{SEPARATOR}")
    shorter = around + _LEVEL_NAME
    if fact.source_type == "exchange":
        return FactCost(
            _exchange_cost(fact),
            outline + shorter if outline else 0,
            fact.reference.tokens + shorter,
        )
    return _padded(fact.full.tokens, outline, fact.reference.tokens, around, shorter)


def _padded(full: int, outline: int, reference: int, around: int, shorter: int) -> FactCost:
    return FactCost(full + around, outline + shorter if outline else 0, reference + shorter)


def _exchange_cost(fact: Fact) -> int:
    """Count a call and its result as a provider's own messages."""
    call = fact.provenance or {}
    words = count_tokens(str(call["text"])) + _JOIN
    words += sum(CALL_TOKENS + count_tokens(str(b["text"])) for b in call.get("thinking", ()))
    if not call["call"]:
        return words
    names = count_tokens(str(call["call"])) + count_tokens(str(call["call_id"])) + CALL_TOKENS
    arguments = count_tokens(canonical_json(call["arguments"]))
    return words + arguments + 2 * names + MESSAGE_TOKENS + count_tokens(str(call["result"]))
