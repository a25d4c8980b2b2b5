"""The request of a program that starts a chain, journalled with the chain.

The process of the chain records it in the transaction that creates the chain. So the server that
started the process finds the chain, and a repeated request starts no second one. Specified in
``docs/reference/http.md``, chains.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from cockpit.chains.create_chain import ChainRefused
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import ChainNoted
from cockpit.store.journal.event_types import Action


class ChainRequest(Struct, frozen=True):
    """Who asks for a chain."""

    by: str
    """The principal, as the journal names it."""
    request: str
    """The id of the request, which names one chain."""


def record_request(tx: Tx, chain: Chain, request: ChainRequest) -> None:
    """Journal that ``request`` started the chain.

    Raises :class:`ChainRefused` where the same request did so before.
    """
    earlier = find_requested(tx.connection, request.request)
    if earlier:
        raise ChainRefused(f"This request has started {earlier} already.")
    note = ChainNoted(chain_id=chain.chain_id, what="requested", request=request.request)
    tx.journal(note, actor=request.by)


def find_requested(connection: sqlite3.Connection, request: str) -> str:
    """Return the chain that the request started; empty for none."""
    row = connection.execute(
        "SELECT json_extract(detail_json, '$.chain_id') FROM journal WHERE action=?"
        " AND json_extract(detail_json, '$.request')=?",
        (str(Action.CHAIN_NOTED), request),
    ).fetchone()
    return "" if row is None else str(row[0])
