"""The text that an entry of a packet shows. See ``docs/reference/kernel.md``, packets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from cockpit.core.fenced_text import gone_line
from cockpit.core.text_change import describe_change, point_to_repeats
from cockpit.store.context.facts import FactText
from cockpit.store.context.packets import DIFF, GONE, POINTED, Entry


def facts_shown(entries: Iterable[Entry]) -> list[str]:
    """Return the ids of the facts that :func:`text_shown` needs for these entries, sorted."""
    return sorted({name for entry in entries for name in (entry.fact_id, *entry.base.split())})


def text_shown(entry: Entry, texts: Mapping[str, FactText]) -> str:
    """Return the text of an entry, without what a prompt writes around it; ``texts`` are by fact id."""
    text = texts[entry.fact_id]
    if entry.level == DIFF:
        return describe_change(texts[entry.base].full, text.full) or text.full
    if entry.level == GONE:
        return gone_line(text.source_ref)
    if entry.level == POINTED:
        return fact_shown(entry, texts).full
    levels = {"full": text.full, "outline": text.outline or "", "reference": text.reference}
    return levels[entry.level]


def fact_shown(entry: Entry, texts: Mapping[str, FactText]) -> FactText:
    """Return the fact of an entry as it is shown: with pointers in the place of what it repeats."""
    text = texts[entry.fact_id]
    if entry.level != POINTED:
        return text
    return point_fact(text, [texts[name] for name in entry.base.split()])[0]


def point_fact(text: FactText, above: Sequence[FactText]) -> tuple[FactText, tuple[str, ...]]:
    """Return a fact with pointers in the place of lines that facts ``above`` show, and the ids of those.

    Of an exchange these are lines of its result and of what its call says.
    """
    lines = [(base.source_ref, part) for base in above for part in parts_of(base)]
    owners = [base.fact_id for base in above for _ in parts_of(base)]
    used = dict[str, None]()

    def point(part: str) -> str:
        pointed, places = point_to_repeats(part, lines)
        used.update(dict.fromkeys(owners[place] for place in places))
        return pointed

    if text.source_type != "exchange":
        return replace(text, full=point(text.full)), tuple(used)
    provenance = dict(text.provenance)
    provenance["arguments"] = {
        name: point(value) if isinstance(value, str) else value
        for name, value in provenance.get("arguments", {}).items()
    }
    provenance["result"] = point(str(provenance.get("result", "")))
    return replace(text, provenance=provenance), tuple(used)


def parts_of(text: FactText) -> list[str]:
    """Return the texts of a fact that stand verbatim in a prompt."""
    if text.source_type != "exchange":
        return [text.full]
    arguments = text.provenance.get("arguments", {}).values()
    texts = [value for value in arguments if isinstance(value, str)]
    return [*texts, str(text.provenance.get("result", ""))]
