"""Plans as proposals: proposed as a whole, edited as Markdown, and added to the backlog exactly once.

A plan is added in the transaction of its approval, so a crash leaves it either undecided or in the
backlog. Proposing the same text twice gives one proposal. The user decides over all that it would add,
written as Markdown. See ``docs/reference/plans.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import WORK_WRITE
from cockpit.backlog import service, validation
from cockpit.backlog.planning.model_plan import refuse_doubles
from cockpit.backlog.planning.parse_plan import read_plan
from cockpit.backlog.planning.plan import PLAN_ACTION, Plan, PlanInvalid, PlannedTask, read_body
from cockpit.backlog.planning.plan_source import plan_source
from cockpit.backlog.task_type_names import read_names_of_store
from cockpit.core.canonical_json import digest
from cockpit.core.errors import NotFound, Stale
from cockpit.core.secrets import mask
from cockpit.loop.decisions.approval_effects import RevisedProposal
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import dependencies, tasks, work_queue
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.backlog import BacklogPlanned
from cockpit.store.journal.details.detail import decode_detail
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages, proposals, sessions
from cockpit.store.sessions.proposals import Proposal


class PlanResult(Struct, frozen=True):
    """What a plan added to the backlog: ids in the order of the plan."""

    epics: tuple[str, ...]
    stories: tuple[str, ...]
    tasks: tuple[str, ...]
    dependencies: int

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = msgspec.to_builtins(self)
        return body


def propose(
    tx: Tx,
    text: str,
    caller: Caller,
    *,
    settings: RuntimeSettings | None = None,
    again: bool = False,
) -> Proposal:
    """Propose the plan that ``text`` is; the policy of ``settings`` may approve the user's at once.

    The same text is the same proposal while it waits. Raises ``PlanInvalid``, ``NotAllowed``, and
    :class:`~cockpit.core.errors.Stale` for one that is in the backlog already, unless ``again``.
    """
    caller.require(WORK_WRITE, "propose a plan")
    title, body = _proposal_body(tx.connection, mask(text))
    identity, existing = _identity(tx, body["payload"], again=again)
    if existing is not None:
        proposal = existing
    else:
        proposal = proposals.create(
            tx,
            proposal_id=identity,
            kind="action",
            session_id="",
            wave_id="",
            title=title,
            body=body,
            risk="low",
            actor=journal_actor(caller),
        )
    by = None
    if settings is not None and caller.kind == "person":
        by = approving_policy(settings.policy, "action", risk=proposal.risk)
    if settings is None or by is None:
        return proposal
    decide_proposal(tx, settings, proposal.proposal_id, "approved", by)
    return proposals.load(tx.connection, proposal.proposal_id)


def plan_result(connection: sqlite3.Connection, proposal_id: str) -> PlanResult | None:
    """Return what the proposal's plan added; None while it is not in the backlog."""
    row = connection.execute(
        "SELECT detail_json FROM journal WHERE action=? AND"
        " json_extract(detail_json, '$.proposal_id')=?",
        (Action.BACKLOG_PLANNED, proposal_id),
    ).fetchone()
    if row is None:
        return None
    planned = decode_detail(BacklogPlanned, row[0])
    return PlanResult(planned.epics, planned.stories, planned.tasks, planned.dependencies)


def carry_out(tx: Tx, proposal: Proposal, *, by: str) -> None:
    """Take an approved plan into the backlog as it was shown; journals ``backlog.planned``.

    Raises ``Stale`` where the plan is not read as it was shown, and ``NotFound`` for a task of the
    backlog that it waits for and that is not there.
    """
    plan = _plan_of(tx.connection, proposal)
    if plan_source(plan) != proposal.body["body"]:
        raise Stale(
            f"This cockpit reads the plan of {proposal.proposal_id} otherwise than it was shown."
            " Reject it and propose it again."
        )
    result = _insert(tx, plan, proposal.proposal_id, by)
    planned = BacklogPlanned(
        proposal_id=proposal.proposal_id,
        epics=result.epics,
        stories=result.stories,
        tasks=result.tasks,
        dependencies=result.dependencies,
        **_provenance(tx.connection, proposal),
    )
    tx.journal(planned, actor=by)
    if proposal.session_id:
        words = describe_result(result)
        messages.complete(tx, session_id=proposal.session_id, role="notice", text=words)


def describe_result(result: PlanResult) -> str:
    """Return what a plan added to the backlog, in words."""
    first, last = result.tasks[0], result.tasks[-1]
    ids = first if len(result.tasks) == 1 else f"{first} to {last}"
    return f"Added to the backlog: {', '.join((*result.epics, *result.stories, ids))}."


def _plan_of(connection: sqlite3.Connection, proposal: Proposal) -> Plan:
    """Return the plan of a proposal, read as it is approved."""
    payload = proposal.body["payload"]
    if "plan" not in payload:
        return read_plan(str(payload["markdown"]), read_names_of_store(connection))
    plan = read_body(payload["plan"])
    names = read_names_of_store(connection)
    for task in plan.tasks:
        validation.task_type(task.task_type, names)
    # Another plan may have been approved since; what the user edits is added as they wrote it.
    refuse_doubles(connection, plan.tasks)
    return plan


def _provenance(connection: sqlite3.Connection, proposal: Proposal) -> dict[str, Any]:
    if not proposal.session_id:
        return {}
    session = sessions.load(connection, proposal.session_id)
    edited = {"edited": True} if "markdown" in proposal.body["payload"] else {}
    return {"planned_by": session.model, **edited}


def editable(proposal: Proposal) -> tuple[str, str]:
    """Return the plan's Markdown, as it was written or as it is written for the user, and a suffix."""
    payload = proposal.body["payload"]
    if "plan" in payload:
        return plan_source(read_body(payload["plan"])), ".md"
    return str(payload["markdown"]), ".md"


def edited(connection: sqlite3.Connection, text: str) -> RevisedProposal:
    """Return the proposal for the user's edited ``text``. Raises ``PlanInvalid``."""
    title, body = _proposal_body(connection, mask(text))
    return RevisedProposal(title, body)


def _identity(tx: Tx, payload: Mapping[str, Any], *, again: bool) -> tuple[str, Proposal | None]:
    """Return the id for a new proposal of this plan, and the waiting proposal if there is one."""
    attempt = 0
    while True:
        identity = f"p-{digest([PLAN_ACTION, payload, attempt])[:10]}"
        try:
            existing = proposals.load(tx.connection, identity)
        except NotFound:
            return identity, None
        if existing.status == "pending":
            return identity, existing
        if existing.status == "approved" and not again:
            result = plan_result(tx.connection, identity)
            where = f": {result.tasks[0]} to {result.tasks[-1]}" if result is not None else ""
            raise Stale(
                f"This very plan is in the backlog already ({identity}{where})."
                " To have all of it a second time, add --again."
            )
        attempt += 1


def _proposal_body(connection: sqlite3.Connection, text: str) -> tuple[str, dict[str, Any]]:
    """Return the title and body of the proposal for ``text``."""
    plan = read_plan(text, read_names_of_store(connection))
    for wait in plan.waits:
        if wait.task_id:
            _check_task_exists(connection, plan, wait.task, wait.task_id)
    return proposal_body(plan, {"markdown": text})


def proposal_body(
    plan: Plan, payload: Mapping[str, Any], fields: Sequence[Sequence[str]] = ()
) -> tuple[str, dict[str, Any]]:
    """Return the title and body of the proposal of ``plan``; ``payload`` is what its approval reads."""
    hours = sum(task.estimate_hours or 0 for task in plan.tasks)
    fields = [
        ["plan", plan.counted()],
        ["dependencies", str(len(plan.waits))],
        *([["estimated", f"{hours:g} hours"]] if hours else []),
        *map(list, fields),
    ]
    name = plan.epics[0].title if plan.epics else plan.tasks[0].title
    body = {
        "type": PLAN_ACTION,
        "summary": "Put all of this into the backlog, or nothing.",
        "fields": fields,
        "body": plan_source(plan),
        "diffs": [],
        "notes": list(plan.notes),
        "payload": dict(payload),
        "key": digest([PLAN_ACTION, dict(payload)])[:24],
    }
    return f"Plan: {name[:80]} ({plan.counted()})", body


def _check_task_exists(
    connection: sqlite3.Connection, plan: Plan, place: int, task_id: str
) -> None:
    try:
        tasks.load(connection, task_id)
    except NotFound as error:
        task = plan.tasks[place]
        raise PlanInvalid(
            f"Line {task.line}: #{task.number} waits for {task_id}, and there is no such task in the"
            " backlog."
        ) from error


def _insert(tx: Tx, plan: Plan, source: str, by: str) -> PlanResult:
    epics = [
        service.create_epic(
            tx,
            epic.title,
            description=epic.description,
            priority=epic.priority,
            source=f"plan {source}",
            by=by,
        ).epic_id
        for epic in plan.epics
    ]
    stories = [
        service.create_story(
            tx,
            story.title,
            epic_id=None if story.epic is None else epics[story.epic],
            description=story.description,
            by=by,
        ).story_id
        for story in plan.stories
    ]
    task_ids = [_task(tx, task, stories, source, by) for task in plan.tasks]
    for wait in plan.waits:
        other = wait.task_id if wait.on is None else task_ids[wait.on]
        dependencies.add(tx, task_ids[wait.task], other, wait.kind, by=by)
    # Once for all of them: each by itself, hundreds of tasks would hold the store for seconds.
    work_queue.refresh(tx, [*task_ids, *(wait.task_id for wait in plan.waits if wait.task_id)])
    for task, task_id in zip(plan.tasks, task_ids, strict=True):
        if task.done:
            service.set_status(tx, task_id, "done", "It was done when the plan was written.", by=by)
    return PlanResult(tuple(epics), tuple(stories), tuple(task_ids), len(plan.waits))


def _task(tx: Tx, task: PlannedTask, story_ids: Sequence[str], source: str, by: str) -> str:
    """Insert the task into its story, but not yet into the queue."""
    draft = replace(
        tasks.new_draft(task.title),
        story_id=None if task.story is None else story_ids[task.story],
        description=task.description,
        acceptance_criteria=task.acceptance_criteria,
        task_type=task.task_type,
        estimate_hours=task.estimate_hours,
        files=task.files,
        packages=task.packages,
        source=f"plan {source}",
    )
    return tasks.insert(tx, draft, by=by).task_id
