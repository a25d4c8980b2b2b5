"""How facts stand to what a session is about: their words, and the files that the agent works with.

Words are weighed by bm25 in whole numbers, over the facts at hand. See ``docs/reference/kernel.md``,
the compiler.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from cockpit.core.canonical_json import canonical_json
from cockpit.core.named_files import find_named_files
from cockpit.orient.fact_columns import FactColumns
from cockpit.orient.score_facts import RELEVANCE_ONE, Relevance
from cockpit.store.context.facts import FactText
from cockpit.store.context.profile_model import BANDS

LoadTexts = Callable[[Sequence[str]], Mapping[str, FactText]]
"""Reads the texts of facts by id; ids that are not stored are left out."""

MOST_RELATED = 1_000
"""Facts, the newest, that are related; of older ones nothing is known."""
READ_FACTOR, WRITTEN_FACTOR = 8, 3
"""How many times more facts are worth that were read of files in work, and calls that wrote such files."""
FILES_READ = 3
"""Files that were read last."""
FILES_WRITTEN = 2
"""Files that were written last: what the agent wrote into them it often types again."""
_MOST_CHARACTERS = 24_000
_ABOUT = ("task", "person", "notice", "wip")
"""Sources that say what the session is about."""
_RELATED_BANDS = (BANDS.index("situational"), BANDS.index("exploration"))
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_PART = re.compile(r"[A-Z]?[a-z0-9]{3,}|[A-Z]{3,}")
_EDITS = re.compile(r"\bsed -i|\bwrite\(|write_text|\bgit apply|\bpatch -")


def relate_facts(columns: FactColumns, load_texts: LoadTexts) -> Relevance:
    """Return the relevance of the newest facts that compete.

    The words are those of the task, the user's messages, work in progress, the last call and its result, and
    of calls that failed.
    """
    relevance = Relevance.none(len(columns))
    compete = ~columns.superseded & np.isin(columns.band, _RELATED_BANDS)
    places = np.flatnonzero(compete)[-MOST_RELATED:].tolist()
    about = [
        i for i in range(len(columns)) if _type(columns, i) in _ABOUT and not columns.superseded[i]
    ]
    texts = load_texts([columns.fact_ids[i] for i in (*about, *places)])
    exchanges = [i for i in places if _type(columns, i) == "exchange"]
    calls = [i for i in exchanges if columns.pinned[i]] + exchanges[-1:]
    query = Counter[str]()
    for i in (*about, *calls):
        if columns.fact_ids[i] in texts:
            query.update(dict.fromkeys(count_words(_said(texts[columns.fact_ids[i]])), 1))
    present = [i for i in places if columns.fact_ids[i] in texts]
    counts = [count_words(_said(texts[columns.fact_ids[i]])) for i in present]
    relevance.terms[present] = _weigh(counts, query)
    _flag_working(relevance, [(i, texts[columns.fact_ids[i]]) for i in present])
    return relevance


def _type(columns: FactColumns, i: int) -> str:
    return columns.types[int(columns.source_type[i])]


def _said(text: FactText) -> str:
    return f"{text.source_ref}\n{text.full[:_MOST_CHARACTERS]}"


@lru_cache(maxsize=2_048)
def count_words(text: str) -> Mapping[str, int]:
    """Count the words of a text: identifiers, and the parts of compound ones."""
    counts = Counter[str]()
    for word, times in Counter(_WORD.findall(text)).items():
        counts[word.lower()] += times
        parts = _PART.findall(word)
        if len(parts) > 1:
            for part in parts:
                counts[part.lower()] += times
    return counts


def _weigh(counts: Sequence[Mapping[str, int]], query: Mapping[str, int]) -> list[int]:
    """Return the bm25 of each text for the words of ``query``, scaled so that the best has all."""
    if not counts:
        return []
    lengths = [sum(words.values()) for words in counts]
    average = max(sum(lengths) // len(lengths), 1)
    holders = Counter(word for words in counts for word in words if word in query)
    rarity = {
        # Eight times the logarithm to the base of two, in whole numbers.
        word: (((2 * len(counts) + 1) // (2 * held + 1) + 1) ** 8).bit_length()
        for word, held in holders.items()
    }
    weights = []
    for words, length in zip(counts, lengths, strict=True):
        around = 300 + 900 * length // average
        weights.append(
            sum(
                rarity[word] * query[word] * 2_200 * words[word] // (1_000 * words[word] + around)
                for word in words
                if word in rarity
            )
        )
    best = max(max(weights), 1)
    return [RELEVANCE_ONE * weight // best for weight in weights]


def _flag_working(relevance: Relevance, facts: Sequence[tuple[int, FactText]]) -> None:
    """Flag what was read of files that were edited or read last, and the writes of those written last."""
    called = {i: find_called(text) for i, text in facts}
    read, written, edited = dict[str, None](), dict[str, None](), set[str]()
    for i, text in reversed(facts):
        if is_reading(text):
            read.update(dict.fromkeys(sorted(called[i])))
        elif is_write(text):
            written.update(dict.fromkeys(sorted(called[i])))
        if is_edit(text):
            edited |= called[i]
    to_read, to_write = edited.union(list(read)[:FILES_READ]), {*list(written)[:FILES_WRITTEN]}
    for i, text in facts:
        if is_reading(text) and not to_read.isdisjoint(called[i]):
            relevance.factor[i] = READ_FACTOR
        elif is_write(text) and not to_write.isdisjoint(called[i]):
            relevance.factor[i] = WRITTEN_FACTOR


def is_reading(text: FactText) -> bool:
    """Whether a fact is what the agent read."""
    return text.source_type != "exchange" or text.provenance.get("sandbox") == "reading"


def is_edit(text: FactText) -> bool:
    """Whether a fact is a call that changes a file."""
    call = text.provenance.get("call")
    if call in ("write_file", "edit_file"):
        return True
    command = _command_of(text.provenance)
    return bool(command) and _EDITS.search(command) is not None


def is_write(text: FactText) -> bool:
    """Whether a fact is a call that changes a file or writes a new one."""
    return is_edit(text) or "<<" in _command_of(text.provenance)


def find_called(text: FactText) -> frozenset[str]:
    """Return the files that a fact is about: a call by its arguments, all else by its source."""
    if text.source_type != "exchange":
        return find_named_files(text.source_ref)
    arguments = text.provenance.get("arguments", {})
    if text.provenance.get("call") in ("write_file", "edit_file"):
        return find_named_files(str(arguments.get("path", "")))
    return find_named_files(_command_of(text.provenance) or canonical_json(arguments))


def _command_of(provenance: Mapping[str, Any]) -> str:
    return str(provenance.get("arguments", {}).get("command", ""))
