"""A chain's report as Markdown.

The same report always gives the same bytes. Text of models and users is masked and escaped, so it can
control neither a terminal nor a Markdown reader. See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cockpit.chains.decide_next_worker import ChainUsage, worker_seconds
from cockpit.chains.report.chain_document import WorkerReport
from cockpit.chains.report.measure import format_measure
from cockpit.core.fenced_text import make_visible
from cockpit.core.secrets import mask
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.end_reasons import END_REASONS
from cockpit.store.journal.details.chains import Progress
from cockpit.tasks.agent_changes.moved_branch import LostTask

MAX_DETAILS = 8_000
"""Characters of a blocked task's details in the report; the store keeps all of them."""

DONE: Final = "done"
BLOCKED: Final = "blocked"
IN_PROGRESS: Final = "in progress"
"""The status of a task in a report."""

_MARKUP = re.compile(r"([\\`*\[\]<>|&!#~])")


class TaskReport(Struct, frozen=True):
    """One task of a chain."""

    task_id: str
    title: str
    status: str
    """``done``, ``blocked`` or ``in progress``."""
    summary: str
    """The handoff's summary, or why the task is blocked."""
    decisions: tuple[str, ...] = ()
    details: str = ""
    """The handoff's details, of a task whose work did not pass."""
    next_step: str = ""
    commit: str = ""
    """The merge commit of a done task."""
    branch: str = ""
    """The branch that holds work that is not merged."""
    path: str = ""
    """The worktree of that branch."""


class ChainReport(Struct, frozen=True):
    """Everything that a report contains."""

    chain: Chain
    progress: Progress
    tasks: tuple[TaskReport, ...]
    workers: tuple[WorkerReport, ...]
    usage: ChainUsage
    merged: bool
    """Whether work was merged into the chain's branch."""
    lost: tuple[LostTask, ...] = ()
    """Tasks that were merged and are no longer on the branch."""
    checks: tuple[str, ...] = ()
    """What the repository asks of commits that cockpit's do not do."""

    def with_status(self, status: str) -> list[TaskReport]:
        """Return the tasks of that status."""
        return [task for task in self.tasks if task.status == status]


def render_report(report: ChainReport) -> str:
    """Return the report as Markdown."""
    parts = [
        _head(report),
        _section("Tasks completed", [_line(task) for task in report.with_status(DONE)]),
        _section("Tasks blocked", [_blocked(task) for task in report.with_status(BLOCKED)], "\n\n"),
        _section("Tasks in progress", [_line(task) for task in report.with_status(IN_PROGRESS)]),
        _section(
            "No longer on the branch", [f"- {plain_code(e.describe())}." for e in report.lost]
        ),
        _section("Commits", [f"- {plain_code(each)}" for each in report.checks]),
        _section("Decisions made", _decisions(report)),
        _section("Next steps", _next_steps(report)),
        _section("Workers", [_worker_table(report.workers)] if report.workers else []),
    ]
    return mask("\n\n".join(part for part in parts if part)) + "\n"


def plain(text: str, most: int = 400) -> str:
    """Return ``text`` on one line of at most ``most`` characters, with Markdown's signs escaped."""
    shown = _printable(" ".join(text.split()))
    return _escape(shown if len(shown) <= most else f"{shown[: most - 1]}…")


def _escape(text: str) -> str:
    return _MARKUP.sub(r"\\\1", _printable(text))


def plain_code(text: str) -> str:
    """Return ``text`` as :func:`plain` does, and what stands in backticks as code."""
    parts = " ".join(text.split()).split("`")
    shown = (_code(part) if at % 2 else _escape(part) for at, part in enumerate(parts))
    return "".join(shown)


def _head(report: ChainReport) -> str:
    chain, progress, usage = report.chain, report.progress, report.usage
    detailed = sum(bool(task.details) for task in report.tasks)
    details = f" ({detailed} with details, which are kept)" if detailed else ""
    decisions = sum(len(task.decisions) for task in report.tasks)
    batches = sum(entry.worker.batches for entry in report.workers)
    ended = f"{chain.status}: {plain(chain.reason)}" if chain.reason else chain.status
    start = f"{_code(chain.base_branch)} at {_code(chain.base_commit[:10])}"
    if not chain.base_branch:
        start = _code(chain.base_commit[:10])
    waiting = progress.total - progress.done - progress.blocked
    waiting -= progress.under_way + progress.ready
    lines = [
        "# Chain Report",
        "",
        f"Chain {chain.chain_id}, {chain.scope}, started from {start}: {ended}.",
        "",
        f"- Tasks completed: {len(report.with_status(DONE))}",
        f"- Tasks blocked: {len(report.with_status(BLOCKED))}{details}",
        f"- Tasks in progress: {len(report.with_status(IN_PROGRESS))}",
        f"- Tasks left: {progress.ready} ready, {waiting} waiting for other tasks",
        f"- Decisions made: {decisions}",
        f"- Workers: {len(report.workers)}, batches: {batches}",
        f"- Tokens: {usage.tokens:,}, cost: ${usage.cost_usd:.2f}",
        f"- Time: {format_measure(usage.wall_s, 'time')} in workers; started {_time(chain.created_at)}, "
        f"ended {_time(chain.ended_at)}",
    ]
    return "\n".join(lines)


def _line(task: TaskReport) -> str:
    commit = f" ({_code(task.commit[:10])})" if task.commit else ""
    return f"- **{task.task_id}** {plain(task.title)}{commit}: {plain(task.summary)}"


def _blocked(task: TaskReport) -> str:
    parts = [f"### {task.task_id} {plain(task.title)}", plain(task.summary, 2_000)]
    if task.details:
        parts.append(_fenced(task.details))
        if len(task.details) > MAX_DETAILS:
            parts.append(f"All details: `cockpit tasks handoff {task.task_id}`")
    if task.branch:
        path = f" in {_code(task.path)}" if task.path else ""
        parts.append(f"Its work is kept on {_code(task.branch)}{path}.")
    return "\n\n".join(parts)


def _decisions(report: ChainReport) -> list[str]:
    return [
        f"- {task.task_id}: {plain(decision)}"
        for task in report.tasks
        for decision in task.decisions
    ]


def _next_steps(report: ChainReport) -> list[str]:
    chain, steps = report.chain, []
    if report.merged:
        steps.append(f"- Merge the completed tasks: `git merge {chain.branch}`")
    for task in report.with_status(BLOCKED):
        step = plain(task.next_step or task.summary, 200)
        steps.append(
            f"- {task.task_id}: {step} Then `cockpit tasks move {task.task_id} unblocked`."
        )
    steps += [
        f"- {task.task_id}: {plain(task.next_step or 'resume it', 200)}"
        for task in report.with_status(IN_PROGRESS)
    ]
    progress = report.progress
    if progress.ready or report.with_status(IN_PROGRESS):
        steps.append(f"- Resume the chain: `cockpit work --continue` ({progress.ready} ready)")
    return steps


def _worker_table(entries: Sequence[WorkerReport]) -> str:
    lines = [
        "| worker | ended | batches | tasks done | interrupted | tokens | left out | cost | time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for entry in entries:
        worker = entry.worker
        reason = END_REASONS.get(worker.reason, plain(worker.reason, 120))
        ended = f"{worker.status}, {reason}" if reason else worker.status
        cells = (
            f"s{worker.ordinal}",
            ended,
            f"{worker.batches}",
            f"{entry.tasks_done}",
            f"{entry.interrupted}",
            f"{worker.tokens:,} of {worker.token_limit:,}",
            f"{round(100 * worker.dropped_share)} %",
            f"${worker.cost_usd:.2f}",
            format_measure(worker_seconds(worker), "time"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _section(title: str, entries: Sequence[str], between: str = "\n") -> str:
    return f"## {title}\n\n{between.join(entries)}" if entries else ""


def _fenced(text: str) -> str:
    # Cut at a line's end: half a line may say the opposite of the whole one.
    shown = _printable(text.strip())
    if len(shown) > MAX_DETAILS:
        shown = shown[:MAX_DETAILS].rpartition("\n")[0] or shown[:MAX_DETAILS]
    runs = [len(run) for run in re.findall(r"`+", shown)]
    fence = "`" * max(3, *(run + 1 for run in runs), 3)
    return f"{fence}text\n{shown}\n{fence}"


def _code(text: str) -> str:
    return f"`{_printable(' '.join(text.split())).replace('`', chr(39))}`"


def _printable(text: str) -> str:
    """Return ``text`` with control characters spelled out and invisible characters removed."""
    shown = make_visible(mask(text))
    if shown.isascii():
        return shown
    return "".join(letter for letter in shown if unicodedata.category(letter) != "Cf")


def _time(stored: str | None) -> str:
    return f"{stored[:10]} {stored[11:16]} UTC" if stored else "not yet"
