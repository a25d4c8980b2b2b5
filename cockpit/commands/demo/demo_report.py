"""The report of the demo: its results, checked in the store and in git."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from cockpit.access.run_program import run_git, run_program
from cockpit.commands.demo.sample_project import Sample
from cockpit.core.project.safe_git import git_environment
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.context import packets
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import outbox, proposals, sessions, waves
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.proposals import Proposal, shown_reason

SHOWN_DIGEST = 16
"""Characters of a digest that are shown; `cockpit packet show` prints it in full."""


def session_report(connection: sqlite3.Connection, session_id: str) -> str:
    """Return a session's waves with phases and packets, its proposals with decisions, its receipts."""
    session = sessions.load(connection, session_id)
    status = session.result.get("status", session.status)
    lines = [f"{session.title}", f"  session {session_id} · {session.task_type} · {status}", ""]
    for wave in waves.select_for_session(connection, session_id):
        stored = packets.find(connection, wave.wave_id)
        lines.append(f"  wave {wave.ordinal}  {wave.phase}" + (_packet(stored) if stored else ""))
    lines.append("")
    for proposal in proposals.select_for_session(connection, session_id):
        lines += _proposal(proposal)
    lines.append("")
    for action in outbox.select_for_session(connection, session_id):
        lines += _receipts(connection, action)
    return "\n".join(lines).rstrip()


def _packet(stored: packets.StoredPacket) -> str:
    packet = stored.packet
    count = len(list(packet.rendered()))
    return (
        f"  packet {stored.digest[:SHOWN_DIGEST]}  {pluralize(count, 'fact')}, "
        f"{packet.sent:,} of {packet.token_budget:,} tokens"
    )


def _proposal(proposal: Proposal) -> list[str]:
    sign = state_sign("proposal", proposal.status).sign
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    revises = " (revised)" if proposal.revises else ""
    reason = shown_reason(proposal)
    lines = [
        f"  {sign} {proposal.proposal_id}  {proposal.kind}{revises}: {proposal.title}",
        f"      {proposal.status}{by}" + (f": “{reason}”" if reason else ""),
    ]
    if proposal.kind == "context":
        lines += [f"      · {item['item']}" for item in proposal.body["items"]]
    lines += [f"      {change}" for change in proposal.body.get("changes", ())]
    return lines


def _receipts(connection: sqlite3.Connection, action: OutboxAction) -> list[str]:
    receipts = outbox.select_receipts(connection, action.action_id)
    return [
        f"  receipt {receipt.receipt_id}  {receipt.status}: {receipt.summary}"
        for receipt in receipts
    ] or [f"  {action.action_id}  {action.phase}: {action.title} {action.last_error}".rstrip()]


async def project_report(
    store: Store, sample: Sample, ended: Sequence[str]
) -> tuple[str, list[str]]:
    """Check the project and the store; return a report and a list of problems.

    It checks the commit, the tests, the packets and the journal. ``ended`` are the sessions that should be
    done. The list is empty where all checks pass.
    """
    from cockpit.orient.verify_packet import verify_packet

    broken, wave_ids, chain = await store.read(lambda connection: _stored(connection, ended))
    log = await run_git("log", "-1", "--stat", "--format=commit %H%n%an, %s", cwd=sample.root)
    head = await run_git("rev-parse", "HEAD", cwd=sample.root)
    if head.text.strip() == sample.main:
        broken.append("no commit was made")
    tests = await run_program(
        ("python3", "-m", "unittest"), cwd=sample.root, timeout_s=60, env=git_environment()
    )
    test_output = " ".join(line for line in tests.error_text.splitlines()[-3:] if line)
    if not tests.ok:
        broken.append("the sample's tests do not pass")
    again = [verify_packet(store, wave_id) for wave_id in wave_ids]
    if not all(outcome.ok for outcome in again):
        broken.append("a packet does not compile to the same bytes again")
    if not chain.ok:
        broken.append("the journal's chain is broken")
    lines = [
        *(f"  {line}" for line in log.text.strip().splitlines()),
        "",
        f"  its tests, run again: {test_output}",
        f"  packets compiled again: {sum(outcome.ok for outcome in again)} of {len(again)} the same, byte "
        "for byte",
        f"  journal: {pluralize(chain.rows, 'row')}, "
        f"{'each follows from the one before' if chain.ok else 'broken'}",
    ]
    return "\n".join(lines), broken


def _stored(
    connection: sqlite3.Connection, ended: Sequence[str]
) -> tuple[list[str], list[str], verify_chain.Verdict]:
    """Return problems of the sessions, the waves with a packet, and the verdict on the journal."""
    loaded = [sessions.load(connection, session_id) for session_id in ended]
    broken = [
        f"{session.title!r} ({session.session_id}) ended {session.result.get('status', session.status)}"
        for session in loaded
        if session.result.get("status") != "done"
    ]
    wave_ids = [
        stored.wave_id
        for session_id in ended
        for stored in packets.select_for_session(connection, session_id)
    ]
    return broken, wave_ids, verify_chain.verify(connection)
