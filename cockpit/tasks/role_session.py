"""One role's part of a task: what it is told, its session, and what its last words were.

Each is an ordinary session of the engine in the task's own tree, so that its proposals, packets and
budget are those of any other; or an agent from outside takes it (:mod:`cockpit.tasks.external_agent_role`).

"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from cockpit.access.confined_paths import PathRefused
from cockpit.core.canonical_json import canonical_json
from cockpit.core.project_paths import ProjectPaths
from cockpit.decide.choose_model import OFFLINE
from cockpit.decide.model import ModelError
from cockpit.loop.decisions.approval_policy import WIDTH
from cockpit.loop.intake.assign_role import Assignment, assign
from cockpit.loop.intake.review_template import visible
from cockpit.loop.runtime import Runtime, runtime_over
from cockpit.store.backlog import wip
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import task_runs
from cockpit.store.chains.task_runs import Step
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session
from cockpit.tasks.external_agent_role import began_session, find_runner, run_role_with_agent
from cockpit.tasks.git import WorktreeError, changed_files, try_git
from cockpit.tasks.model_outage import NOT_OFFLINE
from cockpit.tasks.task_context import TaskContext
from cockpit.tasks.test_protection import named_files

DIFF_BYTES = 50 * 1024
"""What of a change stands in a role's words; the rest can be asked for."""
MOST_FILES = 20

ROLE_OF = {
    "implement": "implementer",
    "fix": "fixer",
    "spec_review": "spec_reviewer",
    "quality_review": "quality_reviewer",
}
"""Who takes which step."""


@dataclass(frozen=True, slots=True)
class RoleResult:
    """How a role's session ended: ``done``, ``blocked`` or ``limit``, and its last words."""

    status: str
    summary: str


class TaskRuntime:
    """The engine over one task's tree, opened when a role or the tests first need it."""

    def __init__(self, desk: TaskContext) -> None:
        self._desk = desk
        self._open = AsyncExitStack()
        self._runtime: Runtime | None = None

    async def runtime(self, tree: Worktree) -> Runtime:
        """The runtime whose root is the task's tree, over the project's one store."""
        if self._runtime is None:
            place = ProjectPaths(root=Path(tree.path), home=self._desk.place.home, git=True)
            opened = runtime_over(self._desk.store, place, self._desk.settings)
            self._runtime = await self._open.enter_async_context(opened)
        return self._runtime

    async def close(self) -> None:
        """End what was opened."""
        await self._open.aclose()


async def run_role(
    desk: TaskContext,
    stage: TaskRuntime,
    tree: Worktree,
    task: Task,
    step: Step,
    steps: Sequence[Step],
) -> RoleResult:
    """See the role of ``step`` through: begin its session, or go on with the one that it has.

    Raises ``ModelError``, ``Stale`` when another process runs it, and other ``CockpitError``.
    """
    runtime = await stage.runtime(tree)
    session = None if step.session_id is None else _session(desk, step.session_id)
    if session is None or session.status != "completed":
        runner = find_runner(desk.settings, desk.runner)
        if session is not None and not began_session(session, runner):
            await _leave(desk, session)
            session = None
        if session is None:
            if runner is None and runtime.engine.model(desk.model).name == OFFLINE:
                raise ModelError("config", NOT_OFFLINE)
            made = await assign(
                runtime.engine,
                await _assignment(desk, runtime, tree, task, step, steps),
                model=desk.model,
                policy=desk.approve,
                beside=lambda tx, made: task_runs.attach_session(tx, step, made),
                runner="" if runner is None else runner.name,
            )
            session = _session(desk, made)
        elif steps:
            await _hold(desk, session, steps[-1].chain_id)
        if runner is None:
            session = await runtime.run(session.session_id, interactive=False)
        else:
            given = await _assignment(desk, runtime, tree, task, step, steps)
            await run_role_with_agent(desk, tree, given, session.session_id, runner)
            session = _session(desk, session.session_id)
    result = session.result
    status = str(result.get("status", "")) if session.status == "completed" else "blocked"
    return RoleResult(status or "blocked", str(result.get("summary", "")).strip())


async def _hold(desk: TaskContext, session: Session, chain_id: str) -> None:
    """Hold a session that ``chain_id`` began to the policy of the desk that goes on with it. Within
    one chain a person may have narrowed it on the screen, and so it stays."""
    narrower = WIDTH[desk.approve] < WIDTH[session.policy]
    if narrower or (chain_id != desk.chain_id and session.policy != desk.approve):
        await desk.store.write(
            lambda tx: sessions.change(tx, session.session_id, actor="engine", policy=desk.approve)
        )


async def _leave(desk: TaskContext, session: Session) -> None:
    """A person had another runner go on with the part: it begins a session of its own."""
    why = {"reason": "another runner goes on with it"}
    await desk.store.write(
        lambda tx: sessions.set_status(tx, session.session_id, "stopped", detail=why)
    )


def _session(desk: TaskContext, session_id: str) -> Session:
    return desk.store.read_now(lambda found: sessions.load(found, session_id))


async def _assignment(
    desk: TaskContext,
    runtime: Runtime,
    tree: Worktree,
    task: Task,
    step: Step,
    steps: Sequence[Step],
) -> Assignment:
    role = runtime.engine.role(ROLE_OF[step.step])
    if role is None:
        raise WorktreeError(f"There is no role {ROLE_OF[step.step]}.")
    root = Path(tree.path)
    wants = {"changed_files", "named_files"} & set(
        role.context
    ) or "{changed_files}" in role.template
    changed = await changed_files(root, tree.base_commit) if wants else ()
    failure = _last(steps, "test", "output") or _last(steps, "test", "summary")
    kind = runtime.engine.types.get(task.task_type) or runtime.engine.types["implement"]
    values = {
        "task": task.task_id,
        "title": visible(task.title),
        "type": task.task_type,
        "description": task.description.strip() or "(The title says it all.)",
        "acceptance": task.acceptance_criteria.strip() or "(Nothing beside what was asked.)",
        "notes": _notes(task),
        "dod": "\n".join(f"{at}. {point}" for at, point in enumerate(kind.dod, 1)),
        "wip": canonical_json(wip.keep_newest(task.wip or {}, 20)),
        "base": tree.base_commit[:10],
        "branch": tree.branch,
        "changed_files": "\n".join(changed),
        "diff": await _diff(root, tree.base_commit) if "{diff}" in role.template else "",
        "failure": _fenced(failure),
        "tests": _last(steps, "test", "summary") or "No tests were run.",
        "findings": _findings(steps),
        "attempt": str(step.attempt),
    }
    wanted: dict[str, None] = {}
    for source in role.context:
        found: Sequence[str] = changed
        if source == "task_files":
            found = task.files
        elif source == "named_files":
            found = named_files(failure, root, changed)
        wanted |= dict.fromkeys(found)
    scope = [f"file:{path}" for path in wanted if _there(runtime, path)]
    return Assignment(role, task, role.words(values), tuple(scope[:MOST_FILES]), tree.branch)


def _there(runtime: Runtime, path: str) -> bool:
    try:
        return runtime.engine.ground.confined.inside(path).is_file()
    except PathRefused:
        return False


def _notes(task: Task) -> str:
    parts = (
        [f"### Context\n\n{task.context_summary.strip()}"] if task.context_summary.strip() else []
    )
    if task.handoff_notes.strip():
        parts.append(f"### Notes Handed Over\n\n{task.handoff_notes.strip()}")
    if task.wip:
        told = canonical_json(wip.keep_newest(task.wip, 20))
        parts.append(f"### Work in Progress\n\nGo on from where it was left: {told}")
    return "\n\n".join(parts)


def _findings(steps: Sequence[Step]) -> str:
    """What a reviewer sent the task back for."""
    for step in reversed(steps):
        if step.step.endswith("_review") and step.outcome == "FAIL":
            which = step.step.replace("_", " ")
            return f"### To Be Done Again\n\nThe {which} found:\n\n{step.detail.get('summary', '')}"
    return ""


def _last(steps: Sequence[Step], step: str, name: str) -> str:
    found = [str(one.detail.get(name, "")) for one in steps if one.step == step and not one.open]
    return found[-1] if found else ""


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.strip()}\n{fence}"


async def _diff(root: Path, base: str) -> str:
    ended = await try_git(root, "diff", base, "HEAD")
    data = ended.stdout
    if not data.strip():
        return "(Nothing was changed.)"
    if len(data) > DIFF_BYTES:
        whole = data[:DIFF_BYTES].rpartition(b"\n")[0]
        text = whole.decode("utf-8", "replace")
        return (
            f"{_fenced(text)}\n\nThe change is longer than {DIFF_BYTES // 1024} KiB and was cut here. Ask "
            f"for the rest: diff:{base[:10]}..HEAD, or single files."
        )
    return _fenced(data.decode("utf-8", "replace"))
