"""Assigning a role: a headless session for one part of a task, with the role's tools and limits.

An assignment names everything itself: cockpit reads nothing in its text as a command, a range or a pull
request. See ``docs/reference/roles.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from cockpit.core.secrets import mask
from cockpit.loop.intake.roles import Role
from cockpit.loop.planner.estimate_session import begin_estimate, find_price
from cockpit.loop.session_loop import TASK_SUBMITTED
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog.tasks import Task
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events, messages, sessions


class Assignment(Struct, frozen=True):
    """One role's part of a task: ``text`` is the whole first message, ``scope`` is read before it."""

    role: Role
    task: Task
    text: str
    scope: tuple[str, ...]
    branch: str


async def assign(
    engine: Engine,
    assignment: Assignment,
    *,
    model: str | None,
    policy: str,
    beside: Callable[[Tx, str], object],
    runner: str = "",
) -> str:
    """Store a new headless session for ``assignment``; returns its id. Nothing runs yet.

    ``beside`` is called with the id in the same transaction, so that the caller's own row of the session is
    never missing. With ``runner`` an external agent runs the session, and no wave ever does. Raises
    ``ModelError``.
    """
    name = f"{sessions.RUNNER_PREFIX}{runner}" if runner else engine.model(model).name
    role, task = assignment.role, assignment.task
    kind = task.task_type if task.task_type in engine.task_types else "implement"
    if not set(role.tools) - {"request_context", "finish"}:
        kind = "investigate"
    limits = engine.settings.limits
    caps = {
        "max_waves": min(limits.max_waves, role.max_waves),
        "max_cost": limits.max_cost,
        "deadline_s": limits.deadline_s,
        "max_tokens": min(filter(None, (limits.max_tokens, role.max_tokens)), default=None),
    }
    text = mask(assignment.text)
    price = await find_price(engine.settings, name)

    budget = await engine.fit_budget(name)

    def step(tx: Tx) -> str:
        profile = profiles.ensure_default(tx, budget)
        session = sessions.create(
            tx,
            task_type=kind,
            title=f"{task.task_id} {role.name.replace('_', ' ')}: {task.title}",
            words=text,
            target={},
            model=name,
            policy=policy,
            interactive=False,
            root=engine.place.root,
            rev=None,
            profile_id=profile.profile_id,
            limits={key: value for key, value in caps.items() if value is not None},
            project=engine.repo or engine.place.home.name,
            branch=assignment.branch,
            role=role.name,
            task_id=task.task_id,
            actor="engine",
        )
        messages.complete(
            tx,
            session_id=session.session_id,
            role="person",
            text=f"{task.task_id}, {role.name.replace('_', ' ')}: {task.title}",
        )
        for problem in engine.file_problems():
            notice = f"Not used: {problem}"
            messages.complete(tx, session_id=session.session_id, role="notice", text=notice)
        if not runner:
            events.ingest(
                tx,
                source=session.source,
                source_event_id="task",
                event_type=TASK_SUBMITTED,
                trace_id=session.trace_id,
                payload={"text": text, "scope_items": list(assignment.scope), "included": {}},
            )
        begin_estimate(tx, session, price)
        beside(tx, session.session_id)
        return session.session_id

    return await engine.store.write(step)
