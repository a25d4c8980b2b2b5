"""``cockpit chain``: list, show, watch and stop chains, and take their branches."""

from __future__ import annotations

import asyncio
import difflib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.chains.decide_next_worker import chain_usage
from cockpit.chains.progress_lines import describe_status
from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.work.chains import COLLECTION, Document, choose_chain
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.chains.worktrees import worktrees
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_project_runtime,
    open_store,
    read_store,
)
from cockpit.commands.terminal import show, show_json
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.backlog.backlog_ids import TASK, read_id
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.end_reasons import END_REASONS
from cockpit.store.chains.workers import Worker
from cockpit.store.sessions.proposals import Proposal
from cockpit.tasks.outage import LIMIT

if TYPE_CHECKING:
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.db.transaction import Tx
    from cockpit.tasks.agent_changes.branch_change import BranchChange
    from cockpit.tasks.agent_changes.moved_branch import LostTask

_CHAIN = click.argument("chain_id", metavar="[CHAIN]", required=False)
_BRANCH = click.argument("branch", metavar="[CHAIN|TASK]", required=False)


def _describe(row: Document, report: bool) -> str:
    chosen = _load(row)
    if report:
        return asyncio.run(_find_report(find_project(), chosen)).read_text(encoding="utf-8")
    lines = [read_store(lambda connection: _chain_text(connection, chosen))]
    return "\n".join([*lines, *(f"  ! {each.describe()}." for each in _find_lost(chosen))])


def _document(row: Document, report: bool) -> Document:
    chosen = _load(row)
    if report:
        path = asyncio.run(_find_report(find_project(), chosen))
        return {"text": path.read_text(encoding="utf-8"), "path": str(path)}
    return {**row, "no_longer_on_branch": [each.task_id for each in _find_lost(chosen)]}


def _load(row: Document) -> Chain:
    return read_store(lambda connection: chains.load(connection, row["chain_id"]))


def _find_lost(chosen: Chain) -> Sequence[LostTask]:
    from cockpit.tasks.agent_changes.moved_branch import find_lost_tasks

    place = find_project()
    with open_store(place) as store:
        return asyncio.run(find_lost_tasks(store, place, chosen))


chain = make_group(
    COLLECTION,
    describe=_describe,
    document=_document,
    details=[
        click.option(
            "--report",
            is_flag=True,
            help="Print the report of one instead; one that was not written yet is written now.",
        )
    ],
)


@chain.command("watch", epilog=examples("cockpit chain watch", "cockpit chain watch ch-3"))
@_CHAIN
def watch_chain(chain_id: str | None) -> None:
    """Print the events of a chain as they happen.

    It ends with the chain. Ctrl+C ends the watching and leaves the chain running.
    """
    asyncio.run(_watch(chain_id))


@chain.command("stop", epilog=examples("cockpit chain stop", "cockpit chain stop ch-3 --now"))
@_CHAIN
@click.option("--now", is_flag=True, help="Stop at once, without finishing steps in progress.")
def stop_chain(chain_id: str | None, now: bool) -> None:
    """Stop a chain after its steps in progress.

    A second call stops it at once. Nothing is lost; `cockpit work --continue` resumes the chain.
    """
    from cockpit.chains.report.chain_report import write_report_if_set

    place = find_project()
    chosen_id = read_store(lambda connection: choose_chain(connection, chain_id)).chain_id
    with open_store(place) as store:
        stored = store.write_now(lambda tx: _request_stop(tx, chosen_id, now))
        if stored.status not in chains.OPEN:
            setting = load_project_settings(place).headless.report
            asyncio.run(write_report_if_set(store, place, setting, stored))
    if stored.status != "draining":
        show(f"{stored.chain_id} is {stored.status}: no worker was running.")
    elif stored.stop_now:
        show(f"{stored.chain_id} stops now.")
    else:
        show(f"{stored.chain_id} stops after its steps in progress. Run this again to stop it now.")


def _chain_text(connection: sqlite3.Connection, chain: Chain) -> str:
    """Return the chain as lines of text, with one line for each worker."""
    from cockpit.chains.start_after_agent import session_before

    usage, progress = chain_usage(connection, chain), chains.count_progress(connection, chain)
    is_limited = chain.reason.startswith(f"{LIMIT}: ")
    reason = f" ({chain.reason})" if chain.reason and not is_limited else ""
    unwatched = chain.status in chains.OPEN and not chains.is_watched(chain)
    status = describe_status(chain.status, chain.reason).removeprefix("is ")
    lines = [
        f"{chain.chain_id} {status}{reason}{'; no process supervises it' if unwatched else ''}",
        f"  scope      {chain.scope}: {progress.done}/{pluralize(progress.total, 'task')} done,"
        f" {progress.blocked} blocked, {progress.under_way} in progress, {progress.ready} ready",
        f"  branch     {chain.branch}, from {chain.base_branch or 'no branch'} at"
        f" {chain.base_commit[:10]}",
        f"  options    -n {chain.batch} --approve {chain.approve}"
        f" --model {chain.model or 'the configured one'}",
        f"  workers    {usage.workers} of {chain.max_chains}",
        f"  used       {usage.tokens:,} tokens, ${usage.cost_usd:.2f}{_limit(chain.max_cost, '$')},"
        f" {usage.wall_s:.0f} s{_limit(chain.max_wall_s, '')}",
    ]
    if after := session_before(connection, chain):
        reason = f" ({after.reason})" if after.reason else ""
        lines.append(
            f"  follows    {after.agent}'s session {after.agent_session}{reason}: on_session_end"
        )
    if chain.report_path:
        lines.append(f"  report     {chain.report_path}")
    lines += [
        _worker_line(worker) for worker in workers.select_for_chain(connection, chain.chain_id)
    ]
    return "\n".join(lines)


def _worker_line(worker: Worker) -> str:
    sign = state_sign("worker", worker.status).sign
    cause_of_death = workers.explain_death(worker)
    reason = END_REASONS.get(worker.reason, worker.reason)
    status = f"{worker.status}, {reason}" if reason else worker.status
    if cause_of_death:
        status = f"dead: {cause_of_death}"
    share = 100 * worker.tokens // max(1, worker.token_limit)
    return (
        f"  {sign} s{worker.ordinal} {status} · process {worker.pid} ·"
        f" {worker.batches} {'batch' if worker.batches == 1 else 'batches'} ·"
        f" {worker.tokens:,} of {worker.token_limit:,} tokens ({share} %),"
        f" {round(100 * worker.dropped_share)} % of facts dropped · ${worker.cost_usd:.2f}"
    )


def _limit(limit: float | None, unit: str) -> str:
    return "" if limit is None else f" of {unit}{limit:g}"


def _read_branch(named: str | None) -> str:
    """Return the name of the branch of a task, such as T-4, or of a chain."""
    if named is not None and named[:1] in "tT":
        return read_id(TASK, named)
    return read_store(lambda connection: choose_chain(connection, named)).chain_id


chain.add_command(worktrees)


@chain.command("diff", epilog=examples("cockpit chain diff", "cockpit chain diff T-42 --stat"))
@_BRANCH
@click.option("--stat", is_flag=True, help="Print the names of the files only.")
@AS_JSON
def diff_branch(branch: str | None, stat: bool, as_json: bool) -> None:
    """Show what a branch changes, and its commits.

    It compares with the branch that it would be merged into, and says which files conflict.
    """
    shown = _read_change(_read_branch(branch))
    if as_json:
        show_json(_branch_document(shown))
        return
    for line in _describe_branch(shown, stat=stat):
        show(line)


@chain.command("take", epilog=examples("cockpit chain take", "cockpit chain take T-42"))
@_BRANCH
@AS_JSON
def take_branch(branch: str | None, as_json: bool) -> None:
    """Propose to merge a branch.

    Nothing is merged before you approve the proposal, on the screen or with `cockpit proposals approve`.
    """
    _propose(_read_branch(branch), drop=False, as_json=as_json)


@chain.command("drop", epilog=examples("cockpit chain drop ch-3", "cockpit chain drop T-42"))
@_BRANCH
@AS_JSON
def drop_branch(branch: str | None, as_json: bool) -> None:
    """Propose to remove a branch and its worktree.

    Its work is kept as a reference below refs/cockpit/dropped.
    """
    _propose(_read_branch(branch), drop=True, as_json=as_json)


def _read_change(name: str) -> BranchChange:
    from cockpit.tasks.agent_changes.branch_change import read_branch

    place = find_project()
    with open_store(place) as store:
        return asyncio.run(read_branch(store, place, name))


def _branch_document(shown: BranchChange) -> dict[str, Any]:
    change, tree = shown.change, shown.branch.tree
    return {
        "name": shown.branch.name,
        "branch": tree.branch if tree is not None else None,
        "into": shown.branch.into.removeprefix("refs/heads/") or None,
        "in_progress": shown.branch.runs,
        "commits": [
            {"sha": c.sha, "at": c.at, "author": c.author, "subject": c.subject}
            for c in shown.commits
        ],
        "added": change.added if change is not None else 0,
        "removed": change.removed if change is not None else 0,
        "files": list(change.paths) if change is not None else [],
        "uncommitted": list(change.uncommitted) if change is not None else [],
        "conflicts": list(change.conflicts) if change is not None else [],
        "notes": list(change.notes) if change is not None else [],
    }


def _describe_branch(shown: BranchChange, *, stat: bool) -> Iterator[str]:
    change, tree = shown.change, shown.branch.tree
    into = shown.branch.into.removeprefix("refs/heads/")
    if change is None:
        yield f"{shown.branch.name}: nothing differs."
        return
    yield f"{tree.branch if tree else 'your checkout'}: {change.size}" + (
        f", into {into}" if into else ""
    )
    for commit in shown.commits:
        yield f"  {commit.sha} {commit.subject} · {commit.author}"
    for note in change.notes:
        yield f"! {note}"
    for path in change.conflicts:
        yield f"✗ {path} conflicts with {into}"
    if stat:
        yield from (f"  {path}" for path in change.paths)
        return
    for diff in change.diffs:
        before, after = (diff.before or "").splitlines(), (diff.after or "").splitlines()
        yield ""
        yield from difflib.unified_diff(
            before, after, f"a/{diff.path}", f"b/{diff.path}", lineterm=""
        )


def _propose(name: str, *, drop: bool, as_json: bool) -> None:
    proposal = asyncio.run(_make_proposal(name, drop))
    if as_json:
        show_json(
            {"proposal_id": proposal.proposal_id, "title": proposal.title, "risk": proposal.risk}
        )
        return
    show(f"{proposal.proposal_id}: {proposal.title}")
    show(f"Look at it with `cockpit proposals {proposal.proposal_id}`.")
    show(f"Approve it on the screen, or with `cockpit proposals approve {proposal.proposal_id}`.")


async def _make_proposal(name: str, drop: bool) -> Proposal:
    from cockpit.tasks.agent_changes.propose_change import select_pending

    place = find_project()
    settings = load_project_settings(place)
    async with open_project_runtime(place, settings.runtime) as runtime:
        session_id = await runtime.propose_branch(name, drop=drop)
        return (await runtime.store.read(lambda c: select_pending(c, session_id)))[-1]


def _request_stop(tx: Tx, chain_id: str, now: bool) -> Chain:
    """Ask the chain to stop; a second request stops it at once."""
    from cockpit.access.principals import journal_actor
    from cockpit.chains.supervisor import request_stop

    again = chains.load(tx.connection, chain_id).status == "draining"
    by = journal_actor(find_caller(tx))
    return request_stop(tx, chain_id, now=now or again, by=by)


async def _watch(chain_id: str | None) -> None:
    from cockpit.commands.chains.watch_chain import ChainPrinter

    place = find_project()
    settings = load_project_settings(place)
    chosen = read_store(lambda connection: choose_chain(connection, chain_id))
    with open_store(place) as store:
        show(store.read_now(lambda connection: _chain_text(connection, chosen)))
        if chosen.status not in chains.OPEN:
            return
        after = store.read_now(lambda connection: _seq_before_start(connection, chosen))
        await ChainPrinter(store, settings, chosen.chain_id, after).follow_to_end()


def _seq_before_start(connection: sqlite3.Connection, chosen: Chain) -> int:
    """Return the sequence number of the journal row before the chain was last started."""
    (seq,) = connection.execute(
        "SELECT max(seq) FROM journal WHERE action='chain.changed' AND"
        " json_extract(detail_json, '$.what') IN ('created','resumed')"
        " AND json_extract(detail_json, '$.chain_id')=?",
        (chosen.chain_id,),
    ).fetchone()
    return int(seq) - 1


async def _find_report(place: ProjectPaths, chosen: Chain) -> Path:
    """Return the path of the chain's report, which is written where there is none."""
    from cockpit.chains.report.chain_report import write_report

    if chosen.report_path and (path := place.home / chosen.report_path).is_file():
        return path
    with open_store(place) as store:
        return await write_report(store, place, chosen)
