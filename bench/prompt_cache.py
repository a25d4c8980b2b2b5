"""What prompts cost with a provider's cache: which of their tokens are read from it, and which are sent anew.

A prompt is a row of blocks in the order of the wire: tools, system text, messages. Tokens that the
provider has in its cache cost a tenth, tokens that are sent and kept one and a quarter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cockpit.core.canonical_json import canonical_json
from cockpit.core.fenced_text import MESSAGE_TOKENS
from cockpit.decide.measure_prompt import count_prompt, count_tools
from cockpit.decide.model import Prompt, PromptMessage
from cockpit.decide.provider_messages import choose_cache_points
from cockpit.observe.count_tokens import count_again
from cockpit.store.context.packet_epoch import DEFAULT_PRICES

Way = Literal["breakpoints", "any prefix"]
"""Anthropic's cache ends at breakpoints; OpenAI's at any place."""

LOOK_BACK = 20
"""Blocks before a breakpoint among which the provider looks for what it has."""


@dataclass(frozen=True, slots=True)
class Block:
    """One part of a prompt: the digest of all up to its end, its tokens, and whether a breakpoint follows."""

    prefix: bytes
    tokens: int
    ends_part: bool


def blocks_of(prompt: Prompt) -> list[Block]:
    """Split a prompt into blocks, in the order of the wire."""
    points = choose_cache_points(prompt.messages)
    tools = canonical_json([[t.name, t.description, dict(t.parameters)] for t in prompt.tools])
    rows = [
        (tools, count_tools(prompt.tools, count_again), False),
        (prompt.system, count_again(prompt.system) + MESSAGE_TOKENS, True),
        *(
            (repr(_said(message)), _count(prompt, message), at in points)
            for at, message in enumerate(prompt.messages)
        ),
    ]
    blocks, digest = [], hashlib.sha256()
    for text, tokens, ends in rows:
        digest.update(text.encode("utf-8", "surrogatepass"))
        blocks.append(Block(digest.copy().digest(), tokens, ends))
    return blocks


def _said(message: PromptMessage) -> tuple[object, ...]:
    return (message.role, message.text, message.calls, message.call_id, message.tool_name)


def _count(prompt: Prompt, message: PromptMessage) -> int:
    alone = Prompt(system="", messages=(message,), tools=())
    return count_prompt(alone, count_again)


@dataclass(slots=True)
class Cache:
    """A provider's cache in the course of one session; :meth:`send` returns (tokens, cached, cost units)."""

    way: Way
    held: set[bytes] = field(default_factory=set)

    def send(self, blocks: Sequence[Block]) -> tuple[int, int, int]:
        tokens = sum(block.tokens for block in blocks)
        ends = [at for at, block in enumerate(blocks) if block.ends_part]
        kept = max(ends, default=-1) if self.way == "breakpoints" else len(blocks) - 1
        looked_at = (
            {at for end in ends for at in range(max(end - LOOK_BACK, 0), end + 1)}
            if self.way == "breakpoints"
            else set(range(len(blocks)))
        )
        hit = max((at for at in looked_at if blocks[at].prefix in self.held), default=-1)
        cached = sum(block.tokens for block in blocks[: hit + 1])
        written = sum(block.tokens for block in blocks[hit + 1 : kept + 1])
        keep = ends if self.way == "breakpoints" else range(len(blocks))
        self.held.update(blocks[at].prefix for at in keep)
        prices = DEFAULT_PRICES
        plain = tokens - cached - written
        cost = prices.read * cached + prices.write * written + 1_000 * plain
        return tokens, cached, cost // 1_000
