"""One role's step of a task: its prompt, its session, and the result.

The built-in agent runs the role as an ordinary session in the task's worktree, so that its proposals,
packets and budget are like those of any session. An external agent can run it instead
(:mod:`cockpit.tasks.external_agent_role`). See ``docs/reference/roles.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from cockpit.access.confined_paths import PathRefused
from cockpit.agents.stdio.driven_runners import find_runner
from cockpit.agents.streams.reads_before import MOST_READ_BEFORE, take_over_reads
from cockpit.core.canonical_json import canonical_json
from cockpit.core.fenced_text import fence_text, make_visible
from cockpit.decide.choose_model import OFFLINE
from cockpit.decide.model import ModelError
from cockpit.learn.resume_text import description_of, handoffs_text
from cockpit.loop.decisions.approval_policy import is_narrower
from cockpit.loop.intake.assign_role import Assignment, assign
from cockpit.loop.intake.declared_context import find_named
from cockpit.loop.intake.task_types import OPTIONAL, TaskType
from cockpit.loop.runtime import Runtime, runtime_over
from cockpit.store.backlog import handoffs, wip
from cockpit.store.backlog.handoffs import Handoff
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import task_runs
from cockpit.store.chains.task_runs import Step
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.journal.details.sessions import SessionStopped
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session
from cockpit.tasks.change_for_review import read_change
from cockpit.tasks.external_agent_role import began_session, run_role_with_agent
from cockpit.tasks.git import WorktreeError, changed_files
from cockpit.tasks.outage import NOT_OFFLINE
from cockpit.tasks.role_result import RoleResult, count_tools, select_standing_refusals
from cockpit.tasks.task_context import TaskContext
from cockpit.tasks.test_protection import named_files
from cockpit.tasks.work_done import observations

ROLE_OF_STEP = {
    "implement": "implementer",
    "fix": "fixer",
    "spec_review": "spec_reviewer",
    "quality_review": "quality_reviewer",
}


class TaskRuntime:
    """The runtime in one task's worktree, opened when a role or the tests first need it."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._runtime: Runtime | None = None

    async def open(self, context: TaskContext, worktree: Worktree) -> Runtime:
        """Return the runtime whose root is the worktree; it uses the project's store."""
        if self._runtime is None:
            place = replace(context.place, root=Path(worktree.path))
            runtime = runtime_over(context.store, place, context.settings)
            self._runtime = await self._stack.enter_async_context(runtime)
        return self._runtime

    async def close(self) -> None:
        """Close the runtime, if it was opened."""
        await self._stack.aclose()


async def run_role(
    context: TaskContext,
    task_runtime: TaskRuntime,
    worktree: Worktree,
    task: Task,
    step: Step,
    steps: Sequence[Step],
) -> RoleResult:
    """Run the role of ``step`` to its end, in a new session or the step's unfinished one.

    Raises ``ModelError``, ``Stale`` when another process runs the session, and other ``CockpitError``.
    """
    runtime = await task_runtime.open(context, worktree)
    session = None if step.session_id is None else _load_session(context, step.session_id)
    if session is None or session.status != "completed":
        runner = find_runner(context.settings, context.runner)
        if runner is not None and context.work.env:
            runner = replace(runner, env=(*runner.env, *context.work.env))
        if session is not None and not began_session(session, runner):
            await _stop_other_runner(context, session)
            session = None
        if session is None:
            if runner is None and runtime.engine.model(context.model).name == OFFLINE:
                raise ModelError("config", NOT_OFFLINE)
            session_id = await assign(
                runtime.engine,
                await _assignment(
                    context, runtime, worktree, task, step, steps, is_built_in=runner is None
                ),
                model=context.model,
                policy=context.approve,
                beside=lambda tx, session_id: task_runs.attach_session(tx, step, session_id),
                runner="" if runner is None else runner.name,
            )
            session = _load_session(context, session_id)
        elif steps:
            await _apply_policy(context, session, steps[-1].chain_id)
        if runner is None:
            session = await runtime.run(session.session_id, interactive=False)
        else:
            assignment = await _assignment(context, runtime, worktree, task, step, steps)
            await run_role_with_agent(
                context, worktree, assignment, session.session_id, runner, runtime.engine
            )
            session = _load_session(context, session.session_id)
    result = session.result
    status = str(result.get("status", "")) if session.status == "completed" else "blocked"
    tools, refused = context.store.read_now(
        lambda connection: count_tools(connection, session.session_id)
    )
    standing: list[str] = []
    if session.model.startswith(sessions.RUNNER_PREFIX):
        standing = context.store.read_now(
            lambda connection: select_standing_refusals(connection, session.session_id)
        )
    summary = str(result.get("summary", "")).strip()
    return RoleResult(status or "blocked", summary, tools, tuple(refused), tuple(standing))


async def _apply_policy(context: TaskContext, session: Session, chain_id: str) -> None:
    """Apply the policy of the resuming worker to a session that ``chain_id`` started.

    Within one chain the user may have narrowed the session's policy, which then stays.
    """
    narrower = is_narrower(context.approve, session.policy)
    if narrower or (chain_id != context.chain_id and session.policy != context.approve):
        await context.store.write(
            lambda tx: sessions.change(
                tx, session.session_id, actor="engine", policy=context.approve
            )
        )


async def _stop_other_runner(context: TaskContext, session: Session) -> None:
    """Stop the session of another runner; the new runner starts one of its own."""
    detail = SessionStopped(reason="another runner continues the step")
    await context.store.write(
        lambda tx: sessions.set_status(tx, session.session_id, "stopped", detail=detail)
    )


def _load_session(context: TaskContext, session_id: str) -> Session:
    return context.store.read_now(lambda connection: sessions.load(connection, session_id))


async def _assignment(
    context: TaskContext,
    runtime: Runtime,
    worktree: Worktree,
    task: Task,
    step: Step,
    steps: Sequence[Step],
    *,
    is_built_in: bool = False,
) -> Assignment:
    """Return the role's prompt and what is read before it; ``is_built_in``: by the agent with a packet."""
    role = runtime.engine.role(ROLE_OF_STEP[step.step])
    if role is None:
        raise WorktreeError(
            f"There is no role {ROLE_OF_STEP[step.step]}; restore its file (docs/roles.md)."
        )
    root = Path(worktree.path)
    needs_changes = {"changed_files", "named_files"} & set(
        role.context
    ) or "changed_files" in role.placeholders
    changed = await changed_files(root, worktree.base_commit) if needs_changes else ()
    failure = _last_detail(steps, "test", "output") or _last_detail(steps, "test", "summary")
    task_type = (
        runtime.engine.task_types.get(task.task_type) or runtime.engine.task_types["implement"]
    )
    before = runtime.store.read_now(
        lambda connection: handoffs.select_before(connection, task.task_id)
    )
    values = {
        "task": task.task_id,
        "title": make_visible(task.title),
        "type": task.task_type,
        "description": description_of(task) or "(No description beyond the title.)",
        "acceptance": task.acceptance_criteria.strip() or "(No further criteria.)",
        "notes": _notes(task, before),
        "dod": task_type.definition_of_done(),
        "wip": canonical_json(wip.keep_newest(task.wip or {}, 20)),
        "base": worktree.base_commit[:10],
        "branch": worktree.branch,
        "changed_files": "\n".join(changed),
        "diff": "",
        "failure": fence_text(failure.strip()),
        "tests": _last_detail(steps, "test", "summary") or "No tests were run.",
        "findings": _findings(steps),
        "attempt": str(step.attempt),
    }
    shows_diff = "diff" in role.placeholders
    if shows_diff or role.gives_verdict:
        values["diff"] = (await read_change(root, worktree.base_commit)).text
        if role.gives_verdict and (seen := observations(steps)):
            values["diff"] += f"\n\ncockpit has seen besides:\n{seen}"
    text = role.words(values)
    if standing := task_type.standing_words():
        text = f"{text.rstrip()}\n\n{standing}\n"
    if role.gives_verdict and not shows_diff:
        # A role file of the user's own may leave it out; a verdict on an unseen change is worth nothing.
        text += f"\n\n### The Change, Since {worktree.base_commit[:10]}\n\n{values['diff']}\n"
    paths: dict[str, None] = {}
    for source in role.context:
        source_paths: Sequence[str] = changed
        if source == "task_files":
            source_paths = task.files
        elif source == "named_files":
            source_paths = named_files(failure, root, changed)
        paths |= dict.fromkeys(source_paths)
    scope = [f"file:{path}" for path in paths if _is_file(runtime, path)]
    if "task_files" in role.context:
        scope = [*dict.fromkeys([*_declared_items(task_type, task, root), *scope])]
    del scope[MOST_READ_BEFORE:]
    if is_built_in:
        room = MOST_READ_BEFORE - len(scope)
        taken = await take_over_reads(runtime.store, task.task_id, root, scope, room)
        scope += taken.items
        text += taken.text
    return Assignment(role, task, text, tuple(scope), worktree.branch)


def _declared_items(task_type: TaskType, task: Task, root: Path) -> list[str]:
    """Return what the task's type declares and its text names: issues as ``#7``, files as ``@path``.

    What cannot be read is left out of the packet with a notice to the agent.
    """
    text = "\n".join((task.title, task.description, task.acceptance_criteria))
    items = task_type.scope_items({}, find_named(text, root))
    return [item.removeprefix(OPTIONAL) for item in items]


def _is_file(runtime: Runtime, path: str) -> bool:
    try:
        return runtime.engine.ground.confined.inside(path).is_file()
    except PathRefused:
        return False


def _notes(task: Task, before: Sequence[Handoff]) -> str:
    parts = (
        [f"### Context\n\n{task.context_summary.strip()}"] if task.context_summary.strip() else []
    )
    if task.handoff_notes.strip():
        parts.append(f"### Handoff Notes\n\n{fence_text(task.handoff_notes.strip())}")
    if before:
        parts.append(f"### Handoffs of the Tasks Before\n\n{fence_text(handoffs_text(before))}")
    if task.wip:
        progress = canonical_json(wip.keep_newest(task.wip, 20))
        parts.append(f"### Work in Progress\n\nResume where it was left: {progress}")
    return "\n\n".join(parts)


def _findings(steps: Sequence[Step]) -> str:
    """Return the findings of the last review that did not pass."""
    for step in reversed(steps):
        if step.step.endswith("_review") and step.outcome == "FAIL":
            review = step.step.replace("_", " ")
            summary = fence_text(str(step.detail.get("summary", "")).strip())
            return f"### Rework\n\nThe {review} found:\n\n{summary}"
    return ""


def _last_detail(steps: Sequence[Step], name: str, key: str) -> str:
    """Return a detail of the last ended step of that name; empty for none."""
    values = [
        str(step.detail.get(key, "")) for step in steps if step.step == name and not step.open
    ]
    return values[-1] if values else ""
