"""``cockpit guards``: list the guards, show, approve and forget those of the user and of projects."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, TOKEN, examples
from cockpit.commands.caller_rights import find_user
from cockpit.commands.open_project import (
    WrongUse,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import is_terminal, say, show, show_json, show_list
from cockpit.core.errors import NotFound

if TYPE_CHECKING:
    from cockpit.loop.session_state.list_own_guards import OwnGuardRow
    from cockpit.store.db.transaction import Tx


@click.group(
    short_help="Manage guards of yours and of projects.",
    epilog=examples("cockpit guards list", "cockpit guards approve no_migrations"),
)
def guards() -> None:
    """Manage the guards that look at an agent's calls before you are asked.

    cockpit's own guards are always on. Yours are functions in Python in .cockpit/guards/NAME.py, or in the
    folder guards of your configuration. A guard can only refuse.
    """


@guards.command("list", epilog=examples("cockpit guards list", "cockpit guards list --json"))
@AS_JSON
def list_guards(as_json: bool) -> None:
    """List guards in their order.

    The first refusal counts. Nothing of a guard's file is run.
    """
    from cockpit.act.guards.guard_registry import GUARDS

    rows = _read_rows()
    records: list[dict[str, Any]] = [
        {"guard": guard.name, "state": "built in", "refuses": guard.refuses, "why": guard.why}
        for guard in GUARDS
    ]
    records += [_record(row) for row in rows]
    show_list(
        as_json,
        records,
        ("GUARD", "STATE", "REFUSES"),
        [(each["guard"], each["state"], each["refuses"]) for each in records],
        "",
    )


@guards.command("show", epilog=examples("cockpit guards show no_migrations"))
@click.argument("name")
@AS_JSON
def show_guard(name: str, as_json: bool) -> None:
    """Show a guard and what it refuses.

    For one of yours it prints the source that would be approved.
    """
    from cockpit.act.guards.guard_registry import GUARDS

    for guard in GUARDS:
        if guard.name == name:
            record = {"guard": guard.name, "refuses": guard.refuses, "why": guard.why}
            if as_json:
                show_json(record)
            else:
                show(f"{guard.name} · built in\nRefuses {guard.refuses}: {guard.why}.")
            return
    row = _find_row(name)
    if as_json:
        show_json({**_record(row), "sources": row.sources, "digest": row.digest})
    else:
        show(_describe(row))


@guards.command("approve", epilog=examples("cockpit guards approve no_migrations"))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask, as in a script that you wrote.")
@TOKEN
def approve_guard(name: str, yes: bool, token: str) -> None:
    """Approve this version of a guard.

    cockpit shows the source and asks; then the guard is asked about each call, in the sandbox. An edit of
    its file changes nothing until you approve it again.
    """
    from cockpit.loop.session_state.list_own_guards import approve_shown
    from cockpit.loop.tools.approve_tools import require_person

    row = _find_row(name)
    if row.file is None:
        raise WrongUse(f"{row.guard_id} cannot be approved: {row.note}")
    show(_describe(row))
    if not yes:
        if not is_terminal(sys.stdin):
            raise WrongUse("No terminal to confirm on; nothing was approved. Pass --yes.")
        if not click.confirm("Let this guard refuse calls of agents?", default=False, err=True):
            raise click.Abort
    place = find_project()
    user_dir = load_project_settings(place).runtime.user_dir

    def write(tx: Tx) -> None:
        require_person(find_user(tx, token, "approving a guard"))
        approve_shown(tx, place, user_dir, row)

    with open_store(place) as store:
        store.write_now(write)
    say(f"Approved: {row.guard_id}")


@guards.command("forget", epilog=examples("cockpit guards forget no_migrations"))
@click.argument("name")
@TOKEN
def forget_guard(name: str, token: str) -> None:
    """Revoke the approval of a guard.

    It is not asked any more.
    """
    from cockpit.loop.tools.approve_tools import require_person
    from cockpit.store.guards import approved_guards

    row = _find_row(name)

    def write(tx: Tx) -> None:
        require_person(find_user(tx, token, "forgetting a guard"))
        if not approved_guards.forget(tx, row.guard_id, by="person"):
            raise NotFound(f"{row.guard_id} is not approved. `cockpit guards list` lists guards.")

    with open_store(find_project()) as store:
        store.write_now(write)
    say(f"Forgotten: {row.guard_id}")


def _read_rows() -> tuple[OwnGuardRow, ...]:
    from cockpit.loop.session_state.list_own_guards import list_own_guards

    place = find_project()
    user_dir = load_project_settings(place).runtime.user_dir
    rows: tuple[OwnGuardRow, ...] = read_store(
        lambda connection: list_own_guards(connection, place, user_dir),
        empty=list_own_guards(None, place, user_dir),
    )
    return rows


def _find_row(name: str) -> OwnGuardRow:
    rows = [row for row in _read_rows() if name in (row.guard_id, row.guard_id.partition(":")[2])]
    if not rows:
        raise NotFound(f"There is no guard {name}. `cockpit guards list` lists them.")
    if len(rows) > 1:
        names = ", ".join(row.guard_id for row in rows)
        raise WrongUse(f"Several guards are called {name}: {names}. Name one with its place.")
    return rows[0]


def _record(row: OwnGuardRow) -> dict[str, Any]:
    return {
        "guard": row.guard_id,
        "state": row.state,
        "refuses": row.note,
        "tools": list(row.tools),
    }


def _describe(row: OwnGuardRow) -> str:
    seen = ", ".join(row.tools) if row.tools else "all actions"
    parts = [f"{row.guard_id} · {row.state}\n{row.note}", f"Asked about: {seen}."]
    if row.digest:
        parts.append(f"digest {row.digest}")
    for path, text in row.sources.items():
        # In front of every line, so that no content can pass for words of cockpit.
        parts.append("\n".join([f"── {path}", *(f"│ {line}" for line in text.splitlines())]))
    return "\n\n".join(parts)
