"""Proposals of workers in the one queue of the coordinator, and the decisions that go back.

A decision counts for exactly what the worker showed: it carries the digest of the worker's proposal. See
``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from cockpit.chains.remote.jetstream_queue import MessageQueue, QueueUnreachable
from cockpit.chains.remote.message_types import (
    DecisionAnswer,
    DecisionMessage,
    MessageInvalid,
    ProposalNotice,
    decode,
    encode,
)
from cockpit.core.processes import current_process
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.loop.permissions.waiting_permission import (
    KIND,
    is_abandoned,
    load_newest,
    withdraw_now,
)
from cockpit.loop.permissions.withdrawal import AGENT_ENDED, WAITER_ENDED
from cockpit.loop.runtime_settings import DEFAULT_BUDGET
from cockpit.store.backlog import tasks
from cockpit.store.chains import remote_runs, task_runs
from cockpit.store.chains.remote_runs import RemoteProposal
from cockpit.store.chains.task_runs import Step
from cockpit.store.context import profiles
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted, SessionFailed
from cockpit.store.sessions import proposals, sessions

_MOST_FIELDS = 40
_MOST_TEXT = 400_000
_RISKS = ("low", "medium", "high")


def show_proposal(tx: Tx, notice: ProposalNotice, place: ProjectPaths) -> None:
    """Put a worker's proposal into the queue here; one of a worker that lost the run is void."""
    fence, worker = notice.fence, notice.worker
    if not remote_runs.is_current(tx, notice.task_id, notice.run, fence, worker, "proposal"):
        return
    if remote_runs.count_unanswered(tx, notice.task_id, notice.run) >= remote_runs.MOST_WAITING:
        remote_runs.journal_void(tx, notice.task_id, notice.run, fence, worker, "proposal")
        return
    proposal = RemoteProposal(
        task_id=notice.task_id,
        run=notice.run,
        fence=fence,
        remote_id=notice.proposal_id,
        remote_digest=notice.shown_digest,
        proposal_id=tx.ids.new("p"),
        title=" ".join(mask(notice.title).split())[:200],
        risk=notice.risk if notice.risk in _RISKS else "high",
        body=_describe(notice, place),
        answered=0,
    )
    if remote_runs.add_proposal(tx, proposal):
        _create(tx, proposal)


def has_left_proposals(connection: sqlite3.Connection) -> bool:
    """Whether a worker waits for a proposal that a coordinator which ended had shown."""
    return any(_is_left(connection, each) for each in remote_runs.select_unanswered(connection))


def show_proposals_anew(tx: Tx) -> None:
    """Show what waited as the coordinator before this one ended."""
    for proposal in remote_runs.select_unanswered(tx.connection):
        if not _is_left(tx.connection, proposal):
            continue
        withdraw_now(tx, proposal.proposal_id, WAITER_ENDED)
        again = msgspec.structs.replace(proposal, proposal_id=tx.ids.new("p"))
        remote_runs.show_anew(tx, proposal, again.proposal_id)
        _create(tx, again)


def find_decision(
    connection: sqlite3.Connection, proposal: RemoteProposal
) -> DecisionMessage | None:
    """Return the user's decision on a worker's proposal; None while it waits.

    The verdict ``void`` says that no worker waits for it any more.
    """
    shown = load_newest(connection, proposal.proposal_id)
    words = shown.reason
    if not _is_waited_for(connection, proposal):
        verdict = "void"
    elif shown.status == "approved":
        verdict, words = "approved", ""
    elif shown.status in ("rejected", "discussed"):
        verdict = "discussed" if words else "rejected"
    else:
        return None
    return DecisionMessage(proposal.remote_id, proposal.remote_digest, verdict, words)


def set_answered(tx: Tx, proposal: RemoteProposal) -> None:
    """Record that no worker waits for it any more; one that is shown still is withdrawn."""
    withdraw_now(tx, proposal.proposal_id, AGENT_ENDED)
    remote_runs.set_answered(tx, proposal)


def _is_left(connection: sqlite3.Connection, proposal: RemoteProposal) -> bool:
    """Whether the process that showed it is gone, while its worker waits still."""
    if not _is_waited_for(connection, proposal):
        return False
    shown = load_newest(connection, proposal.proposal_id)
    return shown.status == "expired" or is_abandoned(shown)


def _is_waited_for(connection: sqlite3.Connection, proposal: RemoteProposal) -> bool:
    remote = remote_runs.find(connection, proposal.task_id, proposal.run)
    return remote is not None and (remote.state, remote.fence) == ("claimed", proposal.fence)


def _create(tx: Tx, proposal: RemoteProposal) -> None:
    proposals.create(
        tx,
        proposal_id=proposal.proposal_id,
        kind=KIND,
        session_id=find_session(tx, proposal.task_id),
        wave_id="",
        title=proposal.title,
        body={**proposal.body, "waiter": current_process()},
        risk=proposal.risk,
        task_id=proposal.task_id,
    )


def _describe(notice: ProposalNotice, place: ProjectPaths) -> dict[str, Any]:
    """Return the body as the screen draws permissions: everything that the worker would show, as text."""
    fields = [["kind", notice.kind], *_own_fields(notice.body)]
    rest = {
        name: value
        for name, value in notice.body.items()
        if value not in (None, "", [], {}) and name not in ("diffs", "fields")
    }
    fields += [[str(name)[:80], _text(value)] for name, value in list(rest.items())[:_MOST_FIELDS]]
    if len(rest) > _MOST_FIELDS:
        fields.append(["…", f"{len(rest) - _MOST_FIELDS} more fields are not shown"])
    return {
        "type": "other",
        "agent": notice.worker,
        "transport": "nats",
        "project": place.home.name,
        "branch": f"{notice.task_id}, run {notice.run}",
        "worktree": "",
        "cwd": "",
        "call_id": notice.proposal_id[:200],
        "tool": notice.kind[:200],
        "server": "",
        "why": "",
        "command": "",
        "reasons": [],
        "options": [],
        "fields": fields,
        "body": "",
        "diffs": _diffs(notice.body),
        "notes": [f"It waits on another machine: {notice.worker} carries it out there."],
        "changes": [],
        "editable": False,
        "worker": notice.worker,
        "remote_digest": notice.shown_digest,
    }


def _own_fields(body: Mapping[str, Any]) -> list[list[str]]:
    """Return the names and values by which the worker shows its proposal."""
    own = body.get("fields")
    return [
        [_text(pair[0]), _text(pair[1])]
        for pair in (own if isinstance(own, list) else [])
        if isinstance(pair, list) and len(pair) == 2
    ]


def _diffs(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    diffs = body.get("diffs")
    return [
        {
            "path": _text(each["path"]),
            "before": _text_or_none(each.get("before")),
            "after": _text_or_none(each.get("after")),
        }
        for each in (diffs if isinstance(diffs, list) else [])
        if isinstance(each, dict) and isinstance(each.get("path"), str)
    ]


def _text_or_none(value: Any) -> str | None:
    """Return a file's text; None stands for no file, and a value that is not text is shown as one."""
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    text = mask(text)
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]} […{len(text) - _MOST_TEXT} characters are not shown]"


TRANSPORT = "nats"
_OPEN = ("running", "waiting")


def open_session(tx: Tx, place: ProjectPaths, task_id: str, worker: str, policy: str) -> None:
    """Open the session of a worker that took the task up; an earlier worker's ends as stopped."""
    if (step := _open_step(tx, task_id)) is None:
        return
    if step.session_id is not None and _is_open(tx, step.session_id):
        sessions.set_status(tx, step.session_id, "stopped")
    task = tasks.load(tx.connection, task_id)
    session = sessions.create(
        tx,
        task_type=sessions.EXTERNAL_AGENT,
        title=task.title,
        words="",
        target={},
        model=f"{sessions.RUNNER_PREFIX}{worker}",
        policy=policy,
        interactive=False,
        root=place.home,
        rev=None,
        profile_id=profiles.ensure_default(tx, DEFAULT_BUDGET).profile_id,
        limits={},
        project=place.home.name,
        branch="",
        task_id=task_id,
        actor="engine",
        agent=worker,
        transport=TRANSPORT,
    )
    task_runs.attach_session(tx, step, session.session_id)


def find_session(tx: Tx, task_id: str) -> str:
    """Return the id of the open session of the task's worker; '' without one."""
    step = _open_step(tx, task_id)
    return step.session_id or "" if step is not None else ""


def close_session(tx: Tx, task_id: str, status: str, summary: str) -> None:
    """End the session of the task's worker, whose run ended as ``status``."""
    session_id = find_session(tx, task_id)
    if not session_id or not _is_open(tx, session_id):
        return
    if status == "ready":
        ended = SessionCompleted(status="done", summary=summary)
        sessions.set_status(tx, session_id, "completed", detail=ended)
    elif status == "interrupted":
        sessions.set_status(tx, session_id, "stopped")
    else:
        sessions.set_status(tx, session_id, "failed", detail=SessionFailed(message=summary))


def _open_step(tx: Tx, task_id: str) -> Step | None:
    steps = task_runs.select_steps(tx.connection, task_id)
    return steps[-1] if steps and steps[-1].open else None


def _is_open(tx: Tx, session_id: str) -> bool:
    return sessions.load(tx.connection, session_id).status in _OPEN


LOOK_S = 0.25
"""Seconds between two looks at the proposals that workers wait for."""

_Key = tuple[str, int, int, str]


class DecisionSender:
    """Sends each decision once to the worker that waits for it, bound to what the worker showed."""

    def __init__(self, store: Store, queue: MessageQueue, say: Callable[[str], None]) -> None:
        self._store = store
        self._queue = queue
        self._say = say
        self._sending: set[_Key] = set()

    async def run(self) -> None:
        """Look for decisions and send them, until cancelled. Raises the store's errors."""
        async with asyncio.TaskGroup() as group:
            while True:
                if self._store.read_now(has_left_proposals):
                    await self._store.write(show_proposals_anew)
                for proposal in self._store.read_now(remote_runs.select_unanswered):
                    key = (proposal.task_id, proposal.run, proposal.fence, proposal.remote_id)
                    if key in self._sending:
                        continue
                    decision = self._store.read_now(partial(find_decision, proposal=proposal))
                    if decision is not None:
                        self._sending.add(key)
                        group.create_task(self._send(key, proposal, decision))
                await self._store.clock.sleep(LOOK_S)

    async def _send(self, key: _Key, proposal: RemoteProposal, decision: DecisionMessage) -> None:
        subject = self._queue.subjects.decide(proposal.task_id, proposal.run, proposal.fence)
        try:
            if decision.verdict != "void":
                answer = _read_answer(await self._queue.request(subject, encode(decision)))
                if not answer.taken:
                    self._say(f"{proposal.task_id}: your decision came too late. {answer.error}")
            await self._store.write(lambda tx: set_answered(tx, proposal))
        except QueueUnreachable:
            return  # the worker is away, or gone: the next look sends it again, or finds it void
        finally:
            self._sending.discard(key)


def _read_answer(data: bytes) -> DecisionAnswer:
    try:
        return decode(DecisionAnswer, data)
    except MessageInvalid as error:
        return DecisionAnswer(False, str(error))
