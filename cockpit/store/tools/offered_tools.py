"""The tools that a session was offered beside those that all have, from which wave on.

Definitions of tools are a part of the prompt: kept by wave, a stored packet renders to the same prompt again
when the tools have changed since. Specified in ``docs/reference/tools.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.tools import OfferedTool, RareTool, ToolsOffered


def record(
    tx: Tx,
    session_id: str,
    ordinal: int,
    definitions: Sequence[Mapping[str, Any]],
    rare: Mapping[str, str],
    *,
    wave_id: str,
    trace_id: str,
) -> None:
    """Store that the session has these tools from wave ``ordinal`` on; the first record of a wave counts.

    ``definitions`` are of tools that cockpit does not bring; ``rare`` says of its own rare ones why.
    """
    body = {"rare": dict(rare), "tools": [dict(each) for each in definitions]}
    added = tx.execute(
        "INSERT INTO session_tools VALUES (?,?,?) ON CONFLICT DO NOTHING",
        (session_id, ordinal, canonical_json(body)),
    )
    if added.rowcount != 1:
        return
    tools = [
        OfferedTool(tool_id=str(each["tool_id"]), digest=str(each["digest"]))
        for each in definitions
    ]
    tx.journal(
        ToolsOffered(
            tools=tuple(tools),
            rare=tuple(RareTool(name=name, why=why) for name, why in rare.items()) or UNSET,
        ),
        session_id=session_id,
        wave_id=wave_id,
        trace_id=trace_id,
    )


def select_for_session(
    connection: sqlite3.Connection, session_id: str
) -> list[tuple[int, list[Mapping[str, Any]], Mapping[str, str]]]:
    """Read what the session was offered: the first wave of each set, its definitions and its rare tools."""
    rows = connection.execute(
        "SELECT ordinal, tools_json FROM session_tools WHERE session_id=? ORDER BY ordinal",
        (session_id,),
    )
    bodies = [(int(ordinal), parse_json(text)) for ordinal, text in rows]
    return [(ordinal, list(body["tools"]), dict(body["rare"])) for ordinal, body in bodies]
