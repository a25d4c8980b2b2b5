"""The agent's tool ``change_task_type``: a session that only reads asks to become one that acts.

It passes under the policy that would pass the session's first action, as each action is decided by itself
anyway; else the user decides. From the next wave on the session has the tools and the Definition of Done of
its new type, and its packet says so. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from cockpit.core.canonical_json import digest
from cockpit.core.errors import Altered
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.await_decision import DecidedProposal, await_decision
from cockpit.loop.decisions.pass_without_asking import pass_without_asking
from cockpit.loop.intake.project_lines import bullet_lines
from cockpit.loop.intake.task_types import TaskType
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

TOOL = "change_task_type"


def proposal_id_of_call(key: str) -> str:
    """Return the proposal id that follows from a call's idempotency key, so that a call proposes once."""
    return f"p-{digest([key, 'task_type'])[:10]}"


def find_refusal(name: str, current: str, types: Mapping[str, TaskType]) -> str:
    """Return why a session of type ``current`` cannot become one of type ``name``; empty when it can."""
    kind = types.get(name)
    fitting = [each for each in types.values() if _fits(each) and each.name != current]
    if kind is not None and kind in fitting:
        return ""
    names = ", ".join(each.name for each in fitting)
    return (
        f"{TOOL}: task_type {name[:40]!r} is not one that this session can become; it can: {names}."
    )


def _fits(kind: TaskType) -> bool:
    """Whether a session can take on this type while it runs: it needs no target of its own."""
    return not (kind.reads_only or kind.needs_target or kind.needs_issue or kind.needs_branch)


async def run_type_change_call(context: WaveContext, call: Mapping[str, Any]) -> None:
    """Propose the change of one planned ``call``, wait for the user, and make it when they agree.

    Raises :class:`~cockpit.loop.decisions.await_decision.DeadlinePassed` when no decision comes in time.
    """
    session, types = context.session, context.engine.task_types
    name = str(call["arguments"]["task_type"])
    if find_refusal(name, session.task_type, types):
        return
    proposal_id = proposal_id_of_call(str(call["key"]))

    def propose(tx: Tx) -> None:
        proposal = _propose(tx, context, call, types[name], proposal_id)
        by = approving_policy(session.policy, "action", risk=proposal.risk)
        pass_without_asking(tx, context.engine.settings, proposal, by)

    await context.store.write(propose)
    decided = await await_decision(context, proposal_id)
    if decided.status == "approved":
        await context.store.write(lambda tx: _change(tx, session.session_id, name, decided))


def read_call_result(
    connection: sqlite3.Connection, session_id: str, call: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the result that the agent reads of the planned ``call``, and the exchange's status."""
    name = str(call["arguments"]["task_type"])
    row = connection.execute(
        "SELECT 1 FROM proposals WHERE proposal_id=?", (proposal_id_of_call(str(call["key"])),)
    ).fetchone()
    if row is None:
        current = sessions.load(connection, session_id).task_type
        return f"Refused: a session of type {current} cannot become {name!r} here.", "refused"
    decided = DecidedProposal(proposals.load(connection, proposal_id_of_call(str(call["key"]))))
    if decided.status == "approved":
        return f"{decided.message} The task type is {name} from now on.", "approved"
    return f"{decided.message} The task type did not change.", decided.status


def describe_change(kind: TaskType, words: str) -> str:
    """Return the message with which the packet says what holds since the type changed."""
    done = kind.definition_of_done()
    tools = kind.show_rows(bullet_lines(line for line in kind.tools if "{" not in line))
    standing = kind.standing_words()
    return (
        f"It was agreed: this session's task type is {kind.name} from now on. What the first message says"
        f" about tools, the Definition of Done and how it goes no longer holds; this does.\n\n"
        f"### What Was Asked\n\n{words}\n\n### Tools That Help\n\n{tools}\n\n"
        f"### Definition of Done\n\n{done}\n\n### How This Goes\n\n"
        f"{kind.show_text(kind.orient)}\n{kind.show_text(kind.decide)}"
        + (f"\n\n{standing}" if standing else "")
    )


def _propose(
    tx: Tx, context: WaveContext, call: Mapping[str, Any], kind: TaskType, proposal_id: str
) -> Proposal:
    session = context.session
    reason = str(call["arguments"]["reason"])
    done = "\n".join(f"{number}. {point}" for number, point in enumerate(kind.dod, 1))
    return proposals.create(
        tx,
        proposal_id=proposal_id,
        kind="action",
        session_id=session.session_id,
        wave_id=context.wave.wave_id,
        title=f"become {kind.name} (from {session.task_type})",
        body={
            "type": TOOL,
            "summary": reason,
            "fields": [["from", session.task_type], ["to", kind.name], ["reason", reason]],
            "body": f"Definition of Done from then on:\n\n{done}",
            "diffs": [],
            "notes": [
                "The session gets action tools. Each action is still guarded and decided by itself."
            ],
            "payload": {"task_type": kind.name},
        },
        risk="medium",
        task_id=session.task_id,
        deadline_s=context.proposal_deadline_s,
    )


def _change(tx: Tx, session_id: str, name: str, decided: DecidedProposal) -> None:
    proposal = proposals.load_approved(tx.connection, decided.proposal.proposal_id)
    if proposal.body["payload"] != {"task_type": name}:
        raise Altered(f"Proposal {proposal.proposal_id} was approved for another task type.")
    if sessions.load(tx.connection, session_id).task_type != name:
        actor = decided.proposal.decided_by or "person"
        sessions.change(tx, session_id, actor=actor, task_type=name)
