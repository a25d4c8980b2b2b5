"""What the guards know: the current packet's files, what failed, what changed since.

All of it is read from the store, so that it survives a restart and goes with a session that is handed
over. Source: Context Efficiency seed (``LoopState``); design of Act.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from cockpit.act.guards import GuardState, Standing, argv_digest
from cockpit.loop.wave_context import Here
from cockpit.store.context import facts, packets
from cockpit.store.sessions import messages, outbox
from cockpit.store.sessions.outbox import OutboxAction

_CHANGING = ("write_file", "edit_file", "git_commit", "github")


def guard_state(connection: sqlite3.Connection, here: Here) -> GuardState:
    """The state that the calls of this wave are checked against."""
    session_id = here.session.session_id
    actions = outbox.select_for_session(connection, session_id)
    changes, failed = _history(connection, session_id, actions)
    return GuardState(
        packet_files=_standing(connection, here, actions),
        failed_commands=failed,
        changes=changes,
        project_repo=here.engine.repo,
        pinned_rev=here.session.rev is not None,
    )


def _history(
    connection: sqlite3.Connection, session_id: str, actions: list[OutboxAction]
) -> tuple[int, dict[str, int]]:
    """How often the project changed, and at which count each command failed last."""
    happened: list[tuple[str, int, OutboxAction | None]] = [
        (message.created_at, 0, None)
        for message in messages.select_for_session(connection, session_id)
        if message.role == "person"
    ]
    ended = dict(
        connection.execute(
            "SELECT action_id, max(created_at) FROM action_receipts WHERE action_id IN"
            " (SELECT action_id FROM wave_runs CROSS JOIN outbox_actions USING(wave_id)"
            " WHERE wave_runs.session_id=?) GROUP BY action_id",
            (session_id,),
        ).fetchall()
    )
    happened += [
        (ended[action.action_id], place, action)
        for place, action in enumerate(actions, start=1)
        if action.action_id in ended
    ]
    changes, failed = 0, dict[str, int]()
    for _, _, action in sorted(happened, key=lambda one: (one[0], one[1])):
        if action is None or (action.phase == "confirmed" and action.action_type in _CHANGING):
            changes += 1
        elif action.action_type == "run" and action.phase == "failed_terminal":
            argv = action.payload.get("argv")
            if argv:
                failed[argv_digest([str(word) for word in argv])] = changes
    return changes, failed


def _standing(
    connection: sqlite3.Connection, here: Here, actions: list[OutboxAction]
) -> dict[str, tuple[Standing, ...]]:
    """By path: the lines in the current packet at full detail, and files this session wrote."""
    found: dict[str, list[Standing]] = defaultdict(list)
    packet = packets.load(connection, here.wave.wave_id).packet
    full = {entry.fact_id: band for band, entry in packet.rendered() if entry.level == "full"}
    files = facts.load_provenances(connection, "file", list(full))
    for fact_id, band in full.items():
        provenance = files.get(fact_id)
        if provenance is None:
            continue
        path = str(provenance["path"])
        if provenance.get("by_reference") or provenance.get("level", "full") != "full":
            # What stands there in full is an outline or the names in it: the lines can be asked for.
            found[path].append(Standing(0, 0, "", f"{band}, {fact_id}, in outline"))
            continue
        first, last = provenance["lines"]
        sha = str(provenance["sha256"])
        where, total = f"{band}, {fact_id}", int(provenance.get("total_lines", 0))
        found[path].append(Standing(int(first), int(last), sha, where, total))
    for action in actions:
        if action.phase == "confirmed" and action.action_type in ("write_file", "edit_file"):
            # Its content stands in the exchange; no line range, so it never makes a read redundant.
            found[str(action.payload["path"])].append(Standing(0, 0, "", "written by you"))
    return {path: tuple(parts) for path, parts in found.items()}
