"""Task types by layer: what overrides what, and how far the inner loops of each have collapsed.

Specified in ``docs/reference/task-types.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from cockpit.collections.collection import Collection, Listed, Part, View
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.loop.intake.task_type_layers import LayerChange, LayeredType

_TEXTS = ("template", "project_words")
_LOOPS = {
    "early": "you decide each request",
    "trusted": "some requests pass",
    "collapsed": "nothing is asked",
}
_AS_OFFERS = {"trusted": "suspended", "collapsed": "active"}


def _read(view: View) -> Listed[LayeredType]:
    from cockpit.loop.intake.task_type_layers import explain_layers
    from cockpit.loop.trust.list_rules import list_states

    types, problems = explain_layers(view.place.home, view.user_dir)
    states = (
        () if view.connection is None else list_states(view.connection, view.clock, view.settings)
    )
    by_name = {state.task_type: state for state in states}
    rows = [replace(each, state=by_name.get(each.kind.name)) for each in types]
    return Listed(rows, [f"Not used: {problem}" for problem in problems])


def _find(view: View, name: str) -> LayeredType:
    listed = _read(view)
    for row in listed.rows:
        if row.kind.name == name:
            return row
    about = " ".join(each for each in listed.remarks if name in each)
    there = f"There are {', '.join(sorted(row.kind.name for row in listed.rows))}."
    raise NotFound(f"There is no task type {name}. {about or there}")


def _loops(row: LayeredType) -> str:
    state = row.state
    return f"{state.orient.state} / {state.decide.state}" if state is not None else ""


def _sign(row: LayeredType) -> str:
    from cockpit.loop.intake.layered_files import LAYERS

    if row.changes or row.first != LAYERS[0]:
        return "active"
    if row.state is None:
        return "gone"
    slower = min(row.state.orient.state, row.state.decide.state, key=list(_LOOPS).index)
    return _AS_OFFERS.get(slower, "gone")


def _about(row: LayeredType) -> str:
    kind, layer = row.kind, row.kind.source_layer
    if row.changes:
        keys = sorted({change.key for change in row.changes})
        layer = f"{layer} over {row.first}: {', '.join(keys)}"
    about = [layer, pluralize(len(kind.dod), "point") + " to be done"]
    return " · ".join([*about, *(["reads only"] if kind.reads_only else [])])


def _document(row: LayeredType) -> dict[str, Any]:
    document: dict[str, Any] = to_builtins(row.kind)
    return {
        **document,
        "first": row.first,
        "changes": to_builtins(row.changes),
        "loops": _loops(row),
    }


def _word_change(change: LayerChange) -> str:
    if change.added:
        return f"adds: {' '.join(change.added.split())}"
    flat, before = " ".join(change.value.split()), " ".join(change.below.split())
    if not before:
        return f"{flat or 'no'} (the layers below say nothing)"
    return f"{flat or 'no'} (in place of: {before})"


def _detail(row: LayeredType) -> Sequence[Part]:
    from cockpit.loop.intake.task_type_layers import describe_keys

    keys = describe_keys(row.kind)
    loops = [("loops", "nothing was decided in it yet")]
    if row.state is not None:
        loops = [
            (loop.inner_loop, f"{loop.state}: {_LOOPS[loop.state]} ({loop.why})")
            for loop in (row.state.orient, row.state.decide)
        ]
    changes = [(f"{change.layer} · {change.key}", _word_change(change)) for change in row.changes]
    return (
        Part(text=f"{row.kind.name}  defined by the {row.first} layer"),
        Part(fields=loops),
        Part("what a layer above changes", changes),
        Part(fields=[each for each in keys.items() if each[0] not in _TEXTS]),
        *(Part(name, text=keys[name]) for name in _TEXTS if name in keys),
    )


def _count(rows: Sequence[LayeredType]) -> str:
    from cockpit.loop.intake.layered_files import LAYERS

    counts = Counter(row.kind.source_layer for row in rows)
    text = ", ".join(f"{counts[layer]} {layer}" for layer in LAYERS if counts[layer])
    return f"{text} · {sum(bool(row.changes) for row in rows)} changed by a layer above"


COLLECTION: Collection[LayeredType] = Collection(
    name="task-types",
    command="task-types",
    title="Task types",
    summary="List and write task types.",
    help="""List, show and write the task types that apply here, and say which files are not used and why.

    A task type says what a kind of work needs: command, context, tools, Definition of Done, skills, policy.
    One is shown as its layers make it.
    """,
    examples=("cockpit task-types", "cockpit task-types bug", "cockpit task-types new migration"),
    row="NAME",
    sample="bug",
    columns={
        "TYPE": lambda row: row.kind.name,
        "LAYER": lambda row: row.kind.source_layer,
        "POLICY": lambda row: row.kind.policy or "–",
        "DONE MEANS": lambda row: f"{len(row.kind.dod)} points",
        "STATE": _loops,
        "COMMAND": lambda row: f"{row.kind.command} {row.kind.arguments}".strip(),
    },
    read=_read,
    find=_find,
    none="No task types.",
    detail=_detail,
    body=_document,
    key="alt+y",
    state=_sign,
    about=_about,
    headline=_count,
    words=lambda row: " ".join((*row.kind.aliases, row.kind.source_layer)),
    reads_files=True,
)
