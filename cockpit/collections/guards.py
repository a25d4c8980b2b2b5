"""Guards: what each refuses and has refused, and the approval of those of the user and the project.

Nothing of a guard's file is run to list it. Specified in ``docs/reference/guards.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cockpit.collections.collection import Collection, Doing, Part, Verb, View
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.store.guards import approved_guards

if TYPE_CHECKING:
    from cockpit.chains.report.guard_overview import GuardRow


def _read(view: View) -> Sequence[GuardRow]:
    from cockpit.chains.report.guard_overview import read_guards
    from cockpit.loop.session_state.list_own_guards import list_own_guards

    own = list_own_guards(view.connection, view.place, view.user_dir)
    return read_guards(view.connection, own)


def _find(view: View, name: str) -> GuardRow:
    from cockpit.chains.report.guard_overview import read_refusals
    from cockpit.loop.session_state.list_own_guards import GuardRefused

    rows = [row for row in _read(view) if name in (row.name, row.name.partition(":")[2])]
    if not rows:
        raise NotFound(f"There is no guard {name}.")
    if len(rows) > 1:
        names = ", ".join(row.name for row in rows)
        raise GuardRefused(f"Several guards are called {name}: {names}. Name one with its place.")
    (row,) = rows
    return row if view.connection is None else read_refusals(view.connection, row)


def _approve(doing: Doing, row: GuardRow) -> str:
    from cockpit.loop.session_state.list_own_guards import GuardRefused, approve_shown

    if row.own is None or row.own.file is None:
        why = row.own.note if row.own else "it is cockpit's own, and always on"
        raise GuardRefused(f"{row.name} cannot be approved: {why}")
    approve_shown(doing.tx, doing.view.place, doing.view.user_dir, row.own)
    return f"Approved: {row.name}"


def _forget(doing: Doing, row: GuardRow) -> str:
    if not approved_guards.forget(doing.tx, row.name, by="person"):
        raise NotFound(f"{row.name} is not approved. `cockpit guards` lists guards.")
    return f"Forgotten: {row.name}"


def _state(row: GuardRow) -> str:
    return "built in" if row.own is None else row.own.state


def _sign(row: GuardRow) -> str:
    if row.own is None or row.own.state == "approved":
        return "approved"
    return "new" if row.own.file else "refused"


def _body(row: GuardRow) -> dict[str, Any]:
    body = {"guard": row.name, "state": _state(row), "refuses": row.refuses, "refused": row.refused}
    return {**body, "why": row.why} if row.own is None else {**body, "tools": list(row.own.tools)}


def _document(row: GuardRow) -> dict[str, Any]:
    if row.own is None:
        return _body(row)
    return {**_body(row), "sources": row.own.sources, "digest": row.own.digest}


def _detail(row: GuardRow) -> Iterator[Part]:
    facts = [
        ("refuses", row.refuses),
        ("because", row.why),
        ("refused", pluralize(row.refused, "call")),
        ("state", _state(row)),
    ]
    if row.own is not None:
        tools = ", ".join(row.own.tools) if row.own.tools else "all actions"
        facts += [("asked about", tools), ("digest", row.own.digest)]
    yield Part(text=row.name)
    yield Part(fields=facts)
    if row.own is not None:
        for path, text in row.own.sources.items():
            yield Part(path, text=text)
    refusals = [
        (f"{each.at[:16].replace('T', ' ')}  {each.session_id}", each.message)
        for each in row.refusals
    ]
    yield Part("what it refused, the newest first", refusals)


def _count(rows: Sequence[GuardRow]) -> str:
    refused = sum(row.refused for row in rows)
    own = sum(row.own is not None for row in rows)
    return f"{len(rows) - own} of cockpit's own, {own} of yours · {refused:,} refused"


APPROVE: Verb[GuardRow] = Verb(
    "approve",
    "Approve a guard",
    _approve,
    key="a",
    activity="approving a guard",
    takes=lambda row: row.own is not None and bool(row.own.file) and _state(row) != "approved",
    risk="high",
    question="lets exactly this guard refuse calls of agents",
    is_enter=True,
    has_command=False,  # `cockpit trust` approves and withdraws by name
)
FORGET: Verb[GuardRow] = Verb(
    "forget",
    "Withdraw the approval of a guard",
    _forget,
    key="x",
    activity="forgetting a guard",
    takes=lambda row: _state(row).startswith(("approved", "changed")),
    question="withdraws the approval: it is not asked any more",
    has_command=False,
)

COLLECTION: Collection[GuardRow] = Collection(
    name="guards",
    command="guards",
    title="Guards",
    summary="Manage guards of yours and of projects.",
    help="""Manage the guards that look at an agent's calls before you are asked.

    cockpit's own guards are always on. Yours are functions in Python in .cockpit/guards/NAME.py, or in the
    folder guards of your configuration; `cockpit trust NAME` approves one. A guard can only refuse, and the
    first refusal counts. Nothing of a guard's file is run to list it; of one of yours the source that would
    be approved is shown.
    """,
    examples=(
        "cockpit guards",
        "cockpit guards no_migrations",
        "cockpit trust no_migrations",
    ),
    row="NAME",
    sample="no_migrations",
    columns={
        "GUARD": lambda row: row.name,
        "STATE": _state,
        "REFUSED": lambda row: str(row.refused),
        "REFUSES": lambda row: row.refuses,
    },
    read=_read,
    find=_find,
    none="There are no guards.",
    detail=lambda row: tuple(_detail(row)),
    body=_body,
    document=_document,
    key="alt+g",
    state=_sign,
    about=lambda row: (
        f"refused {pluralize(row.refused, 'call')}" if row.refused else "refused nothing yet"
    ),
    headline=_count,
    words=lambda row: row.why,
    reads_files=True,
    verbs=(APPROVE, FORGET),
)
