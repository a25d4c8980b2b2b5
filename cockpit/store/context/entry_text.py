"""The text that an entry of a packet shows. See ``docs/reference/kernel.md``, packets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.core.fenced_text import gone_line
from cockpit.core.text_change import describe_change
from cockpit.store.context.facts import FactText
from cockpit.store.context.packets import DIFF, GONE, Entry


def facts_shown(entries: Iterable[Entry]) -> list[str]:
    """Return the ids of the facts that :func:`text_shown` needs for these entries, sorted."""
    return sorted({name for entry in entries for name in (entry.fact_id, entry.base) if name})


def text_shown(entry: Entry, texts: Mapping[str, FactText]) -> str:
    """Return the text of an entry, without what a prompt writes around it; ``texts`` are by fact id."""
    text = texts[entry.fact_id]
    if entry.level == DIFF:
        return describe_change(texts[entry.base].full, text.full) or text.full
    if entry.level == GONE:
        return gone_line(text.source_ref)
    levels = {"full": text.full, "outline": text.outline or "", "reference": text.reference}
    return levels[entry.level]
