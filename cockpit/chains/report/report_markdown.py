"""A chain's report as Markdown: the same bytes for the same account, and nothing in it that steers a
terminal or a reader. Pure. Source: seed 004, solution 7 ("Chain Reporting").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.core.secrets import mask
from cockpit.loop.intake.review_template import visible
from cockpit.store.chains.chains import Chain, Progress
from cockpit.store.chains.workers import END_REASONS, Worker

MOST_DETAILS = 8_000
"""Characters of a failed task's details that stand in the report; all of them are kept."""

_MARKUP = re.compile(r"([\\`*\[\]<>|&!#~])")
_DONE, _FAILED, _BLOCKED = "done", "failed", "blocked"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """How one task ended in a chain. ``standing``: ``done``, ``failed`` (its work is not good enough),
    ``blocked`` (it cannot go on) or ``under way``. ``summary`` is its handoff's or its blocker;
    ``details`` all that is known of a failure; ``decisions`` those of its work in progress; ``branch``
    and ``path`` are where its work is kept, empty once it is merged."""

    task_id: str
    title: str
    standing: str
    summary: str
    decisions: tuple[str, ...] = ()
    details: str = ""
    next_step: str = ""
    commit: str = ""
    branch: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A session of the chain, the tasks done and put down in it, and how long it ran (seconds)."""

    session: Worker
    tasks_done: int
    interrupted: int
    wall_s: float


@dataclass(frozen=True, slots=True)
class ChainReport:
    """Everything that a report says. ``tokens``, ``cost_usd`` and ``wall_s`` (seconds that sessions
    ran) are the whole chain's; ``merged`` tells whether its branch holds any work."""

    chain: Chain
    progress: Progress
    tasks: tuple[TaskReport, ...]
    sessions: tuple[WorkerReport, ...]
    tokens: int
    cost_usd: float
    wall_s: float
    merged: bool

    def of(self, standing: str) -> list[TaskReport]:
        """The tasks that stand so."""
        return [one for one in self.tasks if one.standing == standing]


def render_report(account: ChainReport) -> str:
    """The report's text."""
    parts = [
        _head(account),
        _section("Tasks completed", [_completed(one) for one in account.of(_DONE)]),
        _section("Tasks failed", [_kept(one) for one in account.of(_FAILED)], "\n\n"),
        _section("Tasks blocked", [_kept(one) for one in account.of(_BLOCKED)], "\n\n"),
        _section("Under way", [_under_way(one) for one in account.of("under way")]),
        _section("Decisions made", _decisions(account)),
        _section("Next steps", _next_steps(account)),
        _section("Sessions", [_sessions(account.sessions)] if account.sessions else []),
    ]
    return mask("\n\n".join(part for part in parts if part)) + "\n"


def plain(text: str, most: int = 400) -> str:
    """Words on one line, at most ``most`` characters, in which Markdown finds nothing to do."""
    shown = _seen(" ".join(text.split()))
    shown = shown if len(shown) <= most else f"{shown[: most - 1]}…"
    return _MARKUP.sub(r"\\\1", shown)


def _head(account: ChainReport) -> str:
    chain, left = account.chain, account.progress
    decided = sum(len(one.decisions) for one in account.tasks)
    batches = sum(one.session.batches for one in account.sessions)
    ended = f"{chain.status}: {plain(chain.reason)}" if chain.reason else chain.status
    begun = f"{_code(chain.base_branch)} at {_code(chain.base_commit[:10])}"
    if not chain.base_branch:
        begun = _code(chain.base_commit[:10])
    lines = [
        "# Session Chain Report",
        "",
        f"Chain {chain.chain_id}, {chain.scope}, begun from {begun}: {ended}.",
        "",
        f"- Tasks completed: {len(account.of(_DONE))}",
        f"- Tasks failed: {len(account.of(_FAILED))}" + _preserved(account),
        f"- Tasks blocked: {len(account.of(_BLOCKED))}",
        f"- Tasks under way: {len(account.of('under way'))}",
        f"- Tasks left: {left.ready} ready, "
        f"{left.total - left.done - left.blocked - left.under_way - left.ready} waiting for others",
        f"- Decisions made: {decided}",
        f"- Sessions: {len(account.sessions)}, batches: {batches}",
        f"- Tokens: {account.tokens:,}, cost: ${account.cost_usd:.2f}",
        f"- Time: {_span(account.wall_s)} in sessions; begun {_moment(chain.created_at)}, "
        f"ended {_moment(chain.ended_at)}",
    ]
    return "\n".join(lines)


def _preserved(account: ChainReport) -> str:
    return " (details preserved, not compacted)" if account.of(_FAILED) else ""


def _completed(task: TaskReport) -> str:
    commit = f" ({_code(task.commit[:10])})" if task.commit else ""
    return f"- **{task.task_id}** {plain(task.title)}{commit}: {plain(task.summary)}"


def _under_way(task: TaskReport) -> str:
    return f"- **{task.task_id}** {plain(task.title)}: {plain(task.summary)}"


def _kept(task: TaskReport) -> str:
    parts = [f"### {task.task_id} {plain(task.title)}", plain(task.summary, 2_000)]
    if task.details:
        parts.append(_fenced(task.details))
        if len(task.details) > MOST_DETAILS:
            parts.append(f"All of it: `cockpit handoff show {task.task_id} --details`")
    if task.branch:
        where = f" in {_code(task.path)}" if task.path else ""
        parts.append(f"Its work is kept on {_code(task.branch)}{where}.")
    return "\n\n".join(parts)


def _decisions(account: ChainReport) -> list[str]:
    return [
        f"- {task.task_id}: {plain(decision)}"
        for task in account.tasks
        for decision in task.decisions
    ]


def _next_steps(account: ChainReport) -> list[str]:
    chain, steps = account.chain, []
    if account.merged:
        steps.append(f"- Take what is done: `git merge {chain.branch}`")
    for task in (*account.of(_FAILED), *account.of(_BLOCKED)):
        step = plain(task.next_step or task.summary, 200)
        steps.append(f"- {task.task_id}: {step} Then `cockpit tasks unblock {task.task_id}`.")
    steps += [
        f"- {task.task_id}: {plain(task.next_step or 'go on with it', 200)}"
        for task in account.of("under way")
    ]
    left = account.progress
    if left.ready or account.of("under way"):
        steps.append(f"- Go on with what is left: `cockpit work --continue` ({left.ready} ready)")
    return steps


def _sessions(sessions: Sequence[WorkerReport]) -> str:
    lines = [
        "| session | ended | batches | tasks done | interrupted | tokens | left out | cost | time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in sessions:
        known = one.session
        reason = END_REASONS.get(known.reason, plain(known.reason, 120))
        why = f"{known.status}, {reason}" if reason else known.status
        cells = (
            f"s{known.ordinal}",
            why,
            f"{known.batches}",
            f"{one.tasks_done}",
            f"{one.interrupted}",
            f"{known.tokens:,} of {known.token_limit:,}",
            f"{round(100 * known.dropped_share)} %",
            f"${known.cost_usd:.2f}",
            _span(one.wall_s),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _section(title: str, entries: Sequence[str], between: str = "\n") -> str:
    return f"## {title}\n\n{between.join(entries)}" if entries else ""


def _fenced(text: str) -> str:
    # Left whole lines: what a cut tore is not what was said.
    shown = _seen(text.strip())
    if len(shown) > MOST_DETAILS:
        shown = shown[:MOST_DETAILS].rpartition("\n")[0] or shown[:MOST_DETAILS]
    runs = [len(run) for run in re.findall(r"`+", shown)]
    fence = "`" * max(3, *(run + 1 for run in runs), 3)
    return f"{fence}text\n{shown}\n{fence}"


def _code(text: str) -> str:
    return f"`{_seen(' '.join(text.split())).replace('`', chr(39))}`"


def _seen(text: str) -> str:
    """``text`` with controls spelled out and what nobody can see left out."""
    shown = visible(mask(text))
    if shown.isascii():
        return shown
    return "".join(letter for letter in shown if unicodedata.category(letter) != "Cf")


def _span(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _moment(stored: str | None) -> str:
    return f"{stored[:10]} {stored[11:16]} UTC" if stored else "not yet"
