"""``cockpit chain``: how chains go, and stopping them and going on with them."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import Dollars, Duration
from cockpit.commands.chains.show_chain import document, page
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")
_CHAIN = click.argument("chain_id", metavar="[CHAIN]", required=False)


@click.group(short_help="Chains that `cockpit work` began: how they go, stop, go on.")
def chain() -> None:
    """Chains: what `cockpit work` does, over as many sessions as it takes.

    CHAIN is an id such as ch-3, or 3; without one, the newest chain.
    """


@chain.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON list, each with its sessions[].")
def list_chains(limit: int, as_json: bool) -> None:
    """List chains, the newest first."""
    found: list[dict[str, Any]] = read_store(
        lambda seen: [document(seen, one) for one in chains.select(seen, limit)], empty=[]
    )
    show_list(
        as_json,
        found,
        ("CHAIN", "STATUS", "SCOPE", "TASKS", "READY", "SESSIONS", "TOKENS", "BRANCH"),
        [_line(one) for one in found],
        "There is no chain yet; `cockpit work` begins one.",
    )


@chain.command("show")
@_CHAIN
@_AS_JSON
def show_chain(chain_id: str | None, as_json: bool) -> None:
    """Show a chain: how far it is, what it spent, and how full each of its sessions was."""
    if as_json:
        show_json(read_store(lambda seen: document(seen, _named(seen, chain_id))))
    else:
        show(read_store(lambda seen: page(seen, _named(seen, chain_id))))


@chain.command("watch")
@_CHAIN
def watch_chain(chain_id: str | None) -> None:
    """Tell what a chain does, as it does it, until it has ended. Ctrl+C ends the watching alone."""
    asyncio.run(_watch(chain_id))


@chain.command("stop")
@_CHAIN
@click.option("--now", is_flag=True, help="Do not wait for the steps under way.")
@_AS_JSON
def stop_chain(chain_id: str | None, now: bool, as_json: bool) -> None:
    """Let a chain come to rest: steps under way are finished, nothing new is begun.

    A second call stops it at once. Nothing is lost; `cockpit chain resume` goes on.
    """
    from cockpit.chains.report.chain_report import write_report_if_set

    place = find_project()
    asked = read_store(lambda seen: _named(seen, chain_id)).chain_id
    with open_store(place) as store:
        found = store.write_now(lambda tx: _stop(tx, asked, now))
        if found.status not in chains.OPEN:
            setting = load_project_settings(place).headless.report
            asyncio.run(write_report_if_set(store, place, setting, found))
    if as_json:
        show_json(found.body())
    elif found.status != "draining":
        show(f"{found.chain_id} is {found.status}: nothing ran any more.")
    elif found.stop_now:
        show(f"{found.chain_id} stops now.")
    else:
        show(f"{found.chain_id} comes to rest; the same command again stops it now.")


@chain.command("resume")
@_CHAIN
@click.option("--max-chains", type=click.IntRange(1, 1000), metavar="N", help="Sessions at most.")
@click.option("--max-cost", type=Dollars(), metavar="USD", help="In all.")
@click.option("--max-wall", "max_wall_s", type=Duration(), metavar="TIME", help="In all.")
@_AS_JSON
@click.pass_context
def resume_chain(
    ctx: click.Context, /, chain_id: str | None, as_json: bool, **limits: float | None
) -> None:
    """Go on with a chain that rests or whose process is gone, and see it through.

    The options replace its limits; they count from its first session.
    """
    from cockpit.commands.chains.watch_chain import resume_and_watch

    place = find_project()
    settings = load_project_settings(place)
    known = read_store(lambda seen: _named(seen, chain_id))
    named = known.chain_id if chain_id is not None else None
    given = {name: value for name, value in limits.items() if value is not None}
    with open_store(place) as store:
        going = resume_and_watch(store, place, settings, named, given, as_json)
        ctx.exit(asyncio.run(going))


@chain.command("report")
@_CHAIN
@click.option("--path", "only_path", is_flag=True, help="Where it is, instead of what it says.")
def report_chain(chain_id: str | None, only_path: bool) -> None:
    """Show a chain's report; one that was not written is written now."""
    written = read_store(lambda seen: _named(seen, chain_id)).report_path
    path = find_project().home / written if written else None
    if path is None or not path.is_file():
        path = asyncio.run(_report(chain_id))
    show(str(path) if only_path else path.read_text(encoding="utf-8"))


def _named(connection: sqlite3.Connection, given: str | None) -> Chain:
    if given is not None:
        return chains.load(connection, chains.read_id(given))
    newest = chains.select(connection, 1)
    if not newest:
        raise NotFound("There is no chain yet; `cockpit work` begins one.")
    return newest[0]


def _line(one: dict[str, Any]) -> tuple[str, ...]:
    known, scope = one["progress"], one["scope"]
    return (
        one["chain_id"],
        one["status"],
        f"{scope['kind']} {scope['id']}" if scope["id"] else "the backlog",
        f"{known['done']}/{known['total']}",
        str(known["ready"]),
        str(len(one["sessions"])),
        f"{one['tokens']:,}",
        one["branch"],
    )


def _stop(tx: Tx, chain_id: str, now: bool) -> Chain:
    """Ask the chain to stop; asked again, at once."""
    from cockpit.chains.stop_request import request_stop

    again = chains.load(tx.connection, chain_id).status == "draining"
    return request_stop(tx, chain_id, now=now or again)


async def _watch(chain_id: str | None) -> None:
    from cockpit.commands.chains.watch_chain import Teller

    place = find_project()
    settings = load_project_settings(place)
    found = read_store(lambda seen: _named(seen, chain_id))
    with open_store(place) as store:
        show(store.read_now(lambda seen: page(seen, found)))
        if found.status not in chains.OPEN:
            return
        after = store.read_now(lambda seen: _began(seen, found))
        await Teller(store, place, settings, found.chain_id, after).until_ended()


def _began(connection: sqlite3.Connection, found: Chain) -> int:
    (seq,) = connection.execute(
        "SELECT max(seq) FROM journal WHERE action IN ('chain.created','chain.resumed')"
        " AND json_extract(detail_json, '$.chain_id')=?",
        (found.chain_id,),
    ).fetchone()
    return int(seq) - 1


async def _report(chain_id: str | None) -> Path:
    from cockpit.chains.report.chain_report import write_report

    place = find_project()
    with open_store(place) as store:
        found = store.read_now(lambda seen: _named(seen, chain_id))
        return await write_report(store, place, found)
