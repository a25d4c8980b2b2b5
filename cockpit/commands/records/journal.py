"""``cockpit journal``: every step, in order; checked and exported."""

from __future__ import annotations

import asyncio
import sqlite3

import click

from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import choose_session, find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_json_line
from cockpit.core.canonical_json import canonical_json
from cockpit.core.text import pluralize
from cockpit.store.journal import journal as stored
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row

BATCH = 1000


@click.group(short_help="Every step, in order; checked and exported.")
def journal() -> None:
    """The journal: one row for every step, chained by digests."""


@journal.command()
@click.option("--session", metavar="ID", help="Only this session; 'last' is the newest.")
@click.option("-n", "--lines", type=click.IntRange(0, 100_000), default=20, show_default=True)
@click.option("-f", "--follow", "live", is_flag=True, help="Go on as rows are written.")
@click.option("--json", "as_json", is_flag=True, help="Whole rows, one JSON document a line.")
def tail(session: str | None, lines: int, live: bool, as_json: bool) -> None:
    """Show the newest rows."""
    if live:
        asyncio.run(_follow(session, lines, as_json))
        return
    found: list[Row] = read_store(lambda connection: _last(connection, session, lines)[0], empty=[])
    _print(found, as_json)


@journal.command()
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
@click.pass_context
def verify(ctx: click.Context, as_json: bool) -> None:
    """Walk the whole chain: finds any row that was changed, removed or inserted."""
    verdict = read_store(stored.verify)
    if as_json:
        seq, why = verdict.broken or (None, None)
        show_json({"ok": verdict.ok, "rows": verdict.rows, "broken_at": seq, "why": why})
    elif verdict.broken is None:
        show(f"ok: {pluralize(verdict.rows, 'row')}, each follows from the one before")
    else:
        show(f"broken: {verdict.broken[1]}")
    if not verdict.ok:
        ctx.exit(Exit.FAILED)


@journal.command()
@click.option("--session", metavar="ID", help="Only this session; 'last' is the newest.")
def export(session: str | None) -> None:
    """Write all rows to stdout, one JSON document a line."""
    after, count = 0, 0
    named: str | None = None
    if session is not None:
        named = read_store(lambda connection: choose_session(connection, session))
    place = find_project()
    if not place.database.exists():
        say("Nothing was recorded here yet.")
        return
    with open_store(place) as store:
        while True:
            rows = store.read_now(
                lambda connection, after=after: stored.rows(  # type: ignore[misc] # bound per turn
                    connection, after=after, session_id=named, limit=BATCH
                )
            )
            if not rows:
                break
            after, count = rows[-1].seq, count + len(rows)
            _print(rows, as_json=True)
    say(pluralize(count, "row"))


async def _follow(session: str | None, lines: int, as_json: bool) -> None:
    with open_store(find_project()) as store:
        found, named = await store.read(lambda connection: _last(connection, session, lines))
        newest = await store.read(stored.last_seq)
        _print(found, as_json)
        after = found[-1].seq if found else newest
        async for rows in follow(store, after=after, session_id=named):
            _print(rows, as_json)


def _last(
    connection: sqlite3.Connection, session: str | None, lines: int
) -> tuple[list[Row], str | None]:
    """The newest rows, oldest of them first, and the session they were narrowed to."""
    named = None if session is None else choose_session(connection, session)
    where, values = ("", ()) if named is None else (" WHERE session_id=?", (named,))
    found = connection.execute(
        f"{stored.SELECT}{where} ORDER BY seq DESC LIMIT ?",
        (*values, lines),
    ).fetchall()
    return [stored.read_row(values) for values in reversed(found)], named


def _print(rows: list[Row], as_json: bool) -> None:
    for row in rows:
        if as_json:
            show_json_line(row.line())
        else:
            show(_line(row).replace("\n", "⏎"))


def _line(row: Row) -> str:
    sign = {"ok": " ", "refused": "✘", "error": "!"}[row.result]
    detail = canonical_json(row.raw_detail())
    short = detail if len(detail) <= 160 else detail[:159] + "…"
    return f"{row.seq:>6} {row.at[11:19]} {sign} {row.actor:<10} {row.action:<28} {short}"
