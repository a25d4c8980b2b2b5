"""Files that an external agent reads through cockpit: asked for as context, and kept as facts.

A read that the policy does not pass is a context proposal, as one of the built-in agent. What was read is
fetched through Observe, masked, into the session's facts with its version and lines. See
``docs/reference/agents.md``, files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import Altered, CockpitError
from cockpit.core.processes import current_process
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.permissions.permission_body import find_place
from cockpit.loop.permissions.wait_for_answer import (
    let_run,
    let_wait,
    name_proposal,
    read_newest,
    wait_for_answer,
)
from cockpit.loop.permissions.waiting_permission import withdraw_now
from cockpit.loop.permissions.withdrawal import Ending, Withdrawal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context import facts
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, proposals, sessions, waves
from cockpit.store.sessions.proposals import Proposal

_QUESTION = "What is in this file?"
_UNMASKED = "It contains what looks like a secret, and the agent would get it unmasked."


class FileRequest(Struct, frozen=True):
    """One file that an agent wants to read."""

    agent: str
    transport: str
    path: str
    """From the worktree's top."""
    lines: tuple[int, int] | None
    """The first and last line, from 1; None for the whole file."""
    has_secret: bool
    """Whether it contains what looks like a secret: then no policy answers."""

    @property
    def item(self) -> ScopeItem:
        """The scope item that reads it."""
        return ScopeItem("file", self.path, self.lines)


class ReadAnswer(Struct, frozen=True):
    """The answer to one request."""

    allowed: bool
    message: str
    """Why not, as a sentence for the agent."""
    words: str
    """What the user said."""
    end: Literal["decided", "withdrawn", "expired"]


async def ask_to_read(
    store: Store,
    settings: RuntimeSettings,
    change_waiter: ChangeWaiter,
    request: FileRequest,
    *,
    session_id: str,
    wave_id: str,
    root: Path,
    policy: str,
    deadline_s: float | None,
    withdrawn: Withdrawal,
) -> ReadAnswer:
    """Ask for ``request`` as a context proposal of the turn's wave, and wait for the answer.

    ``withdrawn`` closes the proposal with its reason, as cancelling this call does.
    """
    gateway = ContextGateway.of(root=root, limits=settings.observe)
    purpose = f"{request.agent} wants to read {request.path}"
    context_request = ContextRequest(purpose, _QUESTION, (request.item,))
    (preview,) = await gateway.preview(context_request)
    item = {
        "item": str(request.item),
        "level": "full",
        "tokens": preview.tokens,
        "band": preview.band,
        "refused": "",
        "note": _UNMASKED if request.has_secret else preview.note,
    }
    place = await asyncio.to_thread(find_place, root)
    body = {
        "purpose": purpose,
        "question": _QUESTION,
        "escalation": "",
        "items": [item],
        "total_tokens": preview.tokens or 0,
        "agent": request.agent,
        "transport": request.transport,
        "project": place.project,
        "branch": place.branch,
        "worktree": str(root),
        "waiter": current_process(),
    }
    asking = _Asking(store, settings, request, session_id, wave_id, body)
    await wait_for_answer(
        store,
        change_waiter,
        withdrawn,
        propose=lambda tx: asking.propose(tx, policy, deadline_s),
        read_decided=asking.read_decided,
        withdraw=asking.withdraw,
    )
    return await store.write(asking.settle)


class _Asking:
    """One request from its proposal to its answer."""

    def __init__(
        self,
        store: Store,
        settings: RuntimeSettings,
        request: FileRequest,
        session_id: str,
        wave_id: str,
        body: Mapping[str, Any],
    ) -> None:
        self.store = store
        self.proposal_id = ""
        self._settings = settings
        self._request = request
        self._session_id = session_id
        self._wave_id = wave_id
        self._body = body

    def propose(self, tx: Tx, policy: str, deadline_s: float | None) -> bool:
        """Store the request and its proposal; a policy that passes reads approves it at once. True."""
        session = sessions.load(tx.connection, self._session_id)
        self.proposal_id = name_proposal(tx)
        proposal = proposals.create(
            tx,
            proposal_id=self.proposal_id,
            kind="context",
            session_id=self._session_id,
            wave_id=self._wave_id,
            title=f"read {self._request.path}",
            body=self._body,
            risk="high" if self._request.has_secret else "low",
            task_id=session.task_id,
            deadline_s=deadline_s,
            actor=f"agent:{self._request.agent}",
        )
        context_requests.create(
            tx,
            request_id=self._request_id,
            session_id=self._session_id,
            wave_id=self._wave_id,
            purpose=str(self._body["purpose"]),
            question=_QUESTION,
            items=self._body["items"],
            proposal_id=self.proposal_id,
        )
        by = None if self._request.has_secret else approving_policy(policy, "context")
        if by is not None:
            try:
                digest = proposal.shown_digest
                decide_proposal(
                    tx, self._settings, self.proposal_id, "approved", by, shown_digest=digest
                )
                return True
            except Altered:
                pass  # the session was never given this policy: the user decides
        let_wait(tx, session, proposal.title)
        return True

    @property
    def _request_id(self) -> str:
        return f"q-{self.proposal_id.removeprefix('p-')}"

    def read_decided(self) -> Proposal | None:
        """Return the proposal once it is decided."""
        current = read_newest(self.store, self.proposal_id)
        return None if current.status == "pending" else current

    def withdraw(self, tx: Tx, ending: Ending) -> None:
        """Close the proposal without an answer."""
        if proposals.find(tx.connection, self.proposal_id) is not None and withdraw_now(
            tx, self.proposal_id, ending
        ):
            self.settle(tx)

    def settle(self, tx: Tx) -> ReadAnswer:
        """Store the decision with the request, and let the session run on."""
        decided = proposals.load(tx.connection, self.proposal_id)
        allowed = decided.status == "approved"
        item = str(self._body["items"][0]["item"])
        if decided.narrowed is not None and item not in decided.narrowed:
            allowed = False
        by = str(decided.decided_by or "")
        try:
            context_requests.apply_decision(
                tx,
                self._request_id,
                decided.status,
                approved=[item] if allowed else [],
                decided_by=by,
            )
        except Altered as error:
            return ReadAnswer(False, str(error), "", "decided")
        let_run(tx, self._session_id)
        if allowed:
            return ReadAnswer(True, "", "", "decided")
        if decided.status == "expired":
            late = by == "deadline"
            words = "The deadline passed without a decision." if late else decided.reason
            return ReadAnswer(False, words, "", "expired" if late else "withdrawn")
        words = f"The user said no: {decided.reason}" if decided.reason else "The user said no."
        return ReadAnswer(False, words, decided.reason, "decided")


def ensure_turn_wave(tx: Tx, session_id: str, wave_id: str) -> str:
    """Return the wave that the facts of an agent's turn belong to, which is made for its first one."""
    if wave_id:
        return wave_id
    session = sessions.load(tx.connection, session_id)
    wave = waves.create(tx, session_id=session_id, trace_id=session.trace_id)
    for phase in waves.PHASES[1:]:
        waves.advance(tx, wave.wave_id, phase)
    return wave.wave_id


async def record_read(
    store: Store,
    settings: RuntimeSettings,
    root: Path,
    session_id: str,
    wave_id: str,
    item: ScopeItem,
) -> int:
    """Read ``item`` through Observe into the facts of the session; returns how many are new to it.

    What cannot be read so leaves no fact: the agent has the file all the same.
    """
    try:
        gateway = ContextGateway.of(root=root, limits=settings.observe)
        request = ContextRequest(f"read {item.ref}", _QUESTION, (item,))
        fetched = await gateway.fetch(request)
    except CockpitError:
        return 0

    def write(tx: Tx) -> int:
        wave = waves.load_in(tx, wave_id)
        new = facts.record(
            tx,
            session_id=session_id,
            wave_id=wave_id,
            ordinal=wave.ordinal,
            pinned_now=wave.pinned_now,
            facts=fetched.facts,
            job=text_digest(str(item))[:12],
        )
        open_requests = [
            request
            for request in context_requests.select_by_status(tx.connection, session_id, "approved")
            if str(item) in request.approved
        ]
        for request in open_requests[:1]:
            outcomes = [{**outcome.body(), "new": new} for outcome in fetched.outcomes]
            context_requests.record_fetched(
                tx, request.request_id, wave_id=wave_id, outcomes=outcomes
            )
        return new

    return await store.write(write)
