"""Chains of workers, the newest first, each with its progress, its cost and its workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.access.token_scopes import WORK_READ
from cockpit.chains.report.chain_document import chain_document
from cockpit.collections.collection import LIMIT, Collection, Field, View, open_records
from cockpit.core.errors import NotFound
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain

Document = Mapping[str, Any]
_NO_CHAIN = "No chains yet. `cockpit work` starts one."


def choose_chain(connection: sqlite3.Connection, named: str | None) -> Chain:
    """Return the chain by its id, or the newest for None and for last. Raises :class:`NotFound`."""
    if named not in (None, "last"):
        return chains.load(connection, chains.read_id(str(named)))
    newest = chains.select(connection, 1)
    if not newest:
        raise NotFound(_NO_CHAIN)
    return newest[0]


def _read(view: View, limit: int) -> Sequence[Document]:
    if view.connection is None:
        return ()
    return [chain_document(view.connection, row) for row in chains.select(view.connection, limit)]


def _find(view: View, name: str) -> Document:
    connection = open_records(view)
    return chain_document(connection, choose_chain(connection, name))


def _describe_scope(row: Document) -> str:
    scope = row["scope"]
    return f"{scope['kind']} {scope['id']}" if scope["id"] else "the backlog"


COLLECTION: Collection[Document] = Collection(
    name="chains",
    command="chain",
    title="Chains",
    summary="Manage chains of workers.",
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
    sample="ch-3",
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
    none=_NO_CHAIN,
    filters=(Field("limit", LIMIT.help, kind="number", default=50, most=1000),),
    scope=WORK_READ,
    key="f5",
)
