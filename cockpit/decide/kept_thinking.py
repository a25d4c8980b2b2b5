"""What a model thought before it acted: kept to the letter for its provider, masked for everybody else.

Providers sign what a model thought and take it back only unchanged. So a block in which a secret is suspected
is not altered but dropped, with the others of its answer. See ``docs/reference/loop.md``, thinking.
"""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.core.canonical_json import canonical_json
from cockpit.core.failure_lines import clip_middle
from cockpit.core.secrets import mask, mask_value
from cockpit.decide.model import ThinkingBlock
from cockpit.store.journal.details.waves import ModelThought

MAX_KEPT_BYTES = 256_000
"""Bytes of one answer's blocks that are kept; of more, none are."""
MAX_SHOWN_CHARS = 16_000
"""Characters of thinking that the journal has; the middle of more is left out."""


def keep_blocks(blocks: Sequence[ThinkingBlock]) -> tuple[ThinkingBlock, ...]:
    """Return the blocks to keep of one answer: all, or none where a secret is suspected in one."""
    bodies = [block.body() for block in blocks]
    if len(canonical_json(bodies)) > MAX_KEPT_BYTES or mask_value(bodies) != bodies:
        return ()
    return tuple(blocks)


def describe_thinking(blocks: Sequence[ThinkingBlock], *, is_kept: bool) -> ModelThought:
    """Return the journal's record of what a model thought."""
    text = "\n\n".join(block.text for block in blocks if block.text)
    shown = clip_middle(mask(text), MAX_SHOWN_CHARS)
    return ModelThought(text=shown, blocks=len(blocks), kept=is_kept)
