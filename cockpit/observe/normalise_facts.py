"""Facts from the text that a source read: mask secrets, build levels, count tokens, score quality.

See ``docs/reference/kernel.md`` (facts) and ``docs/reference/security.md`` (masking).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.core.secrets import mask, mask_value
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.minhash_sketch import sketch_text
from cockpit.observe.preview_cost import band_for, initial_utility
from cockpit.observe.rendered_cost import with_cost
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sensitive_files import LARGE_BYTES
from cockpit.observe.text_quality import measure_quality
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
    """Make a fact of ``item``: mask every text, and count the tokens of every level.

    A fact contains no more than the granted level: for an item at ``outline``, the outline becomes the
    full text, and the provenance says so (``level``). Newer content with the same ``key`` (a path, a
    range), kind and level replaces the fact. ``reference`` becomes one line. With ``by_reference``, or
    for more than :data:`~cockpit.observe.sensitive_files.LARGE_BYTES`, the raw text is not stored, only
    reference and outline, and the provenance says ``by_reference``.
    """
    kind = source_type or item.kind
    line = _one_line(mask(reference))
    marks: dict[str, Any] = {**provenance, "level": item.level}
    full, short = mask(text), None if outline is None else mask(outline)
    worth = measure_quality(full)
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
    return with_cost(
        Fact(
            source_type=kind,
            source_ref=mask(str(item)),
            band=band_for(kind),
            full=full_level,
            reference=_level(line),
            outline=short_level,
            provenance=mask_value(marks),
            dedupe_key=mask(f"{kind}:{key}@{item.level}"),
            utility=initial_utility(kind) * worth // UTILITY_MAX,
            quality=worth,
            sketch=sketch_text(full_level.text),
        )
    )


def _level(text: str) -> Level:
    # Lone surrogates (from names and contents that are not UTF-8) cannot be stored or sent.
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return Level(clean, count_tokens(clean))


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
