"""The state that the guards check a wave's calls against, read from the store.

It contains the files of the current packet, the commands that failed, and how often the project changed
since. Being stored, it survives a restart and a session that another process resumes. See
``docs/reference/actions.md``, guards.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from cockpit.act.guards.action_guard import GuardState, PacketLines, argv_digest
from cockpit.act.model_tools import ADDED_ACTIONS, parse_call
from cockpit.act.tool_payloads import Run
from cockpit.core.canonical_json import canonical_json
from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import facts, packets
from cockpit.store.context.packets import Packet, detail_of
from cockpit.store.sessions import messages, outbox
from cockpit.store.sessions.outbox import OutboxAction

_CHANGING_ACTIONS = ("write_file", "edit_file", "git_commit", "github", *ADDED_ACTIONS)


def read_guard_state(connection: sqlite3.Connection, context: WaveContext) -> GuardState:
    """Return the state that the calls of this wave are checked against."""
    session_id = context.session.session_id
    actions = outbox.select_for_session(connection, session_id)
    changes, failed_commands = _count_changes(connection, session_id, actions)
    packet = packets.load(connection, context.wave.wave_id).packet
    return GuardState(
        packet_files=_list_packet_files(connection, packet, actions),
        failed_commands=failed_commands,
        shown_failures=_list_shown_failures(connection, packet) if failed_commands else {},
        changes=changes,
        project_repo=context.engine.repo,
        pinned_rev=context.session.rev is not None,
    )


def _count_changes(
    connection: sqlite3.Connection, session_id: str, actions: list[OutboxAction]
) -> tuple[int, dict[str, int]]:
    """Count the changes of the project so far, and for each failed command those before its last run.

    A message of the user counts as a change: it may be the reason to run a command again.
    """
    if not any(action.action_type == "run" for action in actions):
        return 0, {}  # no command that a change could make worth another try
    timeline: list[tuple[str, int, OutboxAction | None]] = [
        (message.created_at, 0, None)
        for message in messages.select_for_session(connection, session_id)
        if message.role == "person"
    ]
    ended = {
        action_id: (str(at), bool(ran))
        for action_id, at, ran in connection.execute(
            "SELECT action_id, max(created_at), max(json_type(detail_json, '$.exit_code')) IS NOT NULL"
            " FROM action_receipts WHERE action_id IN"
            " (SELECT action_id FROM wave_runs CROSS JOIN outbox_actions USING(wave_id)"
            " WHERE wave_runs.session_id=?) GROUP BY action_id",
            (session_id,),
        )
    }
    timeline += [
        (ended[action.action_id][0], place, action)
        for place, action in enumerate(actions, start=1)
        if action.action_id in ended
    ]
    changes, failed_commands = 0, dict[str, int]()
    for _, _, action in sorted(timeline, key=lambda entry: (entry[0], entry[1])):
        if action is None or (
            action.phase == "confirmed" and action.action_type in _CHANGING_ACTIONS
        ):
            changes += 1
        elif action.action_type == "run" and action.phase == "failed_terminal":
            argv = action.payload.get("argv")
            # One that could not be started says nothing about the next try.
            if argv and ended[action.action_id][1]:
                failed_commands[argv_digest([str(argument) for argument in argv])] = changes
    return changes, failed_commands


def _list_shown_failures(connection: sqlite3.Connection, packet: Packet) -> dict[str, str]:
    """List by command where its failure is in the current packet, with its meaning."""
    shown = [
        fact_id for fact_id, (_, entry) in packet.in_force().items() if entry.level != "reference"
    ]
    places: dict[str, str] = {}
    for provenance in facts.load_provenances(connection, "exchange", shown).values():
        if provenance.get("call") != "run" or provenance.get("status") != "failed":
            continue
        call = parse_call("run", canonical_json(provenance["arguments"]))
        if isinstance(call.payload, Run):
            _, wave, place = str(provenance["call_id"]).split("-")
            places[argv_digest(call.payload.argv)] = f"{wave}.{place}"
    return places


def _list_packet_files(
    connection: sqlite3.Connection,
    packet: Packet,
    actions: list[OutboxAction],
) -> dict[str, tuple[PacketLines, ...]]:
    """List by path the lines in the current packet at full detail, and the files this session wrote."""
    by_path: dict[str, list[PacketLines]] = defaultdict(list)
    in_force = packet.in_force().items()
    full = {fact_id: band for fact_id, (band, entry) in in_force if detail_of(entry) == 0}
    provenances = facts.load_provenances(connection, "file", list(full))
    for fact_id, band in full.items():
        provenance = provenances.get(fact_id)
        if provenance is None:
            continue
        path = str(provenance["path"])
        if provenance.get("by_reference") or provenance.get("level", "full") != "full":
            # The full text of this fact is an outline or a list of names: its lines may be requested.
            by_path[path].append(PacketLines(0, 0, "", f"{band}, {fact_id}, in outline"))
            continue
        first, last = provenance["lines"]
        sha = str(provenance["sha256"])
        where, total = f"{band}, {fact_id}", int(provenance.get("total_lines", 0))
        by_path[path].append(PacketLines(int(first), int(last), sha, where, total))
    for action in actions:
        if action.phase == "confirmed" and action.action_type in ("write_file", "edit_file"):
            # The exchange has its content; without a line range it never makes a read redundant.
            by_path[str(action.payload["path"])].append(PacketLines(0, 0, "", "written by you"))
    return {path: tuple(standings) for path, standings in by_path.items()}
