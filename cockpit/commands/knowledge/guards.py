"""``cockpit guards``: list the guards, show, approve and forget those of the user and of projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cockpit.act.guards.guard_registry import GUARDS, RegisteredGuard
from cockpit.cli_options import examples
from cockpit.commands.caller_rights import find_user
from cockpit.commands.collection import Collection
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import (
    WrongUse,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import say, show
from cockpit.core.errors import NotFound
from cockpit.loop.session_state.list_own_guards import OwnGuardRow

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

GuardRow = RegisteredGuard | OwnGuardRow


guards = Collection[GuardRow](
    "guards",
    short_help="Manage guards of yours and of projects.",
    help="""Manage the guards that look at an agent's calls before you are asked.

    cockpit's own guards are always on. Yours are functions in Python in .cockpit/guards/NAME.py, or in the
    folder guards of your configuration. A guard can only refuse, and the first refusal counts. Nothing of a
    guard's file is run to list it; of one of yours the source that would be approved is shown.
    """,
    examples=(
        "cockpit guards",
        "cockpit guards no_migrations",
        "cockpit guards approve no_migrations",
    ),
    row="NAME",
    columns={
        "GUARD": lambda row: _record(row)["guard"],
        "STATE": lambda row: _record(row)["state"],
        "REFUSES": lambda row: _record(row)["refuses"],
    },
    read=lambda: (*GUARDS, *_read_own()),
    find=lambda name: (
        next((guard for guard in GUARDS if guard.name == name), None) or _find_own(name)
    ),
    describe=lambda row: _describe(row),
    none="There are no guards.",
    body=lambda row: _record(row),
    document=lambda row: _document(row),
)


@guards.command("approve", epilog=examples("cockpit guards approve no_migrations"))
@click.argument("name")
@YES
def approve_guard(name: str, yes: bool) -> None:
    """Approve this version of a guard.

    cockpit shows the source and asks; then the guard is asked about each call, in the sandbox. An edit of
    its file changes nothing until you approve it again.
    """
    from cockpit.loop.session_state.list_own_guards import approve_shown
    from cockpit.loop.tools.approve_tools import require_person

    row = _find_own(name)
    if row.file is None:
        raise WrongUse(f"{row.guard_id} cannot be approved: {row.note}")
    show(_describe(row))
    confirm("Let this guard refuse calls of agents?", yes=yes, undone="nothing was approved")
    place = find_project()
    user_dir = load_project_settings(place).runtime.user_dir

    def write(tx: Tx) -> None:
        require_person(find_user(tx, "approving a guard"))
        approve_shown(tx, place, user_dir, row)

    with open_store(place) as store:
        store.write_now(write)
    say(f"Approved: {row.guard_id}")


@guards.command("forget", epilog=examples("cockpit guards forget no_migrations"))
@click.argument("name")
def forget_guard(name: str) -> None:
    """Revoke the approval of a guard.

    It is not asked any more.
    """
    from cockpit.loop.tools.approve_tools import require_person
    from cockpit.store.guards import approved_guards

    row = _find_own(name)

    def write(tx: Tx) -> None:
        require_person(find_user(tx, "forgetting a guard"))
        if not approved_guards.forget(tx, row.guard_id, by="person"):
            raise NotFound(f"{row.guard_id} is not approved. `cockpit guards` lists guards.")

    with open_store(find_project()) as store:
        store.write_now(write)
    say(f"Forgotten: {row.guard_id}")


def _read_own() -> tuple[OwnGuardRow, ...]:
    from cockpit.loop.session_state.list_own_guards import list_own_guards

    place = find_project()
    user_dir = load_project_settings(place).runtime.user_dir
    return read_store(
        lambda connection: list_own_guards(connection, place, user_dir),
        empty=list_own_guards(None, place, user_dir),
    )


def _find_own(name: str) -> OwnGuardRow:
    rows = [row for row in _read_own() if name in (row.guard_id, row.guard_id.partition(":")[2])]
    if not rows:
        raise NotFound(f"There is no guard {name}.")
    if len(rows) > 1:
        names = ", ".join(row.guard_id for row in rows)
        raise WrongUse(f"Several guards are called {name}: {names}. Name one with its place.")
    return rows[0]


def _record(row: GuardRow) -> dict[str, Any]:
    if isinstance(row, RegisteredGuard):
        return {"guard": row.name, "state": "built in", "refuses": row.refuses, "why": row.why}
    return {
        "guard": row.guard_id,
        "state": row.state,
        "refuses": row.note,
        "tools": list(row.tools),
    }


def _document(row: GuardRow) -> dict[str, Any]:
    if isinstance(row, RegisteredGuard):
        return _record(row)
    return {**_record(row), "sources": row.sources, "digest": row.digest}


def _describe(row: GuardRow) -> str:
    if isinstance(row, RegisteredGuard):
        return f"{row.name} · built in\nRefuses {row.refuses}: {row.why}."
    seen = ", ".join(row.tools) if row.tools else "all actions"
    parts = [f"{row.guard_id} · {row.state}\n{row.note}", f"Asked about: {seen}."]
    if row.digest:
        parts.append(f"digest {row.digest}")
    for path, text in row.sources.items():
        # In front of every line, so that no content can pass for words of cockpit.
        parts.append("\n".join([f"── {path}", *(f"│ {line}" for line in text.splitlines())]))
    return "\n\n".join(parts)
