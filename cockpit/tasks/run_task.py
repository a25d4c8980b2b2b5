"""Running a task: implement → test → (fix → test)* → spec review → quality review → merge → done.

Every step is stored before it starts and when it ends, so the next process resumes a task where the last
one died. Callers get the handoff's status and summary, nothing else. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.confined_paths import PathRefused
from cockpit.access.run_program import ProgramMissing
from cockpit.act.command_line import CommandRefused
from cockpit.agents.runs.agent_command_line import RunnerError
from cockpit.backlog import service
from cockpit.backlog.validation import BacklogInvalid
from cockpit.core.errors import CockpitError, MachineFault, Stale
from cockpit.learn.resume_line import one_line
from cockpit.loop.intake.task_types import TaskType, load_task_types
from cockpit.loop.planner.estimate_run import (
    RunInput,
    begin_run_estimate,
    prepare_run_estimate,
)
from cockpit.loop.runtime_settings import EMBEDDED
from cockpit.store.backlog import tasks, wip
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import retry_delays, task_runs, worktrees
from cockpit.store.chains.task_runs import ENDS, Step
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.db.transaction import Tx
from cockpit.tasks import role_usage
from cockpit.tasks.agent_changes.unheld_files import add_unheld, list_unheld
from cockpit.tasks.change_for_review import describe_evidence, read_change
from cockpit.tasks.finish_task import (
    SetAside,
    finish_task,
    finished_result,
    keep_worktree,
    raise_if_set_aside,
)
from cockpit.tasks.git import (
    WorktreeError,
    changed_files,
    commit_all,
    commit_of,
    discard_changes,
    uncommitted_files,
)
from cockpit.tasks.merging import MergeResult, merge_task, prepare_worktree
from cockpit.tasks.outage import describe_outage, outage_reason
from cockpit.tasks.preparation.base_tests import excuse_red_tests, test_base
from cockpit.tasks.preparation.set_up_worktree import (
    brought_files,
    fill_worktree,
    set_up_worktree,
    worktree_settings,
)
from cockpit.tasks.role_result import RoleResult, parse_verdict
from cockpit.tasks.role_session import TaskRuntime, run_role
from cockpit.tasks.run_tests import run_tests
from cockpit.tasks.steps import NextStep, next_step
from cockpit.tasks.task_context import TaskContext, TaskOutcome
from cockpit.tasks.test_protection import restore_tests
from cockpit.tasks.work_done import judge_work, name_unheld
from cockpit.tasks.worktree import ensure_chain_worktree

MAX_STEP_ERRORS = 3
"""A step that breaks off this often for a reason outside the task blocks the task."""

_BY = "engine"
_PERMANENT_ERRORS = (WorktreeError, PathRefused, CommandRefused, ProgramMissing, RunnerError)
_STEPS = {
    "implement": ("in_progress", "implementing", "implement it, with tests"),
    "test": ("in_progress", "testing", "run the tests"),
    "fix": ("in_progress", "fixing", "fix the failing tests"),
    "spec_review": ("review", "reviewing", "spec review: does it meet the task?"),
    "quality_review": ("review", "reviewing", "quality review: is it sound?"),
    "merge": ("review", "merging", "merge it into the chain's branch"),
}
"""By step: the task's status, and the phase and next step of its work in progress."""
_FAILURE_TYPES = {"spec_review": "spec", "quality_review": "quality"}


async def run_task(context: TaskContext, task_id: str) -> TaskOutcome:
    """Run the task, or resume it where it was left.

    Cancelled, or in an outage, it stops within its step and resumes there later. Raises ``NotFound`` for an
    unknown task, and the store's errors.
    """
    store = context.store

    full_id = store.read_now(lambda c: tasks.load(c, task_id).task_id)
    tokens_before, cost_before = store.read_now(lambda c: role_usage.task_usage(c, full_id))
    runtime = TaskRuntime()
    try:
        end = await _TaskRun(context, runtime, full_id).run()
    except Exception as error:
        reason = outage_reason(error, context.place.home)
        if not reason:
            raise
        end = _RunEnd("interrupted", describe_outage(error, context.place.home), reason=reason)
    finally:
        await runtime.close()
    tokens, cost = store.read_now(lambda c: role_usage.task_usage(c, full_id))
    return TaskOutcome(
        task_id=full_id,
        status=end.status,
        summary=end.summary,
        tokens=tokens - tokens_before,
        cost_usd=cost - cost_before,
        merged_commit=end.commit,
        reason=end.reason,
    )


class _RunEnd(Struct, frozen=True):
    status: str
    summary: str
    commit: str | None = None
    reason: str = ""


class _TaskRun:
    """One call of :func:`run_task`."""

    def __init__(self, context: TaskContext, runtime: TaskRuntime, task_id: str) -> None:
        self._context = context
        self._store = context.store
        self._runtime = runtime
        self._task_id = task_id
        self._run = 1
        self._started = False
        self._worktree: Worktree | None = None
        self._is_committed = False
        self._given: RunInput | None = None
        """What the estimate of a new run needs; None once it is made."""

    async def run(self) -> _RunEnd:
        """Take step after step, to the end of the task or until it has to stop."""
        task = self._load_task()
        if task.status == "done":
            return _RunEnd("done", *finished_result(self._context, task))
        if task.status == "archived":
            raise BacklogInvalid(
                f"{task.task_id} is archived. Reopen it with `cockpit tasks move {task.task_id} todo`."
            )
        earlier = self._store.read_now(
            lambda connection: task_runs.select_steps(connection, self._task_id)
        )
        if earlier:
            ended = earlier[-1].step in ENDS and not earlier[-1].open
            self._run = earlier[-1].run + ended
        if not any(step.run == self._run for step in earlier):
            context = self._context
            runner = None if context.runner == EMBEDDED else context.runner
            self._given = await asyncio.to_thread(
                prepare_run_estimate,
                context.settings,
                context.model,
                runner,
            )
        while True:
            steps = self._load_steps()
            coming = self._next_step(steps)
            if self._is_for_another(coming):
                return _RunEnd("ready", f"ready for: {coming.step}")
            if coming.step in ENDS:
                result = await finish_task(
                    self._context, self._load_task(), self._run, coming, steps
                )
                return _RunEnd(coming.step, *result, coming.reason)
            if self._context.should_stop():
                if steps:
                    await self._store.write(partial(self._save_progress, name=coming.step))
                return _RunEnd("interrupted", f"stopped before: {coming.step}", reason="drained")
            try:
                step = await self._store.write(partial(self._start_step, name=coming.step))
            except SetAside as error:
                await self._store.write(partial(keep_worktree, task_id=self._task_id))
                return _RunEnd("interrupted", str(error), reason=error.code)
            try:
                await self._take_step(step, steps)
            except Stale as error:
                return _RunEnd("interrupted", str(error), reason="elsewhere")
            except CockpitError as error:
                if outage_reason(error, self._context.place.home):
                    raise
                if not await self._give_up_step(step, error):
                    return _RunEnd("interrupted", str(error), reason=error.code)

    def _is_for_another(self, coming: NextStep) -> bool:
        """Whether the step is for the process that merges."""
        return self._context.stops_before_merge and coming.step in (*ENDS, "merge")

    def _next_step(self, steps: list[Step]) -> NextStep:
        tests_failed = bool(steps) and steps[-1].outcome == "failed"
        return next_step(
            steps,
            auto_fix=tests_failed and self._may_fix(self._load_task()),
            max_fixes=self._context.work.max_test_retries,
        )

    def _may_fix(self, task: Task) -> bool:
        """Whether a fixer may work on failing tests of such a task."""
        task_type = self._task_type(task)
        return self._context.work.auto_fix and task_type is not None and task_type.auto_fix

    def _must_change(self, task: Task) -> bool:
        """Whether such a task is not done without a change; so for a type that is not there any more."""
        task_type = self._task_type(task)
        return task_type is None or task_type.must_change

    def _is_confirmed(self) -> bool:
        """Whether the reviewers passed the implementer's claim that there is nothing to do."""
        done = [step for step in self._load_steps() if step.step == "implement"]
        return bool(done) and done[-1].outcome == "nothing_to_do"

    def _task_type(self, task: Task) -> TaskType | None:
        loaded = load_task_types(self._context.place.home, self._context.settings.user_dir)
        return loaded.types.get(task.task_type)

    def _load_task(self) -> Task:
        return self._store.read_now(lambda connection: tasks.load(connection, self._task_id))

    def _load_steps(self) -> list[Step]:
        steps = self._store.read_now(
            lambda connection: task_runs.select_steps(connection, self._task_id)
        )
        return [step for step in steps if step.run == self._run]

    def _start_step(self, tx: Tx, name: str) -> Step:
        """Start or resume the step, and set the task's status and work in progress to it."""
        if self._started:
            raise_if_set_aside(tx, self._task_id)
        where: dict[str, Any] = {
            "chain_id": self._context.chain_id,
            "ordinal": self._context.ordinal,
        }
        steps = task_runs.select_steps(tx.connection, self._task_id)
        if steps and steps[-1].run == self._run and steps[-1].open:
            step = task_runs.resume(tx, steps[-1], **where)
        else:
            if self._given is not None:
                task = tasks.load(tx.connection, self._task_id)
                begin_run_estimate(tx, task, self._run, self._given)
                self._given = None
            step = task_runs.begin(tx, self._task_id, self._run, name, **where)
        status, phase, _ = _STEPS[name]
        service.set_status(tx, self._task_id, status, by=_BY)
        self._save_progress(tx, name, phase=phase)
        self._started = True
        return step

    def _save_progress(self, tx: Tx, name: str, **fields: str) -> None:
        """Save the next step, and ``fields``, as work in progress."""
        text = _STEPS[name][2]
        progress = tasks.load(tx.connection, self._task_id).wip or {}
        failing_test = str(progress.get("test_results", {}).get("failing_test", ""))
        if name == "fix" and failing_test:
            text = f"fix failing test {failing_test}"
        wip.update(tx, self._task_id, {**fields, "next_step": text}, by=_BY)

    async def _take_step(self, step: Step, steps: list[Step]) -> None:
        match step.step:
            case "implement":
                await self._implement(step, steps)
            case "test":
                await self._test(step)
            case "fix":
                await self._fix(step, steps)
            case "merge":
                await self._merge(step)
            case _:
                await self._review(step, steps)

    async def _prepared_worktree(self) -> Worktree:
        if self._worktree is None:
            tree = await prepare_worktree(self._context, self._task_id)
            root = Path(tree.path)
            await set_up_worktree(self._context, root)
            settings = worktree_settings(self._context, root, self._task_id)
            self._context = replace(self._context, settings=settings)
            if self._context.work.setup or self._context.work.copy:
                runtime = await self._runtime.open(self._context, tree)
                await fill_worktree(self._context, tree, runtime.engine.ground)
            self._worktree = tree
        return self._worktree

    async def _test_base(self, step: Step, worktree: Worktree) -> Step:
        """Note with the run's first step how the tests are without any change."""
        root = Path(worktree.path)
        begun = await commit_of(root, "HEAD") != worktree.base_commit
        if step.position > 1 or "base" in step.detail or begun or await uncommitted_files(root):
            return step
        runtime = await self._runtime.open(self._context, worktree)
        base = await test_base(self._context, runtime.engine.ground)
        await discard_changes(root)
        return await self._store.write(lambda tx: task_runs.add_detail(tx, step, base=base))

    async def _run_role(self, step: Step, steps: list[Step], worktree: Worktree) -> RoleResult:
        self._is_committed = False
        return await run_role(
            self._context, self._runtime, worktree, self._load_task(), step, steps
        )

    async def _implement(self, step: Step, steps: list[Step]) -> None:
        worktree = await self._prepared_worktree()
        step = await self._test_base(step, worktree)
        if missing := step.detail.get("base", {}).get("missing"):
            await self._end_step(step, "untestable", summary=missing)
            return
        result = await self._run_role(step, steps, worktree)
        step = self._reload(step)
        task = self._load_task()
        finished = result.status == "done"
        subject = task.title if finished else "uncommitted work of the implementer"
        committed = await self._commit(worktree, subject, result.summary if finished else "")
        root = Path(worktree.path)
        work = await judge_work(result, root, worktree.base_commit, self._task_type(task))
        if work.outcome in ("done", "nothing_to_do"):
            unheld = await list_unheld(root, worktree.base_commit, brought_files(root))
            work = name_unheld(work, unheld, root) if unheld else work
        tip = await commit_of(root, "HEAD")
        await self._end_step(
            step,
            work.outcome,
            summary=work.summary,
            committed_for_it=list(committed),
            tip=tip,
            **work.detail,
        )

    async def _test(self, step: Step) -> None:
        context = self._context
        worktree = await self._prepared_worktree()
        runtime = await self._runtime.open(self._context, worktree)
        if not self._is_committed:  # the step before was another process's
            await self._commit(worktree, "uncommitted work before the tests")
        self._is_committed = False
        try:
            test_run = await run_tests(
                runtime.engine.ground,
                context.place.home,
                context.work.test_command,
                context.approve,
            )
        except MachineFault:
            await discard_changes(Path(worktree.path))  # it may be what filled the disk
            raise
        test_run = excuse_red_tests(test_run, self._base_tests(), self._load_task())
        if test_run.argv:
            await discard_changes(Path(worktree.path))

        def record(tx: Tx) -> None:
            if test_run.results:
                patch: dict[str, Any] = {"test_results": dict(test_run.results)}
                if test_run.status == "passed":
                    patch[wip.SOLVED] = [{"type": "test_failure"}]
                wip.update(tx, self._task_id, patch, by=_BY)
            task_runs.end(
                tx,
                step,
                test_run.status,
                summary=test_run.summary,
                argv=list(test_run.argv),
                output=test_run.output if test_run.status == "failed" else "",
            )

        await self._store.write(record)

    def _base_tests(self) -> Mapping[str, Any]:
        own = [step.detail["base"] for step in self._load_steps() if "base" in step.detail]
        chain = self._store.read_now(
            lambda connection: task_runs.find_base_tests(connection, self._context.chain_id)
        )
        return own[0] if own else chain or {}

    async def _fix(self, step: Step, steps: list[Step]) -> None:
        worktree = await self._prepared_worktree()
        root = Path(worktree.path)
        before = str(step.detail.get("before", "")) or await commit_of(root, "HEAD") or ""
        noted = await self._store.write(lambda tx: task_runs.add_detail(tx, step, before=before))
        result = await self._run_role(noted, steps, worktree)
        step = self._reload(step)
        restored = await restore_tests(root, before)
        await self._commit(worktree, f"fix the failing tests, try {step.attempt}", result.summary)
        # A fixer that used up its waves may have fixed it all the same: the tests decide.
        outcome = "blocked" if result.status == "blocked" else "done"
        tip = await commit_of(root, "HEAD")
        await self._end_step(
            step,
            outcome,
            summary=result.summary,
            restored=list(restored),
            tip=tip,
            changed=bool(await changed_files(root, before)),
        )

    async def _review(self, step: Step, steps: list[Step]) -> None:
        worktree = await self._prepared_worktree()
        result = await self._run_role(step, steps, worktree)
        step = self._reload(step)
        change = await read_change(Path(worktree.path), worktree.base_commit)
        verdict = parse_verdict(result.summary, change.text)
        looked_at = self._store.read_now(
            lambda connection: describe_evidence(connection, step.session_id or "", change)
        )
        status = (
            "BLOCKED" if result.status == "blocked" and verdict.status == "PASS" else verdict.status
        )
        findings = verdict.findings or f"{step.step.replace('_', ' ')}: {status}"
        failure_type = _FAILURE_TYPES[step.step]

        def record(tx: Tx) -> None:
            task_runs.end(
                tx,
                step,
                status,
                summary=findings,
                read=verdict.readable,
                looked_at=looked_at,
                said_looked_at=verdict.looked_at,
            )
            if status == "FAIL":
                service.record_failure(tx, self._task_id, failure_type, findings[:4_000], by=_BY)
                service.set_needs_rework(tx, self._task_id, True, by=_BY)

        await self._store.write(record)

    async def _merge(self, step: Step) -> None:
        context, task = self._context, self._load_task()
        chain = await ensure_chain_worktree(
            context.store, context.place, context.chain_branch, chain_id=context.chain_id
        )
        worktree = self._store.read_now(
            lambda connection: worktrees.load(connection, self._task_id)
        )
        tip = await self._branch_tip(worktree)
        files = await changed_files(context.place.home, worktree.base_commit, tip)
        if not files and self._must_change(task) and not self._is_confirmed():
            await self._end_step(step, "empty")
            return
        subject = f"Merge {task.task_id}: {' '.join(task.title.split())[:80]}"
        trailers = f"Cockpit-Task: {task.task_id}" + (
            f"\nCockpit-Chain: {context.chain_id}" if context.chain_id else ""
        )
        result = MergeResult(None)
        if tip != worktree.base_commit:
            result = await merge_task(context.place, chain, worktree, f"{subject}\n\n{trailers}\n")

        def record(tx: Tx) -> None:
            if result.conflicts:
                conflicts = ", ".join(result.conflicts[:10])
                worktrees.set_status(tx, worktree.name, "conflict", conflicts=result.conflicts)
                summary = (
                    f"{worktree.branch} conflicts with {chain.branch} in {conflicts}. Its work is kept"
                    f" in {worktree.path}. Merge {chain.branch} there by hand, then unblock the task."
                )
                task_runs.end(
                    tx, step, "conflict", summary=summary, conflicts=list(result.conflicts)
                )
                return
            worktrees.set_status(tx, worktree.name, "merged", merged_commit=result.commit)
            outcome = "merged" if result.commit and files else "nothing"
            task_runs.end(tx, step, outcome, commit=result.commit, files=list(files))

        await self._store.write(record)

    async def _branch_tip(self, worktree: Worktree) -> str:
        """Return the task's branch, or where it began: a run elsewhere without a change has no branch."""
        branch = f"refs/heads/{worktree.branch}"
        elsewhere = [step.detail for step in self._load_steps() if "worker" in step.detail]
        tips = [detail["tip"] for detail in elsewhere if detail.get("tip")]
        if tips[-1:] == [worktree.base_commit]:
            return await commit_of(self._context.place.home, branch) or worktree.base_commit
        return branch

    async def _commit(self, worktree: Worktree, subject: str, body: str = "") -> tuple[str, ...]:
        """Commit uncommitted work, so that it survives the worktree; return its files."""
        task = self._load_task()
        words = "\n".join((task.title, task.description, task.acceptance_criteria))
        root = Path(worktree.path)
        await add_unheld(root, words, brought_files(root))
        title = f"{self._task_id}: {' '.join(subject.split())[:80]}"
        parts = [title, fill(one_line(body), 76), f"Cockpit-Task: {self._task_id}"]
        files = await commit_all(
            Path(worktree.path), "\n\n".join(part for part in parts if part) + "\n"
        )
        if files:
            head = await commit_of(Path(worktree.path), "HEAD") or ""
            patch = {
                "last_commit": head[:10],
                "uncommitted_changes": False,
                "files_modified": list(files),
            }
            await self._store.write(lambda tx: wip.update(tx, self._task_id, patch, by=_BY))
        self._is_committed = True
        return files

    async def _end_step(self, step: Step, outcome: str, **detail: Any) -> None:
        await self._store.write(lambda tx: task_runs.end(tx, step, outcome, **detail))

    async def _give_up_step(self, step: Step, error: CockpitError) -> bool:
        """Count an error that the task did not cause; return whether it ends the step."""
        current = self._reload(step)
        count = int(current.detail.get("trouble", 0)) + 1
        if isinstance(error, _PERMANENT_ERRORS) or count >= MAX_STEP_ERRORS:
            await self._end_step(current, "trouble", summary=str(error), code=error.code)
            return True

        def record(tx: Tx) -> None:
            counted = task_runs.add_detail(tx, current, trouble=count)
            retry_delays.delay_step(tx, counted, count, str(error))

        await self._store.write(record)
        return False

    def _reload(self, step: Step) -> Step:
        return next(other for other in self._load_steps() if other.position == step.position)
