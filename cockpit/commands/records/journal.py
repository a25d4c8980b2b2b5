"""``cockpit journal`` and ``cockpit debug journal``: show, verify and export the journal."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TextIO

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.choose_session import choose_session
from cockpit.commands.caller_rights import find_user
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import (
    WrongUse,
    find_project,
    open_store,
    read_store,
    require_records,
)
from cockpit.commands.terminal import say, show, show_json, show_json_line
from cockpit.core.canonical_json import canonical_json
from cockpit.core.text import pluralize
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal as stored
from cockpit.store.journal import verify_chain
from cockpit.store.journal.details.store import JournalAnchored
from cockpit.store.journal.export_rows import compare_with_store, verify_export
from cockpit.store.journal.follow import follow
from cockpit.store.journal.head_anchor import last_row
from cockpit.store.journal.journal import Row

BATCH = 1000


@click.command(
    short_help="Show the newest rows of the journal.",
    epilog=examples(
        "cockpit journal -n 50 --session last",
        "cockpit journal -f --json",
        "cockpit journal --all --json > journal.jsonl",
    ),
)
@click.option("--session", metavar="ID", help="Show only rows of this session, an id or last.")
@click.option(
    "--task",
    metavar="ID",
    help="Show what a worker of another machine sent for this task, its own journal, with --json.",
)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0, 100_000),
    default=20,
    show_default=True,
    help="Show this many rows.",
)
@click.option("--all", "every", is_flag=True, help="Show every row.")
@click.option("-f", "--follow", "live", is_flag=True, help="Print new rows as they are written.")
@click.option("--json", "as_json", is_flag=True, help="Print whole rows, one JSON document a line.")
def journal(
    session: str | None, task: str | None, lines: int, every: bool, live: bool, as_json: bool
) -> None:
    """Show the newest rows of the journal: one row per step, chained by digests.

    With --all --json it is an export, with the digest of each row: `cockpit debug journal --export FILE`
    verifies it anywhere.
    """
    if task is not None:
        if session is not None or every or live or not as_json:
            raise WrongUse("--task needs --json, and no other option.")
        _print_remote(task)
    elif live:
        if every:
            raise WrongUse("--all and --follow exclude each other.")
        asyncio.run(_follow(session, lines, as_json))
    elif every:
        _print_all(session, as_json)
    else:
        newest_rows: list[Row] = read_store(
            lambda connection: _last(connection, session, lines)[0], empty=[]
        )
        _print(newest_rows, as_json)


def _print_all(session: str | None, as_json: bool) -> None:
    place = find_project()
    if not place.database.exists():
        say("Nothing was recorded yet.")
        return
    after, count = 0, 0
    with open_store(place) as store:
        named = session and store.read_now(lambda connection: choose_session(connection, session))
        while rows := store.read_now(
            lambda connection, after=after: stored.rows(  # type: ignore[misc] # bound per turn
                connection, after=after, session_id=named, limit=BATCH
            )
        ):
            after, count = rows[-1].seq, count + len(rows)
            _print(rows, as_json)
    say(pluralize(count, "row"))


@click.command(
    "journal",
    epilog=examples(
        "cockpit debug journal",
        "cockpit journal --all --json | cockpit debug journal --export -",
        "cockpit debug journal --accept",
    ),
)
@click.option(
    "--export",
    "exported",
    type=click.File("r", encoding="utf-8"),
    help="Verify this export instead of the store; - is standard input.",
)
@click.option("--accept", is_flag=True, help="Use the store as it is, after you restored a backup.")
@AS_JSON
@click.pass_context
def verify(ctx: click.Context, exported: TextIO | None, accept: bool, as_json: bool) -> None:
    """Verify the journal.

    It finds any row of the journal that was changed, removed or inserted, and a store whose end was cut off
    or that was replaced by another one, by its anchor: the journal's last row, in a file next to the
    projects' states. Then it ends with 1. --accept is for you, at a terminal; the journal records it.
    """
    if exported is not None:
        if not _verify_export(exported, as_json):
            ctx.exit(Exit.FAILED)
        return
    if accept:
        _accept()
    verdict, fault = _verify_store()
    is_sound = verdict.ok and not fault
    seq, why = verdict.broken or (None, None)
    if as_json:
        body: dict[str, object] = {
            "ok": is_sound,
            "rows": verdict.rows,
            "broken_at": seq,
            "why": why,
            "anchor": fault or None,
        }
        show_json(body | ({"pruned_until": verdict.pruned} if verdict.pruned else {}))
    else:
        pruned = f"; rows up to {verdict.pruned} were pruned" if verdict.pruned else ""
        rows = pluralize(verdict.rows, "row")
        show(f"broken: {why}" if why else f"ok: {rows}, each follows from the one before{pruned}")
        if fault:
            show(f"anchor: {fault}")
    if not is_sound:
        ctx.exit(Exit.FAILED)


def _verify_export(lines: TextIO, as_json: bool) -> bool:
    """Verify an export, and compare its end with this project's journal where there is one."""
    try:
        verdict = verify_export(lines)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"The export is not UTF-8 text: {error}.") from error
    difference = None
    if verdict.ok and find_project().database.exists():
        with open_store(find_project()) as store:
            difference = store.read_now(lambda connection: compare_with_store(connection, verdict))
    number, why = verdict.broken or (None, None)
    if as_json:
        body: dict[str, object] = {
            "ok": verdict.ok,
            "rows": verdict.rows,
            "broken_at": number,
        }
        body |= {"why": why, "last": verdict.last, "digest": verdict.digest}
        show_json(body | {"unchained": verdict.unchained, "store": difference})
    elif why is not None:
        show(f"broken: line {number}: {why}")
    else:
        kept = (
            f"; {pluralize(verdict.unchained, 'row')} from before a pruning"
            if verdict.unchained
            else ""
        )
        show(
            f"ok: {pluralize(verdict.rows, 'row')} to row {verdict.last}, each follows from the one"
            f" before{kept}"
        )
        show(f"end: {verdict.digest}")
        if difference is not None:
            show(f"store: {difference or 'this project has that row'}")
    return verdict.ok


def _verify_store() -> tuple[verify_chain.Verdict, str]:
    """Verify the chain, and compare its end with the anchor outside the store."""
    require_records()
    with open_store(find_project()) as store:
        verdict = store.read_now(verify_chain.verify)
        if verdict.ok:
            store.anchor.write()
        return verdict, store.anchor.fault


def _accept() -> None:
    """Make the store's end the anchor, where the two differ."""
    require_records()
    with open_store(find_project()) as store:
        kept = store.anchor
        if fault := kept.fault:
            store.write_now(lambda tx: find_user(tx, "accepting a changed store"))
            store.write_now(lambda tx: _record_accepted(tx, fault))
            kept.accept()
            say("The store is accepted as it is.")


def _record_accepted(tx: Tx, fault: str) -> None:
    seq, digest = last_row(tx.connection)
    tx.journal(JournalAnchored(seq=seq, digest=digest, fault=fault), actor="person")


def _print_remote(task: str) -> None:
    """Print the journal of the worker that did the task last."""
    from cockpit.store.backlog import tasks
    from cockpit.store.chains import remote_runs

    def read(connection: sqlite3.Connection) -> list[str]:
        task_id = tasks.load(connection, task).task_id
        newest = remote_runs.find_newest(connection, task_id)
        if newest is None:
            raise WrongUse(
                f"No worker of another machine has worked on {task_id}, so it has no journal from"
                " there. `cockpit journal` shows the journal here."
            )
        return remote_runs.select_rows(connection, task_id, newest.run, newest.fence)

    lines = read_store(read)
    for line in lines:
        show_json_line(line)
    say(pluralize(len(lines), "row"))


async def _follow(session: str | None, lines: int, as_json: bool) -> None:
    with open_store(find_project()) as store:
        newest_rows, named = await store.read(lambda connection: _last(connection, session, lines))
        newest = await store.read(stored.last_seq)
        _print(newest_rows, as_json)
        after = newest_rows[-1].seq if newest_rows else newest
        async for rows in follow(store, after=after, session_id=named):
            _print(rows, as_json)


def _last(
    connection: sqlite3.Connection, session: str | None, lines: int
) -> tuple[list[Row], str | None]:
    """Return the newest rows, oldest first, and the id of the session that they belong to."""
    named = None if session is None else choose_session(connection, session)
    where, values = ("", ()) if named is None else (" WHERE session_id=?", (named,))
    newest_rows = connection.execute(
        f"{stored.SELECT}{where} ORDER BY seq DESC LIMIT ?",
        (*values, lines),
    ).fetchall()
    return [stored.read_row(values) for values in reversed(newest_rows)], named


def _print(rows: list[Row], as_json: bool) -> None:
    for row in rows:
        if as_json:
            show_json_line(row.line())
        else:
            show(_line(row).replace("\n", "⏎"))


def _line(row: Row) -> str:
    sign = {"ok": " ", "refused": "✗", "error": "!"}[row.result]
    detail = canonical_json(row.raw_detail())
    short = detail if len(detail) <= 160 else detail[:159] + "…"
    return f"{row.seq:>6} {row.at[11:19]} {sign} {row.actor:<10} {row.action:<28} {short}"
