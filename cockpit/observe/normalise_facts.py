"""From what a source read to a fact: secrets masked, levels made, tokens counted, worth scored.

Source: RFC-003 §10.1 step 4, §16.4; design of Observe ("normalise").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.core.secrets import mask, mask_value
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.preview_cost import band, utility
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sensitive_files import LARGE_BYTES
from cockpit.observe.simhash import sketch
from cockpit.observe.text_quality import quality
from cockpit.store.context.facts import UTILITY_MAX, Fact, Level

_LINE = 300


def make_fact(
    item: ScopeItem,
    text: str,
    *,
    reference: str,
    outline: str | None = None,
    provenance: Mapping[str, Any],
    key: str,
    source_type: str | None = None,
    by_reference: bool = False,
) -> Fact:
    """A fact of ``item``: every text masked, every level's tokens counted.

    What was granted at a lower level is all that the fact holds: an item at ``outline`` has its
    outline as its full text, and its provenance says so (``level``). ``key`` names what newer content
    replaces (a path, a range) and is kept apart by kind and level. ``reference`` becomes one line.
    With ``by_reference``, or for more than :data:`~cockpit.observe.sensitive_files.LARGE_BYTES`, the raw
    text is not kept: reference and outline are, and the provenance says ``by_reference``.
    """
    kind = source_type or item.kind
    line = _one_line(mask(reference))
    marks: dict[str, Any] = {**provenance, "level": item.level}
    full, short = mask(text), None if outline is None else mask(outline)
    worth = quality(full)
    if item.level == "outline":
        full, short = short or line, None
    elif item.level == "reference":
        full, short = line, None
    elif by_reference or len(full.encode("utf-8", "replace")) > LARGE_BYTES:
        full, short = f"{line}\n{short}" if short else line, None
        marks["by_reference"] = True
    full_level = _level(full)
    short_level = None if short is None else _level(short)
    if short_level is not None and short_level.tokens >= full_level.tokens:
        short_level = None
    return Fact(
        source_type=kind,
        source_ref=mask(str(item)),
        band=band(kind),
        full=full_level,
        reference=_level(line),
        outline=short_level,
        provenance=mask_value(marks),
        dedupe_key=mask(f"{kind}:{key}@{item.level}"),
        utility=utility(kind) * worth // UTILITY_MAX,
        quality=worth,
        sketch=sketch(full_level.text),
    )


def _level(text: str) -> Level:
    # Lone surrogates (from names and contents that are not UTF-8) cannot be stored or sent.
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return Level(clean, count_tokens(clean))


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
