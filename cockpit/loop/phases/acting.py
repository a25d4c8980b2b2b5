"""Act: guards, approval, outbox; one action after the other, each shown as it stands then.

The first action that does not end confirmed stops the rest of the plan: what follows was decided in
the belief that it would. Context requests become proposals here; they are read in the next wave, after
their decision. Source: RFC-003 §6.4; design of Act.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cockpit.act.dispatch_actions import Dispatcher
from cockpit.act.guards import ActionGuard, GuardState, check, standard_guards
from cockpit.act.preview import Shown, shown
from cockpit.act.protected_tests import TestsGuard
from cockpit.act.tools import Call, parse_call
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.errors import CockpitError
from cockpit.loop.decisions import profile_requests
from cockpit.loop.decisions.approval_policy import automatic
from cockpit.loop.decisions.await_decision import Verdict, await_verdict, changes_since, revised
from cockpit.loop.phases import propose_context, uncertain_actions
from cockpit.loop.phases.guard_state import guard_state
from cockpit.loop.phases.wip_capture import capture
from cockpit.loop.wave_context import Here
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.proposals import ActionRefused
from cockpit.store.journal.details.waves import WaveActed
from cockpit.store.sessions import outbox, plans, proposals, waves
from cockpit.store.sessions.outbox import OutboxAction


async def act(here: Here) -> Callable[[Tx], object]:
    """Settle or propose every call of the wave's plan.

    Returns what is left to write, which ends with the step from ``acting`` to ``learning``: nothing
    runs after it, so it is committed with what Learn makes of it.
    """
    plan = here.store.read_now(lambda connection: plans.find(connection, here.wave.wave_id))
    calls = plan.calls if plan else ()
    ran = 0
    stopped = ""
    asked: list[Callable[[Tx], object]] = []
    for call in calls:
        if call["error"] or call["name"] == "finish":
            continue
        if call["name"] == "request_context":
            asked += await propose_context.propose(here, call)
            continue
        await _written(here, asked)  # what was asked before is seen before
        if call["name"] == profile_requests.TOOL:
            await profile_requests.attend(here, call)
        else:
            stopped = await _settle(here, call, stopped)
            ran += 1

    def onwards(tx: Tx) -> None:
        waves.advance(tx, here.wave.wave_id, "learning", detail=WaveActed(actions=ran))

    return _together([*asked, onwards])


async def _written(here: Here, steps: list[Callable[[Tx], object]]) -> None:
    """Do these in one transaction, and forget them."""
    if steps:
        await here.store.write(_together(steps))
    steps.clear()


def _together(steps: Sequence[Callable[[Tx], object]]) -> Callable[[Tx], object]:
    def step(tx: Tx) -> None:
        for one in steps:
            one(tx)

    return step


async def _settle(here: Here, call: Mapping[str, Any], stopped: str) -> str:
    """See one action through; returns why the rest must not run ('' when it may)."""
    action = here.store.read_now(lambda connection: _by_key(connection, here, call["key"]))
    if action.phase == "planned":
        if stopped:
            await here.store.write(lambda tx: outbox.drop(tx, action.action_id, stopped))
            return stopped
        refused = await _approve(here, call, action)
        if refused:
            return f"not run: {action.title} before it was {refused}"
    if action.phase == "uncertain":
        await uncertain_actions.ask(here, action)
    await Dispatcher(here.store, here.engine.ground).run_wave(here.wave.wave_id)
    ended = here.store.read_now(lambda connection: outbox.load(connection, action.action_id))
    if ended.phase == "uncertain":
        await uncertain_actions.ask(here, ended)
        ended = here.store.read_now(lambda connection: outbox.load(connection, action.action_id))
    await capture(here, ended)
    return "" if ended.phase == "confirmed" else f"not run: {action.title} before it failed"


async def _approve(here: Here, call: Mapping[str, Any], action: OutboxAction) -> str:
    """Guard, show and decide a planned action. '' when it is queued, else what became of it."""
    read = parse_call(call["name"], canonical_json(call["arguments"]))
    state: GuardState = await here.store.read(lambda connection: guard_state(connection, here))
    refusal = check(_guards(here), read, state)
    if refusal is not None:
        await here.store.write(_refuse(here, action, refusal.guard, refusal.message))
        return "refused"
    try:
        seen = await shown(read, here.engine.ground)
    except CockpitError as error:
        problem = error
        await here.store.write(_refuse(here, action, problem.code, str(problem)))
        return "refused"
    verdict = await _decided(here, read, seen, action)
    if verdict.status != "approved":
        await here.store.write(lambda tx: outbox.drop(tx, action.action_id, verdict.told))
        return verdict.status
    return ""


def _guards(here: Here) -> tuple[ActionGuard, ...]:
    """What this session's calls are checked by: its role may add to what holds for all."""
    confined = here.engine.ground.confined
    role = here.engine.role(here.session.role)
    if role is None or not role.protects_tests:
        return standard_guards(confined)
    return (TestsGuard(confined), *standard_guards(confined))


async def _decided(here: Here, read: Call, seen: Shown, action: OutboxAction) -> Verdict:
    body = {**seen.proposal_body(), "key": action.key, "changes": []}
    # The id follows from what is shown: after a crash the same proposal is met again, and a file
    # that changed meanwhile makes a new one.
    proposal_id = f"p-{digest([action.key, body])[:10]}"
    by = automatic(here.session.policy, "action")

    def step(tx: Tx) -> None:
        before = revised(tx.connection, here.session.session_id, "action", proposal_id)
        _supersede(tx, action, proposal_id)
        made = proposals.create(
            tx,
            proposal_id=proposal_id,
            kind="action",
            session_id=here.session.session_id,
            wave_id=here.wave.wave_id,
            title=seen.title,
            body={**body, "changes": changes_since(before, body)} if before else body,
            risk=seen.risk,
            revises=before.proposal_id if before else None,
            task_id=here.session.task_id,
            deadline_s=None
            if here.session.interactive
            else float(here.session.limits.get("deadline_s", 3600.0)),
        )
        if by and made.status == "pending":
            proposals.decide(tx, proposal_id, "approved", by=by, shown_digest=made.shown_digest)

    await here.store.write(step)
    verdict = await await_verdict(here, proposal_id)
    if verdict.status == "approved":
        payload = verdict.proposal.body["payload"]
        await here.store.write(
            lambda tx: outbox.enqueue(
                tx, action.action_id, proposal_id=verdict.proposal.proposal_id, payload=payload
            )
        )
    return verdict


def _supersede(tx: Tx, action: OutboxAction, proposal_id: str) -> None:
    """Expire what an earlier life of this wave proposed for the same action, shown otherwise."""
    for old in proposals.select_for_action(tx.connection, action.wave_id, action.key):
        if old.status == "pending" and old.proposal_id != proposal_id:
            proposals.decide(tx, old.proposal_id, "expired", by="engine", reason="shown anew")


def _refuse(here: Here, action: OutboxAction, guard: str, message: str) -> Any:
    def step(tx: Tx) -> None:
        outbox.drop(tx, action.action_id, message)
        here.journal(
            tx,
            ActionRefused(tool=action.action_type, guard=guard, message=message),
            result="refused",
            error_code=guard,
        )

    return step


def _by_key(connection: Any, here: Here, key: str) -> OutboxAction:
    actions: Sequence[OutboxAction] = outbox.select_for_wave(connection, here.wave.wave_id)
    return next(action for action in actions if action.key == key)
