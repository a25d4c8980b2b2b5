"""Act: guard, preview, approve and run the actions of the wave's plan, one after the other.

The first action that does not end confirmed stops the rest of the plan, which was decided in the belief
that it would. Context requests become proposals here; the next wave reads them after their decision. See
``docs/reference/loop.md``, phases, and ``docs/reference/actions.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.adapters.run_command import MACHINE
from cockpit.act.guards.action_guard import ActionGuard, GuardState, Refusal, first_refusal
from cockpit.act.guards.guard_registry import standard_guards
from cockpit.act.model_tools import Call
from cockpit.act.preview import ActionPreview
from cockpit.act.protected_tests import TestsGuard
from cockpit.act.tool_payloads import ProposeTool
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.errors import CockpitError, MachineFault
from cockpit.loop.decisions import profile_change_tool, task_type_tool, wip_tool
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.await_decision import (
    DecidedProposal,
    await_decision,
    find_discussed_predecessor,
)
from cockpit.loop.decisions.pass_without_asking import pass_without_asking
from cockpit.loop.decisions.propose_changing import CHANGING, find_refused_write, plan_changing
from cockpit.loop.decisions.revision_changes import list_changes
from cockpit.loop.growth.propose_tool import approve_adoption
from cockpit.loop.phases.ask_about_uncertain import settle_uncertain_action
from cockpit.loop.phases.capture_action_wip import capture_work_in_progress
from cockpit.loop.phases.propose_context_request import propose_context_request
from cockpit.loop.phases.read_guard_state import read_guard_state
from cockpit.loop.phases.reading_calls import asks_to_read
from cockpit.loop.planner import plan_tool
from cockpit.loop.planner.plan_target import PLAN_TOOL
from cockpit.loop.reentry.find_needs import (
    Need,
    find_need_of_discussion,
    find_need_of_error,
    find_need_of_receipt,
    find_need_of_refusal,
)
from cockpit.loop.reentry.keep_action import keep_action
from cockpit.loop.reentry.kept_actions import CONTINUES, Continued, read_continued
from cockpit.loop.session_state.ask_own_guards import ask_own_guards
from cockpit.loop.skills.created_skill import adopt_skill
from cockpit.loop.tools.offer_tools import parse_session_call
from cockpit.loop.tools.run_added import find_allowing_rule, open_dispatcher, preview_call
from cockpit.loop.trust.short_card import add_card
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.proposals import ActionRefused
from cockpit.store.sessions import outbox, plans, proposals, waves
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.waves import Wave


async def act(context: WaveContext) -> Wave:
    """Run or propose every call of the wave's plan, and take the wave from ``acting`` to ``learning``."""
    wave_id = context.wave.wave_id
    plan = context.store.read_now(lambda connection: plans.find(connection, wave_id))
    stop_reason = ""
    for call in plan.calls if plan else ():
        if call["error"] or call["name"] == "finish":
            continue
        if asks_to_read(call):
            await propose_context_request(context, call)
        elif call["name"] == wip_tool.TOOL:
            await wip_tool.record_work(context, call)
        elif call["name"] == profile_change_tool.TOOL:
            await profile_change_tool.run_profile_change_call(context, call)
        elif call["name"] == task_type_tool.TOOL:
            await task_type_tool.run_type_change_call(context, call)
        elif call["name"] == PLAN_TOOL:
            await plan_tool.run_plan_call(context, call)
        else:
            stop_reason = await _run_action(context, call, stop_reason)
    return await context.store.write(lambda tx: waves.advance(tx, wave_id, "learning"))


async def _run_action(
    context: WaveContext, call: Mapping[str, Any], stop_reason: str, note: str = ""
) -> str:
    """Run one action to its end; returns why the rest must not run ('' when it may).

    Its proposal shows ``note``.
    """
    action = context.store.read_now(lambda connection: _find_action(connection, context, call))
    if action.phase == "planned":
        if stop_reason:
            stopped = Need("stopped", stop_reason)
            is_kept = CONTINUES in call and await keep_action(
                context, call, action, stopped, stop_reason
            )

            def stop(tx: Tx) -> None:
                _expire_other_previews(tx, action, reason=stop_reason)
                if not is_kept:
                    outbox.drop(tx, action.action_id, stop_reason)

            await context.store.write(stop)
            return stop_reason
        refused = await _approve(context, call, action, note)
        if refused:
            return f"not run: {action.title} before it was {refused}"
    if action.phase == "uncertain":
        await settle_uncertain_action(context, action)
    await open_dispatcher(context.engine).run_wave(context.wave.wave_id)
    ended = context.store.read_now(lambda connection: outbox.load(connection, action.action_id))
    if ended.phase == "uncertain":
        await settle_uncertain_action(context, ended)
        ended = context.store.read_now(lambda connection: outbox.load(connection, action.action_id))
    if ended.phase == "failed_terminal" != action.phase and (fault := _find_fault(context, ended)):
        raise MachineFault(f"{action.title}: {fault}. Make room, then resume.")
    if (refused_write := find_refused_write(context, ended)) is not None:
        changing = await plan_changing(context, call, ended)
        again = {**call, "key": changing.key, "arguments": changing.payload}
        return await _run_action(context, again, stop_reason, refused_write)
    if ended.phase == "failed_terminal" and await _keep_failed(context, call, ended):
        return f"not run: {action.title} before it was kept"
    await capture_work_in_progress(context, ended)
    await adopt_skill(context, ended)
    return "" if ended.phase == "confirmed" else f"not run: {action.title} before it failed"


def _find_fault(context: WaveContext, action: OutboxAction) -> str:
    """Return the fault of the machine that the last attempt of an action met; empty for none.

    The session pauses for it once: resumed, it shows the failure to the agent.
    """
    receipts = context.store.read_now(
        lambda connection: outbox.select_receipts(connection, action.action_id)
    )
    return str(receipts[-1].detail.get(MACHINE, "")) if receipts else ""


async def _keep_failed(context: WaveContext, call: Mapping[str, Any], action: OutboxAction) -> bool:
    """Keep an action that failed without an effect because it lacks context; returns whether it is kept."""
    receipts = context.store.read_now(
        lambda connection: outbox.select_receipts(connection, action.action_id)
    )
    if not receipts:
        return False
    last = receipts[-1]
    confined = context.engine.ground.confined
    need = find_need_of_receipt(
        action.action_type, action.payload, last.summary, last.detail, confined
    )
    return need is not None and await keep_action(context, call, action, need, "")


async def _approve(
    context: WaveContext, call: Mapping[str, Any], action: OutboxAction, note: str
) -> str:
    """Guard, preview and decide a planned action; returns '' when it is queued, else its status."""
    parsed = parse_session_call(context, call["name"], canonical_json(call["arguments"]))
    refusal = await _find_refusal(context, parsed)
    if refusal is not None:
        lack = find_need_of_refusal(refusal, parsed.arguments)
        if lack and await keep_action(context, call, action, lack, refusal.message):
            return "kept"
        await context.store.write(_refuse(context, action, refusal.guard, refusal.message))
        return "refused"
    if isinstance(parsed.payload, ProposeTool):
        return await approve_adoption(context, parsed.payload, action)
    try:
        preview = await preview_call(context.engine, parsed)
    except CockpitError as error:
        lack = find_need_of_error(error, parsed.arguments)
        if lack and await keep_action(context, call, action, lack, str(error)):
            return "kept"
        await context.store.write(_refuse(context, action, error.code, str(error)))
        return "refused"
    if note:
        preview = replace(preview, notes=(note, *preview.notes))
    decided = await _propose_and_await(context, preview, call, action)
    if decided.status == "discussed" and await _keep_discussed(context, call, action, decided):
        return decided.status
    if decided.status != "approved":
        await context.store.write(lambda tx: outbox.drop(tx, action.action_id, decided.message))
        return decided.status
    return ""


async def _keep_discussed(
    context: WaveContext, call: Mapping[str, Any], action: OutboxAction, decided: DecidedProposal
) -> bool:
    need = find_need_of_discussion(decided.proposal.reason, context.engine.ground.confined)
    return await keep_action(context, call, action, need, decided.message)


async def _find_refusal(context: WaveContext, parsed: Call) -> Refusal | None:
    """Return the first refusal of cockpit's guards, then of the user's own."""
    state: GuardState = await context.store.read(
        lambda connection: read_guard_state(connection, context)
    )
    refusal = first_refusal(_guards_of_session(context), parsed, state)
    return refusal or await ask_own_guards(context, parsed, state)


def _guards_of_session(context: WaveContext) -> tuple[ActionGuard, ...]:
    """Return the standard guards, and those that the session's role adds."""
    confined = context.engine.ground.confined
    role = context.engine.role(context.session.role)
    if role is None or not role.protects_tests:
        return standard_guards(confined)
    return (TestsGuard(confined), *standard_guards(confined))


class _ActionProposal(Struct, frozen=True):
    """A planned action as its proposal shows it."""

    action: OutboxAction
    preview: ActionPreview
    body: Mapping[str, Any]

    @property
    def proposal_id(self) -> str:
        """The id follows from the preview: after a crash the same preview is the same proposal, and a file
        that has changed since makes a new one.
        """
        return f"p-{digest([self.action.key, self.body])[:10]}"

    def propose(
        self, tx: Tx, context: WaveContext, body: Mapping[str, Any], before: Proposal | None = None
    ) -> Proposal:
        """Store the proposal, shown as ``body``; it revises the one ``before``."""
        _expire_other_previews(tx, self.action, self.proposal_id)
        return proposals.create(
            tx,
            proposal_id=self.proposal_id,
            kind="action",
            session_id=context.session.session_id,
            wave_id=context.wave.wave_id,
            title=self.preview.title,
            body=body,
            risk=self.preview.risk,
            revises=before.proposal_id if before else None,
            task_id=context.session.task_id,
            deadline_s=context.proposal_deadline_s,
        )


def _describe(
    preview: ActionPreview, call: Mapping[str, Any], action: OutboxAction
) -> _ActionProposal:
    body = {**preview.proposal_body(), "key": action.key, "changes": []}
    if action.key.endswith(CHANGING):
        body["arguments"] = dict(call["arguments"])  # they are not those of the wave's plan
    if (line := read_continued(call)) is not None:
        body["notes"] = [*preview.notes, f"Proposed again, after the context was read: {line.why}."]
    return _ActionProposal(action, preview, body)


def _find_policy(context: WaveContext, preview: ActionPreview) -> str | None:
    """Return the name in which an action passes without the user; None where they are asked."""
    return approving_policy(
        context.session.policy,
        "action",
        risk=preview.risk,
        action_type=preview.type,
        reads=bool(preview.payload.get("reading")),
    ) or find_allowing_rule(context.engine, preview)


async def _propose_and_await(
    context: WaveContext, preview: ActionPreview, call: Mapping[str, Any], action: OutboxAction
) -> DecidedProposal:
    """Propose the action as it is previewed, await the decision, and queue it when it is approved."""
    line = read_continued(call)
    first = _describe(preview, call, action)
    proposal_id, body = first.proposal_id, first.body
    policy = _find_policy(context, preview)
    alike = [] if policy else await _preview_alike(context, call, first)

    def propose(tx: Tx) -> None:
        before = _find_predecessor(tx, context, line, proposal_id)
        shown = {**body, "changes": list_changes(before, body)} if before else body
        proposal = first.propose(
            tx,
            context,
            shown if before else add_card(tx, context, proposal_id, preview, shown),
            before,
        )
        if not pass_without_asking(tx, context.engine.settings, proposal, policy):
            for each in alike:
                each.propose(tx, context, each.body)

    await context.store.write(propose)
    decided = await await_decision(context, proposal_id)
    if decided.status == "approved":
        payload = decided.proposal.body["payload"]
        await context.store.write(
            lambda tx: outbox.enqueue(
                tx, action.action_id, proposal_id=decided.proposal.proposal_id, payload=payload
            )
        )
    return decided


async def _preview_alike(
    context: WaveContext, call: Mapping[str, Any], first: _ActionProposal
) -> list[_ActionProposal]:
    """Preview the calls right behind one of low risk that are like it: the user may decide them together.

    Another tool, another risk, a refusal, or what an earlier one changes ends the row. Each is guarded and
    previewed again in its turn; one that differs then is asked about again. Without a user at the screen
    each waits alone, until a deadline of its own.
    """
    if not context.session.interactive or first.preview.risk != "low":
        return []
    plan, actions, was_proposed = await context.store.read(
        lambda connection: (
            plans.find(connection, context.wave.wave_id),
            outbox.select_for_wave(connection, context.wave.wave_id),
            proposals.find(connection, first.proposal_id) is not None,
        )
    )
    by_key = {action.key: action for action in actions}
    calls = list(plan.calls) if plan and not was_proposed else []
    keys = [each["key"] for each in calls]
    alike: list[_ActionProposal] = []
    touched = _touched_by(first.preview)
    for each in calls[keys.index(call["key"]) + 1 :] if call["key"] in keys else ():
        if each["name"] != call["name"] or each["error"] or each["key"] not in by_key:
            break
        parsed = parse_session_call(context, each["name"], canonical_json(each["arguments"]))
        if await _find_refusal(context, parsed) is not None:
            break
        try:
            preview = await preview_call(context.engine, parsed)
        except CockpitError:
            break  # its turn says so
        if (
            preview.risk != "low"
            or touched & _touched_by(preview)
            or _find_policy(context, preview)
        ):
            break
        touched |= _touched_by(preview)
        alike.append(_describe(preview, each, by_key[each["key"]]))
    return alike


def _touched_by(preview: ActionPreview) -> frozenset[str]:
    """Return the file that an action changes, and what else its preview notes: a folder that it makes."""
    path = preview.payload.get("path")
    return frozenset((path, *preview.notes)) if path else frozenset()


def _find_predecessor(
    tx: Tx, context: WaveContext, line: Continued | None, proposal_id: str
) -> Proposal | None:
    """Return the proposal that the new one revises: that of the kept action, or one just discussed."""
    if line is not None and line.proposal_id:
        return proposals.find(tx.connection, line.proposal_id)
    session_id = context.session.session_id
    return find_discussed_predecessor(tx.connection, session_id, "action", proposal_id)


def _expire_other_previews(
    tx: Tx, action: OutboxAction, proposal_id: str = "", *, reason: str = "shown anew"
) -> None:
    """Expire what was proposed before for the same action with another preview."""
    for earlier in proposals.select_for_action(tx.connection, action.wave_id, action.key):
        if earlier.status == "pending" and earlier.proposal_id != proposal_id:
            proposals.decide(tx, earlier.proposal_id, "expired", by="engine", reason=reason)


def _refuse(
    context: WaveContext, action: OutboxAction, guard: str, message: str
) -> Callable[[Tx], None]:
    def refuse(tx: Tx) -> None:
        outbox.drop(tx, action.action_id, message)
        context.journal(
            tx,
            ActionRefused(
                tool=action.action_type, guard=guard, message=message, payload=action.payload
            ),
            result="refused",
            error_code=guard,
        )

    return refuse


def _find_action(connection: Any, context: WaveContext, call: Mapping[str, Any]) -> OutboxAction:
    actions = outbox.select_for_wave(connection, context.wave.wave_id)
    return next(action for action in actions if action.key == call["key"])
