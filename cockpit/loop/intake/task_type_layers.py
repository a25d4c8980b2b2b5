"""Task types with what each layer makes of them, and how far the inner loops of each have collapsed.

See ``docs/reference/task-types.md``, on the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from cockpit.loop.intake.layered_files import LAYERS
from cockpit.loop.intake.task_types import TaskType, load_task_types
from cockpit.loop.trust.list_rules import TaskTypeState

_OWN_FIELDS = frozenset({"name", "project_lines", "source_layer"})


class LayerChange(Struct, frozen=True):
    """What one layer says of one key of a task type."""

    layer: str
    key: str
    value: str
    """The key's value from this layer on."""
    below: str
    """The value that it replaces; empty where no layer below has one."""
    added: str = ""
    """What it adds to the list of the layers below; empty where it replaces."""


class LayeredType(Struct, frozen=True):
    """A task type as the layers make it."""

    kind: TaskType
    first: str
    """The layer that defines it."""
    changes: tuple[LayerChange, ...] = ()
    """What the layers above that one change, lower layers first."""
    state: TaskTypeState | None = None
    """The state of its inner loops; None while nothing was decided in it."""


def explain_layers(
    project_root: Path | None, user_dir: Path | None
) -> tuple[tuple[LayeredType, ...], tuple[str, ...]]:
    """Load the task types layer by layer; returns them with what each layer changes. Blocks."""
    stages = (
        load_task_types(None, None),
        load_task_types(None, user_dir),
        load_task_types(project_root, user_dir),
    )
    whole = stages[-1]
    rows = []
    for name, kind in whole.types.items():
        having = [
            (layer, stage.types[name])
            for layer, stage in zip(LAYERS, stages, strict=True)
            if name in stage.types
        ]
        changes = [
            change
            for (_, below), (layer, above) in pairwise(having)
            for change in _compare(layer, below, above)
        ]
        rows.append(LayeredType(kind, having[0][0], tuple(changes)))
    rows.sort(key=lambda row: (-LAYERS.index(row.kind.source_layer), row.kind.name))
    return tuple(rows), whole.problems


def describe_keys(kind: TaskType) -> Mapping[str, str]:
    """Return every key of a task type that says something, as text."""
    return {
        name: text
        for name in kind.__struct_fields__
        if name not in _OWN_FIELDS and (text := _text(getattr(kind, name)))
    }


def _compare(layer: str, below: TaskType, above: TaskType) -> Sequence[LayerChange]:
    return [
        LayerChange(layer, name, _text(new), _text(old), _text(_added(old, new)))
        for name in above.__struct_fields__
        if name not in _OWN_FIELDS
        and (new := getattr(above, name)) != (old := getattr(below, name))
    ]


def _added(old: object, new: object) -> tuple[object, ...]:
    if isinstance(old, tuple) and isinstance(new, tuple) and old and new[: len(old)] == old:
        return new[len(old) :]
    return ()


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " · ".join(str(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else ""
    return str(value)
