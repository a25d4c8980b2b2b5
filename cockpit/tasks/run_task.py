"""Doing a task: implement → test → (fix → test)* → spec review → quality review → merge → done.

Every step is kept before it is taken and when it has ended; a process that dies anywhere leaves a task
that the next one takes up there. What comes back is the handoff's status and summary, nothing else.
Source: design of work, "Doing a task"; seed 004, solutions 1, 6 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

from cockpit.access.run_program import ProgramMissing
from cockpit.act.command_line import CommandRefused
from cockpit.agents.agent_command import RunnerError
from cockpit.backlog import service
from cockpit.backlog.validation import BacklogInvalid
from cockpit.core.errors import CockpitError, Stale
from cockpit.decide.model import ModelError
from cockpit.learn.resume_line import one_line
from cockpit.loop.intake.task_types import load_task_types
from cockpit.store.backlog import tasks, wip
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import task_runs, worktrees
from cockpit.store.chains.task_runs import ENDS, Step
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action
from cockpit.tasks import role_usage
from cockpit.tasks.finish import finish_task, finished_result
from cockpit.tasks.git import WorktreeError, changed_files, commit_all, commit_of, discard_changes
from cockpit.tasks.merging import merge_task
from cockpit.tasks.model_outage import outage_reason
from cockpit.tasks.pause import SetAside, keep_worktree, raise_if_set_aside
from cockpit.tasks.prepare_worktree import prepare_worktree
from cockpit.tasks.role_session import RoleResult, TaskRuntime, run_role
from cockpit.tasks.run_tests import run_tests
from cockpit.tasks.steps import next_step
from cockpit.tasks.task_context import TaskContext, TaskOutcome
from cockpit.tasks.test_protection import restore_tests
from cockpit.tasks.verdict import parse_verdict
from cockpit.tasks.worktree import ensure_chain_worktree

MOST_TROUBLE = 3
"""How often a step may fail for a reason outside the task before the task is blocked by it."""

_BY = "engine"
_FOR_GOOD = (WorktreeError, CommandRefused, ProgramMissing, RunnerError)
_STANDS = {
    "implement": ("in_progress", "implementing", "implement it, with tests"),
    "test": ("in_progress", "testing", "run the tests"),
    "fix": ("in_progress", "fixing", "mend what made the tests fail"),
    "spec_review": ("review", "reviewing", "spec review: does it do what was asked?"),
    "quality_review": ("review", "reviewing", "quality review: is it sound?"),
    "merge": ("review", "merging", "merge it into the chain's branch"),
}
"""By step: the task's status, and the phase and next step of its work in progress."""
_FAILURE_OF = {"spec_review": "spec", "quality_review": "quality"}


async def run_task(desk: TaskContext, task_id: str) -> TaskOutcome:
    """Do the task, or go on with it where it was left; returns how it stands then.

    Cancelled, it stops within its step and is taken up there again. Raises ``NotFound`` for no such
    task, and the store's errors.
    """
    task_id = desk.store.read_now(lambda found: tasks.load(found, task_id)).task_id
    before, paid = desk.store.read_now(lambda found: role_usage.task_usage(found, task_id))
    stage = TaskRuntime(desk)
    try:
        ended = await _Doing(desk, stage, task_id).through()
    finally:
        await stage.close()
    tokens, cost = desk.store.read_now(lambda found: role_usage.task_usage(found, task_id))
    steps = desk.store.read_now(lambda found: task_runs.select_steps(found, task_id))
    played = [step.session_id for step in steps if step.session_id]
    share = desk.store.read_now(lambda found: role_usage.dropped_share(found, played))
    return TaskOutcome(
        task_id=task_id,
        status=ended.status,
        summary=ended.summary,
        tokens=tokens - before,
        dropped_share=share,
        cost_usd=cost - paid,
        merged_commit=ended.commit,
        reason=ended.reason,
    )


@dataclass(frozen=True, slots=True)
class _Ended:
    status: str
    summary: str
    commit: str | None = None
    reason: str = ""


class _Doing:
    """One call of :func:`run_task`."""

    def __init__(self, desk: TaskContext, stage: TaskRuntime, task_id: str) -> None:
        self._desk = desk
        self._stage = stage
        self._task_id = task_id
        self._run = 1
        self._begun = False
        self._standing: Worktree | None = None

    async def through(self) -> _Ended:
        """Step after step, to the end of the task or until it has to rest."""
        task = self._task()
        if task.status == "done":
            return _Ended("done", *finished_result(self._desk, task))
        if task.status == "archived":
            raise BacklogInvalid(
                f"{task.task_id} is archived; `cockpit tasks reopen` brings it back."
            )
        taken = self._desk.store.read_now(
            lambda found: task_runs.select_steps(found, self._task_id)
        )
        if taken:
            over = taken[-1].step in ENDS and not taken[-1].open
            self._run = taken[-1].run + over
        while True:
            steps = self._steps()
            red = bool(steps) and steps[-1].outcome == "failed"
            coming = next_step(
                steps,
                mends=red and self._mends(task),
                most_fixes=self._desk.work.max_test_retries,
            )
            if coming.step in ENDS:
                concluded = await finish_task(self._desk, self._task(), self._run, coming, steps)
                return _Ended(coming.step, *concluded, coming.reason)
            if self._desk.rests():
                if steps:
                    await self._desk.store.write(partial(self._point, name=coming.step))
                return _Ended("interrupted", f"stopped before: {coming.step}", reason="drained")
            try:
                step = await self._desk.store.write(partial(self._enter, name=coming.step))
            except SetAside as error:
                await self._desk.store.write(partial(keep_worktree, task_id=self._task_id))
                return _Ended("interrupted", str(error), reason=error.code)
            try:
                await self._take(step, steps)
            except Stale as error:
                return _Ended("interrupted", str(error), reason="elsewhere")
            except (CockpitError, ModelError) as error:
                if reason := outage_reason(error):
                    return _Ended("interrupted", str(error), reason=reason)
                if not await self._trouble(step, error):
                    return _Ended("interrupted", str(error), reason=error.code)

    def _mends(self, task: Task) -> bool:
        """Whether failing tests of such a task are given to a fixer, or are a finding."""
        types = load_task_types(self._desk.place.home, self._desk.settings.user_dir)
        kind = types.get(task.task_type)
        return self._desk.work.auto_fix and kind is not None and kind.auto_fix

    def _task(self) -> Task:
        return self._desk.store.read_now(lambda found: tasks.load(found, self._task_id))

    def _steps(self) -> list[Step]:
        found = self._desk.store.read_now(lambda seen: task_runs.select_steps(seen, self._task_id))
        return [step for step in found if step.run == self._run]

    def _enter(self, tx: Tx, name: str) -> Step:
        """The step, begun or taken up, with the task and its work in progress standing at it."""
        if self._begun:
            raise_if_set_aside(tx, self._task_id)
        where: dict[str, Any] = {"chain_id": self._desk.chain_id, "ordinal": self._desk.ordinal}
        known = task_runs.select_steps(tx.connection, self._task_id)
        if known and known[-1].run == self._run and known[-1].open:
            step = task_runs.resume(tx, known[-1], **where)
        else:
            step = task_runs.begin(tx, self._task_id, self._run, name, **where)
        status, phase, _ = _STANDS[name]
        service.set_status(tx, self._task_id, status, by=_BY)
        self._point(tx, name, phase=phase)
        self._begun = True
        return step

    def _point(self, tx: Tx, name: str, **more: str) -> None:
        """Say in the work in progress which step is to be taken next, and ``more``."""
        following = _STANDS[name][2]
        known_wip = tasks.load(tx.connection, self._task_id).wip or {}
        failing = str(known_wip.get("test_results", {}).get("failing_test", ""))
        if name == "fix" and failing:
            following = f"fix failing test {failing}"
        wip.update(tx, self._task_id, {**more, "next_step": following}, by=_BY)

    async def _take(self, step: Step, steps: list[Step]) -> None:
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

    async def _tree(self) -> Worktree:
        if self._standing is None:
            self._standing = await prepare_worktree(self._desk, self._task_id)
        return self._standing

    async def _play(self, step: Step, steps: list[Step], tree: Worktree) -> RoleResult:
        return await run_role(self._desk, self._stage, tree, self._task(), step, steps)

    async def _implement(self, step: Step, steps: list[Step]) -> None:
        tree = await self._tree()
        played = await self._play(step, steps, tree)
        finished = played.status == "done"
        what = self._task().title if finished else "what the implementer left uncommitted"
        left = await self._keep(tree, what, played.summary if finished else "")
        outcome = "done" if finished else "blocked"
        tip = await commit_of(Path(tree.path), "HEAD")
        await self._close(
            step, outcome, summary=played.summary, committed_for_it=list(left), tip=tip
        )

    async def _test(self, step: Step) -> None:
        tree = await self._tree()
        runtime = await self._stage.runtime(tree)
        desk = self._desk
        await self._keep(tree, "what stood uncommitted before the tests")
        ran = await run_tests(
            runtime.engine.ground, desk.place.home, desk.work.test_command, desk.approve
        )
        await discard_changes(Path(tree.path))

        def ended(tx: Tx) -> None:
            if ran.results:
                wip.update(tx, self._task_id, {"test_results": dict(ran.results)}, by=_BY)
            task_runs.end(
                tx,
                step,
                ran.status,
                summary=ran.summary,
                argv=list(ran.argv),
                output=ran.output if ran.status == "failed" else "",
            )

        await desk.store.write(ended)

    async def _fix(self, step: Step, steps: list[Step]) -> None:
        tree = await self._tree()
        root = Path(tree.path)
        before = str(step.detail.get("before", "")) or await commit_of(root, "HEAD") or ""
        noted = await self._desk.store.write(
            lambda tx: task_runs.add_detail(tx, step, before=before)
        )
        played = await self._play(noted, steps, tree)
        step = next(one for one in self._steps() if one.position == step.position)
        restored = await restore_tests(root, before)
        await self._keep(tree, f"mend the failing tests, try {step.attempt}", played.summary)
        if restored:
            told = {"task_id": self._task_id, "session_id": step.session_id, "role": "fixer"}
            await self._desk.store.write(
                lambda tx: tx.journal(
                    Action.ROLE_RESTORED,
                    session_id=step.session_id or "",
                    detail={**told, "paths": list(restored)},
                )
            )
        # One that used up its waves may have mended it all the same: the tests say.
        outcome = "blocked" if played.status == "blocked" else "done"
        tip = await commit_of(root, "HEAD")
        await self._close(step, outcome, summary=played.summary, restored=list(restored), tip=tip)

    async def _review(self, step: Step, steps: list[Step]) -> None:
        played = await self._play(step, steps, await self._tree())
        verdict = parse_verdict(played.summary)
        status = (
            "BLOCKED" if played.status == "blocked" and verdict.status == "PASS" else verdict.status
        )
        findings = verdict.findings or f"{step.step.replace('_', ' ')}: {status}"
        kind = _FAILURE_OF[step.step]

        def ended(tx: Tx) -> None:
            task_runs.end(tx, step, status, summary=findings, read=verdict.read)
            if status == "FAIL":
                service.record_failure(tx, self._task_id, kind, findings[:4_000], by=_BY)
                service.set_needs_rework(tx, self._task_id, True, by=_BY)

        await self._desk.store.write(ended)

    async def _merge(self, step: Step) -> None:
        desk, task = self._desk, self._task()
        chain = await ensure_chain_worktree(
            desk.store, desk.place, desk.chain_branch, chain_id=desk.chain_id
        )
        tree = desk.store.read_now(lambda found: worktrees.load(found, self._task_id))
        files = await changed_files(desk.place.home, tree.base_commit, f"refs/heads/{tree.branch}")
        subject = f"Merge {task.task_id}: {' '.join(task.title.split())[:80]}"
        trailers = f"Cockpit-Task: {task.task_id}" + (
            f"\nCockpit-Chain: {desk.chain_id}" if desk.chain_id else ""
        )
        merged = await merge_task(desk.place, chain, tree, f"{subject}\n\n{trailers}\n")

        def ended(tx: Tx) -> None:
            if merged.conflicts:
                listed = ", ".join(merged.conflicts[:10])
                worktrees.set_status(tx, tree.name, "conflict", conflicts=merged.conflicts)
                words = (
                    f"{tree.branch} cannot be merged into {chain.branch}: {listed} changed in both. Its "
                    f"work is kept in {tree.path}; merge {chain.branch} there by hand, then unblock the task."
                )
                task_runs.end(tx, step, "conflict", summary=words, conflicts=list(merged.conflicts))
                return
            worktrees.set_status(tx, tree.name, "merged", merged_commit=merged.commit)
            outcome = "merged" if merged.commit else "nothing"
            task_runs.end(tx, step, outcome, commit=merged.commit, files=list(files))

        await desk.store.write(ended)

    async def _keep(self, tree: Worktree, what: str, why: str = "") -> tuple[str, ...]:
        """Commit what is not, so that no work hangs on a tree alone."""
        subject = f"{self._task_id}: {' '.join(what.split())[:80]}"
        told = [subject, fill(one_line(why), 76), f"Cockpit-Task: {self._task_id}"]
        made = await commit_all(Path(tree.path), "\n\n".join(filter(None, told)) + "\n")
        if made:
            head = await commit_of(Path(tree.path), "HEAD") or ""
            patch = {
                "last_commit": head[:10],
                "uncommitted_changes": False,
                "files_modified": list(made),
            }
            await self._desk.store.write(lambda tx: wip.update(tx, self._task_id, patch, by=_BY))
        return made

    async def _close(self, step: Step, outcome: str, **detail: Any) -> None:
        await self._desk.store.write(lambda tx: task_runs.end(tx, step, outcome, **detail))

    async def _trouble(self, step: Step, error: CockpitError | ModelError) -> bool:
        """Whether the step is given up for what is not the task's fault; it is counted otherwise."""
        now = next(one for one in self._steps() if one.position == step.position)
        count = int(now.detail.get("trouble", 0)) + 1
        if isinstance(error, _FOR_GOOD) or count >= MOST_TROUBLE:
            await self._close(now, "trouble", summary=str(error), code=error.code)
            return True
        await self._desk.store.write(lambda tx: task_runs.add_detail(tx, now, trouble=count))
        return False
