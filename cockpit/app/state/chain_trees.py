"""Chains as the work pane shows them: trees of workers and tasks that the user opens and folds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.app.state import kanban
from cockpit.app.state.chains import ENDED_SHOWN, Chains, Retry, Run, ShownChain, ShownWorker
from cockpit.app.state.work import SETTLED, TaskState, Work
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.chains.end_reasons import END_REASONS
from cockpit.store.chains.retry_delays import describe_retry, seconds_until
from cockpit.store.journal.details.chains import Progress
from widgets.text.numerals import money, tokens
from widgets.work.chain_tree_views import (
    ChainRowView,
    ChainSessionView,
    ChainTaskView,
    ChainView,
    MarkView,
)
from widgets.work.task_card_views import TaskLineView

CLOSED, LIVE, WHOLE = 0, 1, 2
"""How far a tree is open: only its head; its running tasks; all of its tasks."""

_MARKS = 4
_LAST_DONE = 2
_ROWS_MOST = 600
_FULL = 0.8
_STEPS = {
    "implement": "implementing",
    "test": "testing",
    "fix": "fixing",
    "spec_review": "spec review",
    "quality_review": "quality review",
    "merge": "merging",
}
_SAYS_NEXT = ("implement", "test", "fix")


class Trees(Struct):
    """How far the user opened each tree, by chain; other trees are open while their chain runs."""

    levels: dict[str, int] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)
    """Open trees whose tasks have to be read first."""

    def level(self, chain: ShownChain) -> int:
        """How far the chain's tree is open."""
        level = self.levels.get(chain.chain_id)
        if level is None:
            return LIVE if chain.live else CLOSED
        return WHOLE if level == LIVE and not chain.live else level

    def turn(self, chain: ShownChain, step: int) -> bool:
        """Open (1) or fold (-1) the tree by a step; False when it is as far as it goes."""
        steps = (CLOSED, LIVE, WHOLE) if chain.live else (CLOSED, WHOLE)
        place = steps.index(self.level(chain)) + step
        if not 0 <= place < len(steps):
            return False
        self.levels[chain.chain_id] = steps[place]
        return True

    def rows(
        self,
        chains: Chains,
        work: Work,
        *,
        followed: str = "",
        waiting: Mapping[str, str] | None = None,
        now: datetime | None = None,
    ) -> tuple[ChainRowView, ...]:
        """The lines of all trees. ``waiting`` are sessions with a pending proposal, and its title; without
        ``now`` no line says how long something waits."""
        proposals = waiting or {}
        rows: list[ChainRowView] = []
        for chain in chains.newest(ENDED_SHOWN):
            level = self.level(chain)
            rows.append(self._head(chain, work, level, now))
            if level != CLOSED and not chain.has_runs:
                self.wanted.add(chain.chain_id)
            if level != CLOSED and len(rows) < _ROWS_MOST:
                drawn = _Tree(chain, work, followed, proposals, now, whole=level == WHOLE).rows()
                rows += list(drawn)[: _ROWS_MOST - len(rows)]
        return tuple(rows)

    def _head(self, chain: ShownChain, work: Work, level: int, now: datetime | None) -> ChainView:
        row, progress = chain.row, chain.progress
        is_unfinished = chain.status == "completed" and progress.done < progress.total
        look = state_sign("chain", "unfinished" if is_unfinished else chain.status)
        sessions = list(chain.workers.values())
        words = [f"{progress.ready:,} ready"] if progress.ready else []
        words += [f"{progress.blocked:,} blocked"] if progress.blocked else []
        words += [f"no sandbox for {chain.unconfined}"] if chain.live and chain.unconfined else []
        costs = [each.cost_usd for each in sessions if each.cost_usd is not None]
        state = row.reason or chain.status if chain.status in ("failed", "limited") else ""
        if chain.status == "running":
            state = retry_text(chain.retry, now)
        elif chain.status == "draining":
            state = "stopping" if row.stop_now else "draining"
        elif chain.status == "stopped":
            from cockpit.tasks.outage import is_passing  # here: it loads what runs tasks

            state = row.reason if is_passing(row.reason) else "stopped"
        elif is_unfinished:
            state, words = left_undone(progress), []
        return ChainView(
            key=chain.chain_id,
            sign=look.sign,
            tone=look.tone,
            name=chain.chain_id,
            scope=row.scope,
            about=_about(chain, work),
            earlier=max(0, len(sessions) - _MARKS),
            marks=tuple(_mark(each) for each in sessions[-_MARKS:]),
            done=progress.done,
            total=progress.total,
            text=" · ".join(words),
            state=state,
            state_tone="bad" if chain.status == "failed" else "warn",
            tokens=_tokens(sum(each.tokens for each in sessions)),
            cost=_money(sum(costs) if costs else None),
            folded=level == CLOSED and bool(sessions),
        )


def retry_text(retry: Retry | None, now: datetime | None) -> str:
    """Say when something that broke off starts again; empty once its time has come."""
    if retry is None or now is None:
        return ""
    try:
        left = seconds_until(retry.starts_at, now)
    except ValueError:
        return ""  # no time: a row of any shape is drawn
    return describe_retry(left, retry.attempt) if left > 0 else ""


def left_undone(progress: Progress) -> str:
    """Say why a chain that ended by itself left tasks undone."""
    others = progress.total - progress.done
    others -= progress.blocked + progress.ready + progress.under_way
    counts = (
        (progress.blocked, "blocked"),
        (progress.under_way, "in progress"),
        (progress.ready, "ready"),
        (others, "waiting for other tasks"),
    )
    return ", ".join(f"{count:,} {why}" for count, why in counts if count > 0)


def _about(chain: ShownChain, work: Work) -> str:
    scope = work.epics.get(chain.row.scope_id) or work.stories.get(chain.row.scope_id)
    return scope.title if scope is not None else ""


def _mark(worker: ShownWorker) -> MarkView:
    look = state_sign("worker", worker.status)
    return MarkView(look.sign, look.tone, f"s{worker.row.ordinal}")


def _tokens(used: int) -> str:
    return tokens(used) if used > 0 else ""


def _money(cost_usd: float | None) -> str:
    return money(cost_usd) if cost_usd else ""


class _Tree:
    """The lines below the head of one chain."""

    def __init__(
        self,
        chain: ShownChain,
        work: Work,
        followed: str,
        waiting: Mapping[str, str],
        now: datetime | None,
        *,
        whole: bool,
    ) -> None:
        self._chain = chain
        self._work = work
        self._followed = followed
        self._waiting = waiting
        self._now = now
        self._whole = whole

    def rows(self) -> Iterator[ChainRowView]:
        chain = self._chain
        if self._whole:
            for each in chain.workers.values():
                yield self._worker(each)
                yield from self._tasks(chain.runs[task_id] for task_id in each.tasks)
            return
        working = chain.working
        if working is not None:
            yield self._worker(working)
        yield from self._tasks(self._at_work())

    def _at_work(self) -> list[Run]:
        """Return the running tasks of the chain, its blocked ones, and those done last."""
        runs = self._chain.runs.values()
        under_way = [each for each in runs if not each.ended]
        stuck = [each for each in runs if each.ended and self._stuck(each)]
        done = sorted((each for each in runs if each.ended and each.step == "done"),
                      key=lambda each: -each.moment)[:_LAST_DONE]  # fmt: skip
        return [*under_way, *stuck, *done]

    def _stuck(self, run: Run) -> bool:
        task = self._work.tasks.get(run.task_id)
        return run.step == "blocked" and (task is None or task.status not in SETTLED)

    def _worker(self, worker: ShownWorker) -> ChainSessionView:
        look = state_sign("worker", worker.status)
        count = len(worker.tasks)
        held = pluralize(count, "task")
        if worker.live:
            state = "next batch"
            if worker.size:
                state = f"batch {worker.batch} · {pluralize(worker.size, 'task')}"
        elif worker.status == "crashed":
            state = f"{held} · died: {worker.row.reason}" if worker.row.reason else f"{held} · died"
        else:
            reason = worker.row.reason
            state = f"{held} · {END_REASONS.get(reason, reason or worker.status)}"
        share = worker.tokens / worker.row.token_limit if worker.row.token_limit > 0 else 0.0
        pressure = ""
        if worker.row.token_limit > 0:
            pressure = f"{tokens(worker.tokens)} of {tokens(worker.row.token_limit)} tok"
        if worker.row.dropped_share > 0:
            pressure += f" · {worker.row.dropped_share:.0%} left out"
        return ChainSessionView(
            key=f"{self._chain.chain_id}/s{worker.row.ordinal}",
            sign=look.sign,
            tone=look.tone,
            name=f"s{worker.row.ordinal}",
            state=state,
            pressure=pressure,
            tokens="" if pressure else _tokens(worker.tokens),
            cost=_money(worker.cost_usd),
            full=worker.live and share >= _FULL,
        )

    def _tasks(self, runs: Iterable[Run]) -> Iterator[ChainTaskView]:
        for run in runs:
            task = self._work.tasks.get(run.task_id) or TaskState(run.task_id)
            yield ChainTaskView(
                key=f"{self._chain.chain_id}/{run.task_id}",
                line=self._line(run, task),
                tokens=_tokens(run.tokens),
                cost=_money(run.cost_usd),
                current=bool(run.session_id) and run.session_id == self._followed,
            )

    def _line(self, run: Run, task: TaskState) -> TaskLineView:
        in_backlog = task.task_id in self._work.tasks
        drawn = kanban.task_line(task)
        if run.ended:
            status = "done" if run.step == "done" else "blocked"
            if in_backlog and (task.status == status or task.status in SETTLED):
                return drawn
            if in_backlog and status == "blocked":
                look = state_sign("task", "todo")
                return replace(drawn, sign=look.sign, tone=look.tone, phase="unblocked", text="")
            look = state_sign("task", status)
            return replace(
                drawn, sign=look.sign, tone=look.tone, phase=status, tests=None, text=run.summary
            )
        proposal = self._waiting.get(run.session_id)
        if proposal is not None:
            look = state_sign("proposal", "pending")
            return replace(drawn, sign=look.sign, tone=look.tone, phase=look.word, text=proposal)
        phase = _STEPS.get(run.step, run.step)
        if run.attempt > 1:
            phase += f" {run.attempt}"
        if retry := retry_text(run.retry, self._now):
            look = state_sign("task", "later")
            return replace(drawn, sign=look.sign, tone="warn", phase=phase, text=retry)
        working = self._chain.working
        if working is None or working.row.ordinal != run.ordinal:
            look = state_sign("task", "left")
            return replace(drawn, sign=look.sign, tone=look.tone, phase=phase, text=kanban.LEFT)
        says = f"next: {task.next_step}" if run.step in _SAYS_NEXT and task.next_step else ""
        look = state_sign("task", "in_progress")
        return replace(
            drawn, sign=look.sign, tone=look.tone, phase=phase, tests=task.tests, text=says
        )
