"""Task types by layer: what overrides what, and how far the inner loops of each have collapsed.

Specified in ``docs/reference/task-types.md``, on the screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.text import pluralize
from cockpit.loop.intake.layered_files import LAYERS
from cockpit.loop.intake.task_type_layers import LayerChange, LayeredType, describe_keys
from cockpit.loop.trust.list_rules import TaskTypeState
from widgets.text.detail import DetailRow, entries, fields, quoted, sentence
from widgets.text.style_names import DIM, STRONG, Part
from widgets.work.task_card_views import Tone
from widgets.work.task_views import QueuedView

_TEXTS = ("template", "project_words")
_LOOPS: dict[str, str] = {
    "early": "you decide each request",
    "trusted": "some requests pass",
    "collapsed": "nothing is asked",
}
_TONES: dict[str, Tone] = {"early": "dim", "trusted": "accent", "collapsed": "good"}


class TaskTypesScreen(ListScreen[LayeredType]):
    """Every task type, with its keys and the layers that set them."""

    NAME = "Task types"
    PANE = "task_types"
    EMPTY = "No task types. `cockpit task-types check` says why."
    READS_FILES = True

    async def read_rows(self) -> tuple[Sequence[LayeredType], Sequence[str]]:
        return await (await self.host.engine.task_type_service()).read_types()

    def describe(self) -> Sequence[Part]:
        counts = Counter(row.kind.source_layer for row in self.rows)
        text = ", ".join(f"{counts[layer]} {layer}" for layer in LAYERS if counts[layer])
        changed = sum(bool(row.changes) for row in self.rows)
        return [(f"{text} · {changed} changed by a layer above", DIM)]

    def words(self, row: LayeredType) -> str:
        return " ".join((*row.kind.aliases, row.kind.source_layer))

    def draw_row(self, row: LayeredType) -> QueuedView:
        kind, state = row.kind, row.state
        sign = "◆" if row.changes or row.first != LAYERS[0] else "·"
        loops = f"{state.orient.state} / {state.decide.state}" if state is not None else ""
        tone: Tone = (
            _TONES[min(state.orient.state, state.decide.state, key=_rank)] if state else "dim"
        )
        layer = kind.source_layer
        if row.changes:
            keys = sorted({change.key for change in row.changes})
            layer = f"{layer} over {row.first}: {', '.join(keys)}"
        about = [layer, pluralize(len(kind.dod), "point") + " to be done"]
        about += ["reads only"] if kind.reads_only else []
        title = f"{kind.command} {kind.arguments}".strip()
        return QueuedView(kind.name, title, sign, tone, loops, " · ".join(about))

    def draw_detail(self, row: LayeredType, detail: Any) -> Sequence[DetailRow]:
        keys = describe_keys(row.kind)
        short = [(name, text) for name, text in keys.items() if name not in _TEXTS]
        long = [each for name in _TEXTS if name in keys for each in quoted(name, keys[name])]
        by_layer = [
            (f"{change.layer} · {change.key}", _word_change(change)) for change in row.changes
        ]
        return [
            sentence((row.kind.name, STRONG), (f"  defined by the {row.first} layer", DIM)),
            *_state_rows(row.state),
            *entries("what a layer above changes", by_layer),
            sentence(),
            sentence(("as it applies", STRONG)),
            *fields(short),
            *long,
        ]


def _rank(state: str) -> int:
    return list(_LOOPS).index(state)


def _state_rows(state: TaskTypeState | None) -> list[DetailRow]:
    if state is None:
        return fields([("loops", "nothing was decided in it yet")])
    return fields(
        [
            (loop.inner_loop, f"{loop.state}: {_LOOPS[loop.state]} ({loop.why})")
            for loop in (state.orient, state.decide)
        ]
    )


def _word_change(change: LayerChange) -> str:
    if change.added:
        return f"adds: {' '.join(change.added.split())}"
    flat, before = " ".join(change.value.split()), " ".join(change.below.split())
    if not before:
        return f"{flat or 'no'} (the layers below say nothing)"
    return f"{flat or 'no'} (in place of: {before})"
