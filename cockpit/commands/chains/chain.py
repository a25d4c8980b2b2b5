"""``cockpit chain``: list, show, watch and stop chains, and take their branches."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.chains.report.chain_document import chain_document
from cockpit.cli_options import examples
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.chains import branch_commands
from cockpit.commands.chains.chain_text import chain_text
from cockpit.commands.chains.worktrees import worktrees
from cockpit.commands.collection import Collection, limit_option
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import show
from cockpit.core.errors import NotFound
from cockpit.store.backlog.backlog_ids import TASK, read_id
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain

if TYPE_CHECKING:
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.db.transaction import Tx

_CHAIN = click.argument("chain_id", metavar="[CHAIN]", required=False)
_TEXT = "text"
_NO_CHAIN = "No chains yet. `cockpit work` starts one."


def _read(limit: int) -> Sequence[dict[str, Any]]:
    return read_store(
        lambda connection: [
            chain_document(connection, row) for row in chains.select(connection, limit)
        ],
        empty=[],
    )


def _find(name: str, report: bool) -> dict[str, Any]:
    from cockpit.tasks.agent_changes.moved_branch import find_lost_tasks

    chosen = read_store(lambda connection: choose_chain(connection, name))
    place = find_project()
    if report:
        written = asyncio.run(_find_report(place, chosen))
        return {_TEXT: written.read_text(encoding="utf-8"), "path": str(written)}
    with open_store(place) as store:
        lost = asyncio.run(find_lost_tasks(store, place, chosen))
        text = store.read_now(lambda connection: chain_text(connection, chosen))
        document = store.read_now(lambda connection: chain_document(connection, chosen))
    lines = [text, *(f"  ! {each.describe()}." for each in lost)]
    return {
        **document,
        "no_longer_on_branch": [each.task_id for each in lost],
        _TEXT: "\n".join(lines),
    }


def _describe_scope(document: dict[str, Any]) -> str:
    scope = document["scope"]
    return f"{scope['kind']} {scope['id']}" if scope["id"] else "the backlog"


chain = Collection(
    "chain",
    short_help="Manage chains of workers.",
    help="""Manage chains: runs of `cockpit work` over one or more worker processes; newest first.

    CHAIN is an id such as ch-3, or 3, or last, which a command uses without it. One is shown with its tasks,
    the cost so far, and how much of its token limit each worker has used.
    """,
    examples=(
        "cockpit chain",
        "cockpit chain ch-3 --json",
        "cockpit chain last --report",
        "cockpit chain watch",
    ),
    row="CHAIN",
    columns={
        "CHAIN": lambda row: row["chain_id"],
        "STATUS": lambda row: row["status"],
        "SCOPE": _describe_scope,
        "TASKS": lambda row: f"{row['progress']['done']}/{row['progress']['total']}",
        "READY": lambda row: str(row["progress"]["ready"]),
        "WORKERS": lambda row: str(len(row["sessions"])),
        "TOKENS": lambda row: f"{row['tokens']:,}",
        "BRANCH": lambda row: row["branch"],
    },
    read=_read,
    find=_find,
    describe=lambda document, report: document[_TEXT],
    none=_NO_CHAIN,
    body=dict,
    document=lambda document, report: (
        document if report else {name: each for name, each in document.items() if name != _TEXT}
    ),
    filters=[limit_option(50, 1000)],
    details=[
        click.option(
            "--report",
            is_flag=True,
            help="Print the report of one instead; one that was not written yet is written now.",
        )
    ],
)


@chain.command("watch", epilog=examples("cockpit chain watch", "cockpit chain watch ch-3"))
@_CHAIN
def watch_chain(chain_id: str | None) -> None:
    """Print the events of a chain as they happen.

    It ends with the chain. Ctrl+C ends the watching and leaves the chain running.
    """
    asyncio.run(_watch(chain_id))


@chain.command("stop", epilog=examples("cockpit chain stop", "cockpit chain stop ch-3 --now"))
@_CHAIN
@click.option("--now", is_flag=True, help="Stop at once, without finishing steps in progress.")
def stop_chain(chain_id: str | None, now: bool) -> None:
    """Stop a chain after its steps in progress.

    A second call stops it at once. Nothing is lost; `cockpit work --continue` resumes the chain.
    """
    from cockpit.chains.report.chain_report import write_report_if_set

    place = find_project()
    chosen_id = read_store(lambda connection: choose_chain(connection, chain_id)).chain_id
    with open_store(place) as store:
        stored = store.write_now(lambda tx: _request_stop(tx, chosen_id, now))
        if stored.status not in chains.OPEN:
            setting = load_project_settings(place).headless.report
            asyncio.run(write_report_if_set(store, place, setting, stored))
    if stored.status != "draining":
        show(f"{stored.chain_id} is {stored.status}: no worker was running.")
    elif stored.stop_now:
        show(f"{stored.chain_id} stops now.")
    else:
        show(f"{stored.chain_id} stops after its steps in progress. Run this again to stop it now.")


def choose_chain(connection: sqlite3.Connection, named: str | None) -> Chain:
    """Return the chain by its id, or the newest for None and for last. Raises :class:`NotFound`."""
    if named not in (None, "last"):
        return chains.load(connection, chains.read_id(str(named)))
    newest = chains.select(connection, 1)
    if not newest:
        raise NotFound(_NO_CHAIN)
    return newest[0]


def _read_branch(named: str | None) -> str:
    """Return the name of the branch of a task, such as T-4, or of a chain."""
    if named is not None and named[:1] in "tT":
        return read_id(TASK, named)
    return read_store(lambda connection: choose_chain(connection, named)).chain_id


for _command in (*branch_commands.build_commands(_read_branch), worktrees):
    chain.add_command(_command)


def _request_stop(tx: Tx, chain_id: str, now: bool) -> Chain:
    """Ask the chain to stop; a second request stops it at once."""
    from cockpit.access.principals import journal_actor
    from cockpit.chains.supervisor import request_stop

    again = chains.load(tx.connection, chain_id).status == "draining"
    by = journal_actor(find_caller(tx))
    return request_stop(tx, chain_id, now=now or again, by=by)


async def _watch(chain_id: str | None) -> None:
    from cockpit.commands.chains.watch_chain import ChainPrinter

    place = find_project()
    settings = load_project_settings(place)
    chosen = read_store(lambda connection: choose_chain(connection, chain_id))
    with open_store(place) as store:
        show(store.read_now(lambda connection: chain_text(connection, chosen)))
        if chosen.status not in chains.OPEN:
            return
        after = store.read_now(lambda connection: _seq_before_start(connection, chosen))
        await ChainPrinter(store, settings, chosen.chain_id, after).follow_to_end()


def _seq_before_start(connection: sqlite3.Connection, chosen: Chain) -> int:
    """Return the sequence number of the journal row before the chain was last started."""
    (seq,) = connection.execute(
        "SELECT max(seq) FROM journal WHERE action='chain.changed' AND"
        " json_extract(detail_json, '$.what') IN ('created','resumed')"
        " AND json_extract(detail_json, '$.chain_id')=?",
        (chosen.chain_id,),
    ).fetchone()
    return int(seq) - 1


async def _find_report(place: ProjectPaths, chosen: Chain) -> Path:
    """Return the path of the chain's report, which is written where there is none."""
    from cockpit.chains.report.chain_report import write_report

    if chosen.report_path and (path := place.home / chosen.report_path).is_file():
        return path
    with open_store(place) as store:
        return await write_report(store, place, chosen)
