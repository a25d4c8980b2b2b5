"""The agent's tool ``propose_tool``: a tool that the task lacks grows while its wave waits for it.

The call is one action. Its first proposal asks whether the tool may grow: nothing is generated before. Then
it grows in the sandbox, round by round, in the conversation. Its second proposal shows what grew; approved,
the outbox adopts it, once. Every other end is the call's result, and the task goes on with it. See
``docs/reference/evolve.md``, in a task.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.act.model_tools import GROW, TOOL_RECORDS
from cockpit.act.own_tools.adopt_tool import ADOPT, path_of_code, path_of_test, place_at
from cockpit.act.own_tools.find_tools import NAME
from cockpit.act.proposed_action import ActionPreview
from cockpit.act.text_edits import digest_now
from cockpit.act.tool_payloads import ProposeTool
from cockpit.core.canonical_json import digest
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import fence_text
from cockpit.decide.provider_names import provider_name
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.await_decision import (
    DecidedProposal,
    await_decision,
    find_discussed_predecessor,
)
from cockpit.loop.decisions.pass_without_asking import pass_without_asking
from cockpit.loop.decisions.revision_changes import list_changes
from cockpit.loop.growth.growth_order import GrowthEnd, GrowthOrder
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.evolution import EvolutionEnded
from cockpit.store.journal.details.proposals import ActionRefused
from cockpit.store.sessions import messages, outbox, proposals
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.tools import approved_tools

GROWTH = "grow_tool"
"""The type of the proposal that lets a tool grow."""
_LONGEST_BEFORE = 20_000


def proposal_id_of(key: str, step: str) -> str:
    """Return the id of a call's proposal, so that a call proposes each step once."""
    return f"p-{digest([key, step])[:10]}"


async def approve_adoption(context: WaveContext, payload: ProposeTool, action: OutboxAction) -> str:
    """Let the tool of a planned call grow and be adopted; returns '' when that is queued, else its status.

    The guards have let the call pass.

    Raises :class:`~cockpit.loop.decisions.await_decision.DeadlinePassed` when no decision comes in time.
    """
    adoption_id = proposal_id_of(action.key, "adopt")
    adoption = context.store.read_now(lambda connection: proposals.find(connection, adoption_id))
    if adoption is None:
        problem = find_problem(context, payload)
        if problem:
            return await _refuse(context, action, problem)
        decided = await _propose_growth(context, payload, action)
        if decided.status != "approved":
            return await _drop(context, action, decided)
        order = _order(context, payload, action.key)
        end: GrowthEnd = await _grow(context, order)
        if end.preview is None:
            await context.store.write(lambda tx: _end(tx, context, action, payload.name, end))
            return "not grown"
        preview = end.preview
        await context.store.write(
            lambda tx: _propose_adoption(tx, context, action, adoption_id, preview, end)
        )
    decided = await await_decision(context, adoption_id)
    if decided.status != "approved":
        return await _drop(context, action, decided)
    approved = decided.proposal
    await context.store.write(
        lambda tx: outbox.enqueue(
            tx,
            action.action_id,
            proposal_id=approved.proposal_id,
            payload=approved.body["payload"],
        )
    )
    return ""


async def _grow(context: WaveContext, order: GrowthOrder) -> GrowthEnd:
    """Let it grow; whatever is in the way ends the growth, and not the task."""
    grow = context.engine.settings.grow_tool
    if grow is None:
        return GrowthEnd(None, "failed", "Nothing grew: this cockpit grows no tools.", 0)
    try:
        end: GrowthEnd = await grow(context, order)
    except CockpitError as error:
        return GrowthEnd(None, "failed", f"Nothing grew: {error}", 0)
    return end


def find_problem(context: WaveContext, payload: ProposeTool) -> str:
    """Return why a tool of that name cannot grow, in words for the model; empty when it can."""
    name, engine = payload.name, context.engine
    if not NAME.fullmatch(name):
        return (
            f"{name[:60]!r} is not a name of a tool: 2 to 48 lower-case letters, digits and _, such as"
            " parse_pcab."
        )
    if name in TOOL_RECORDS:
        return f"{name} is a tool of cockpit's own. Give yours another name."
    for tool in context.store.read_now(approved_tools.select_all):
        # As providers see them: `archive__search` would stand for the `archive.search` of a server.
        if name == provider_name(tool.name) or name in tool.definition.get("aliases", ()):
            return f"There is a tool {name} already: {tool.tool_id}. Call it, or give yours another name."
    if not engine.ground.sandbox.works:
        return (
            f"No tool can grow here: {engine.ground.sandbox.missing}, and tools run nowhere else."
        )
    at_home = place_at(engine.ground, engine.place.home)
    taken = [
        path
        for path in (path_of_code(name), path_of_test(name))
        if digest_now(at_home.confined, path) is not None
    ]
    if taken:
        return (
            f"{', '.join(taken)} exists, and is not approved. The user approves it with `cockpit trust"
            " NAME`; or give yours another name."
        )
    return ""


async def _propose_growth(
    context: WaveContext, payload: ProposeTool, action: OutboxAction
) -> DecidedProposal:
    session, proposal_id = context.session, proposal_id_of(action.key, "grow")
    body: dict[str, Any] = {
        "type": GROWTH,
        "summary": payload.purpose,
        "fields": [
            ["tool", payload.name],
            ["why", payload.reason],
            ["model", session.model],
            ["sandbox", context.engine.ground.sandbox.words()],
        ],
        "body": f"Example of its input:\n\n{fence_text(payload.example_input)}\n\n"
        f"What it has to return:\n\n{fence_text(payload.expected_output)}",
        "diffs": [],
        "notes": [
            "Nothing is generated before you approve. Then the model writes a test, which has to fail, and"
            " code until it passes; all of it runs in the sandbox only, and counts for this session.",
            "You see code, test and output before the tool is adopted.",
        ],
        "payload": {"name": payload.name},
        "key": action.key,
    }
    policy = approving_policy(session.policy, "action", risk="medium", action_type=GROWTH)

    def propose(tx: Tx) -> None:
        before = find_discussed_predecessor(
            tx.connection, session.session_id, "action", proposal_id
        )
        proposal = proposals.create(
            tx,
            proposal_id=proposal_id,
            kind="action",
            session_id=session.session_id,
            wave_id=context.wave.wave_id,
            title=f"grow the tool {payload.name}",
            body={**body, "changes": list_changes(before, body) if before else []},
            risk="medium",
            revises=before.proposal_id if before else None,
            task_id=session.task_id,
            deadline_s=context.proposal_deadline_s,
        )
        pass_without_asking(tx, context.engine.settings, proposal, policy)

    await context.store.write(propose)
    return await await_decision(context, proposal_id)


def _order(context: WaveContext, payload: ProposeTool, key: str) -> GrowthOrder:
    kind = context.engine.task_types.get(context.session.task_type)
    want = (
        f"{payload.purpose}\n\nIts name: {payload.name}\n\nThe task needs it because: {payload.reason}\n\n"
        f"Example of its input:\n{payload.example_input}\n\n"
        f"What it has to return for that:\n{payload.expected_output}"
    )
    session_id = context.session.session_id
    earlier = context.store.read_now(
        lambda connection: describe_earlier(connection, session_id, payload.name)
    )
    return GrowthOrder(
        growth_id=key,
        name=payload.name,
        want=f"{want}\n\n{earlier}".strip(),
        only_reads=kind is not None and kind.reads_only,
    )


def describe_earlier(connection: sqlite3.Connection, session_id: str, name: str) -> str:
    """Return what grew under this name before in the session, and what the user said of it; '' if nothing."""
    earlier = [
        proposal
        for proposal in proposals.select_for_session(connection, session_id)
        if proposal.body.get("type") == ADOPT
        and proposal.body["payload"]["name"] == name
        and proposal.status in ("discussed", "rejected", "expired")
    ]
    if not earlier:
        return ""
    last = earlier[-1]
    spoken = [
        message.text
        for message in messages.select_for_session(connection, session_id, role="person")
        if message.created_at >= (last.decided_at or "")
    ]
    words = "\n".join(dict.fromkeys(filter(None, (last.reason, *spoken)))) or "nothing"
    payload = last.body["payload"]
    text = (
        f"It grew before in this session, and was {last.status}. What the user said:\n{words}\n\n"
        f"Its test was:\n{payload['test']}\n\nIts code was:\n{payload['code']}"
    )
    return text[:_LONGEST_BEFORE]


def _propose_adoption(
    tx: Tx,
    context: WaveContext,
    action: OutboxAction,
    proposal_id: str,
    preview: ActionPreview,
    end: GrowthEnd,
) -> Proposal:
    session = context.session
    before = find_discussed_predecessor(tx.connection, session.session_id, "action", proposal_id)
    body = {**preview.proposal_body(), "key": action.key}
    context.journal(
        tx,
        EvolutionEnded(
            name=str(preview.payload["name"]),
            outcome="proposed",
            reason="Its tests are green; it waits for the user.",
            rounds=end.rounds,
            growth=action.key,
        ),
    )
    return proposals.create(
        tx,
        proposal_id=proposal_id,
        kind="action",
        session_id=session.session_id,
        wave_id=context.wave.wave_id,
        title=preview.title,
        body={**body, "changes": list_changes(before, body) if before else []},
        risk=preview.risk,
        revises=before.proposal_id if before else None,
        task_id=session.task_id,
        deadline_s=context.proposal_deadline_s,
    )


def _end(tx: Tx, context: WaveContext, action: OutboxAction, name: str, end: GrowthEnd) -> None:
    outbox.drop(tx, action.action_id, end.reason)
    ended = EvolutionEnded(
        name=name, outcome=end.outcome, reason=end.reason, rounds=end.rounds, growth=action.key
    )
    context.journal(tx, ended, result="error")


async def _drop(context: WaveContext, action: OutboxAction, decided: DecidedProposal) -> str:
    await context.store.write(lambda tx: outbox.drop(tx, action.action_id, decided.message))
    return decided.status


async def _refuse(context: WaveContext, action: OutboxAction, message: str) -> str:
    def refuse(tx: Tx) -> None:
        outbox.drop(tx, action.action_id, message)
        refused = ActionRefused(tool=GROW, guard=GROW, message=message, payload=action.payload)
        context.journal(tx, refused, result="refused", error_code=GROW)

    await context.store.write(refuse)
    return "refused"
