"""Asking the user for what an external agent wants to do, and waiting for the answer.

Deny rules answer first, then the session's policy, then the queue. Each request is decided exactly once,
whoever is first: the user, the agent's own terminal, the deadline. The answer is what the journal says.
See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.clock import parse_time
from cockpit.core.errors import Altered
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.decisions.pass_without_asking import pass_without_asking
from cockpit.loop.permissions.changed_input import InputNotChanged, restore_input
from cockpit.loop.permissions.complete_edits import list_changed_files
from cockpit.loop.permissions.judge_request import judge_request
from cockpit.loop.permissions.judge_tool import ToolRisk
from cockpit.loop.permissions.permission_body import (
    AgentPlace,
    PermissionProposal,
    describe_request,
    find_place,
)
from cockpit.loop.permissions.question_form import fill_answers, read_answers
from cockpit.loop.permissions.read_tool_request import reread_claude_tool
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.permissions.wait_for_answer import (
    let_run,
    let_wait,
    name_proposal,
    read_newest,
    wait_for_answer,
)
from cockpit.loop.permissions.waiting_permission import (
    KIND,
    SHOWN_ANEW,
    load_newest,
    withdraw_now,
)
from cockpit.loop.permissions.withdrawal import Ending, Withdrawal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.proposals import ActionRefused
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

DENY_RULES = "deny rules"
COCKPIT = "cockpit"
"""Who answers no where an approval does not count: the journal has another, or a rule forbids it by now."""
MOST_WAITING = 100
"""Permissions of one session that wait at the same time; what it asks beyond them is refused."""
_TOO_MANY = "cockpit keeps at most 100 questions of an agent waiting at a time. Ask again later."


class PermissionAnswer(Struct, frozen=True):
    """The answer to one request."""

    allowed: bool
    words: str
    """Why not, for the agent; '' where the user said no more than no."""
    input: Mapping[str, Any] | None
    """The input to use in place of the agent's, unmasked; None if it stays as it is."""
    by: str
    """Who decided: ``person``, ``policy:NAME``, ``deny rules``, ``cockpit``, ``deadline``, ``agent:NAME``."""
    proposal_id: str
    """The proposal that was decided; '' for a deny rule."""
    end: Literal["decided", "withdrawn", "expired"]

    @property
    def message(self) -> str:
        """The answer as a sentence for the agent."""
        if self.allowed:
            return f"Approved by {_name(self.by)}."
        if self.end == "expired":
            return "The deadline passed without a decision. It did not happen."
        if self.end == "withdrawn":
            return self.words
        if self.by in (DENY_RULES, COCKPIT):
            return self.words
        return f"The user said no: {self.words}" if self.words else "The user said no."


def _name(by: str) -> str:
    return "the user" if by == "person" else by


def approving_policy_of(policy: str, judged: ToolRisk) -> str:
    """Return the name in which ``policy`` answers a request yes; '' leaves it to the user.

    ``trusted`` allows commits in a worktree of the agent's own, ``reads`` also what is known to only read
    ordinary files of the project, ``all`` whatever need not wait. Questions, settings of agents, secrets and
    places outside the project are never allowed so.
    """
    if judged.waits or judged.denied:
        return ""
    commits = judged.risk == "low" and not judged.reads
    passes = {"trusted": commits, "reads": commits or judged.reads, "all": True}
    return f"policy:{policy}" if passes.get(policy) else ""


async def ask_permission(
    store: Store,
    settings: RuntimeSettings,
    change_waiter: ChangeWaiter,
    request: ToolRequest,
    *,
    session_id: str,
    root: Path,
    policy: str,
    deadline_s: float | None = None,
    withdrawn: Withdrawal | None = None,
) -> PermissionAnswer:
    """Propose what ``request`` asks for in the session and worktree ``root``, and wait for the answer.

    ``policy`` is the session's, ``deadline_s`` the seconds until no answer counts as the answer.
    ``withdrawn`` closes the proposal with its reason, as cancelling this call does. Raises ``NotFound``
    without the session.
    """
    asking = _Asking(store, settings, request, session_id)
    await asyncio.to_thread(asking.describe, await asyncio.to_thread(root.resolve))
    if asking.first.judged.denied:
        return await asking.refuse()
    proposed = await wait_for_answer(
        store,
        change_waiter,
        withdrawn or Withdrawal(),
        propose=lambda tx: asking.propose(tx, policy, deadline_s),
        read_decided=asking.read_decided,
        withdraw=asking.withdraw,
    )
    if not proposed:
        return await asyncio.to_thread(asking.fail, _TOO_MANY)
    return await asyncio.to_thread(asking.answer)


class _Asking:
    """One request from its proposal to its answer; the methods block, but for :meth:`refuse`."""

    def __init__(
        self, store: Store, settings: RuntimeSettings, request: ToolRequest, session_id: str
    ) -> None:
        self.store = store
        self.settings = settings
        self.request = request
        self.session_id = session_id
        self.proposal_id = ""
        self._on_disk: Mapping[str, str] = {}
        self._stamps: list[tuple[int, int, int]] = []

    def describe(self, root: Path) -> None:
        """Judge the request and make its proposal."""
        self.place: AgentPlace = find_place(root)
        self._stamps = self._stamp()
        self.first: PermissionProposal = describe_request(self.request, self.place)
        self._on_disk = self.first.edits.on_disk or {}

    async def refuse(self) -> PermissionAnswer:
        """Journal that a deny rule refused the request; returns the answer."""
        words = self.first.judged.denied
        detail = ActionRefused(
            tool=self.request.tool[:200],
            guard=DENY_RULES,
            message=words,
            payload={"agent": self.request.agent, "title": self.first.title},
        )

        def write(tx: Tx) -> None:
            tx.journal(
                detail,
                actor=f"agent:{self.request.agent}",
                session_id=self.session_id,
                result="refused",
                error_code="denied",
            )

        await self.store.write(write)
        return PermissionAnswer(False, words, None, DENY_RULES, "", "decided")

    def propose(self, tx: Tx, policy: str, deadline_s: float | None) -> bool:
        """Store the proposal; where the policy allows it, it is approved in the same transaction.

        Returns False, and stores nothing, where too many of the session's wait already.
        """
        session = sessions.load(tx.connection, self.session_id)
        waiting = tx.execute(
            "SELECT count(*) FROM (SELECT 1 FROM proposals WHERE session_id=? AND status='pending'"
            " LIMIT ?)",
            (self.session_id, MOST_WAITING),
        ).fetchone()[0]
        if waiting >= MOST_WAITING:
            return False
        self.proposal_id = name_proposal(tx)
        proposal = self._create(tx, self.proposal_id, self.first, session.task_id, deadline_s)
        by_policy = approving_policy_of(policy, self.first.judged)
        # A question has no yes: only its user answers it.
        is_question = bool(self.request.questions)
        try:
            if not is_question and pass_without_asking(
                tx, self.settings, proposal, by_policy, exact=self.first.rule
            ):
                return True
        except Altered:
            pass  # the session was never given this policy: the user decides
        let_wait(tx, session, proposal.title)
        return True

    def _create(
        self,
        tx: Tx,
        proposal_id: str,
        described: PermissionProposal,
        task_id: str | None,
        deadline_s: float | None,
        revises: str | None = None,
    ) -> Proposal:
        return proposals.create(
            tx,
            proposal_id=proposal_id,
            kind=KIND,
            session_id=self.session_id,
            # It belongs to no wave; under its own id the journal's index finds its rows.
            wave_id=proposal_id,
            title=described.title,
            body=described.body,
            risk=described.judged.risk,
            revises=revises,
            task_id=task_id,
            deadline_s=deadline_s,
            actor=f"agent:{self.request.agent}",
        )

    def read_decided(self) -> Proposal | None:
        """Return the newest revision once it is decided; expire it, or show it anew, where that is due."""
        current = read_newest(self.store, self.proposal_id)
        if current.status == "pending" and self._stamp() != self._stamps:
            self._show_anew(current)
            current = read_newest(self.store, self.proposal_id)
        return None if current.status == "pending" else current

    def _stamp(self) -> list[tuple[int, int, int]]:
        """Return size and times of the files that would change, to notice that one did."""
        stamps = []
        for edit in self.request.edits[:100]:
            path = Path(self.request.cwd or self.place.root) / edit.path
            try:
                entry = os.lstat(path)
                stamps.append((entry.st_mtime_ns, entry.st_size, entry.st_ino))
            except (OSError, ValueError):
                stamps.append((0, 0, 0))
        return stamps

    def _show_anew(self, current: Proposal) -> None:
        """Replace a pending revision by one that shows the files as they are on disk now."""
        self._stamps = self._stamp()
        changed = list_changed_files(self.request, self.place.root, self._on_disk)
        if not changed:
            return
        request = self._request_of(current)
        lines = [f"{path} changed on disk since the agent asked" for path in changed]
        described = describe_request(request, self.place, changes=lines)
        body = {**described.body, **({"edited": True} if current.body.get("edited") else {})}
        described = replace(described, body=body)

        def write(tx: Tx) -> None:
            newest = load_newest(tx.connection, self.proposal_id)
            if newest.status != "pending" or newest.proposal_id != current.proposal_id:
                self._stamps = []  # the user changed it meanwhile: look at the files once more
                return
            proposals.decide(tx, newest.proposal_id, "expired", by="engine", reason=SHOWN_ANEW)
            left = None
            if newest.expires_at is not None:
                left = max(
                    timedelta(), parse_time(newest.expires_at) - tx.clock.now()
                ).total_seconds()
            self._create(tx, name_proposal(tx), described, newest.task_id, left, newest.proposal_id)

        self.store.write_now(write)
        if self._stamps:
            self._on_disk = described.edits.on_disk or {}

    def withdraw(self, tx: Tx, ending: Ending) -> None:
        """Close the proposal because the run that waited for it ended."""
        if proposals.find(tx.connection, self.proposal_id) is not None:
            withdraw_now(tx, self.proposal_id, ending)
            let_run(tx, self.session_id)

    def answer(self) -> PermissionAnswer:
        """Return the decision as the journal records it, with the input that the user changed."""

        def read(tx: Tx) -> Proposal:
            let_run(tx, self.session_id)
            decided = load_newest(tx.connection, self.proposal_id)
            if decided.status == "approved":
                return proposals.load_approved(tx.connection, decided.proposal_id)
            return decided

        try:
            decided = self.store.write_now(read)
            changed = self._changed_input(decided) if decided.status == "approved" else None
        except (Altered, InputNotChanged) as error:
            return self.fail(str(error))
        by, identity = str(decided.decided_by), decided.proposal_id
        if decided.status == "approved":
            return PermissionAnswer(True, decided.reason, changed, by, identity, "decided")
        if decided.status == "expired":
            end: Literal["expired", "withdrawn"] = "expired" if by == "deadline" else "withdrawn"
            return PermissionAnswer(False, decided.reason, None, by, identity, end)
        return PermissionAnswer(False, decided.reason, None, by, identity, "decided")

    def fail(self, words: str) -> PermissionAnswer:
        """Journal that the request is refused all the same, and why; returns the answer."""
        detail = ActionRefused(
            tool=self.request.tool[:200],
            guard="permission",
            message=words,
            payload={"proposal_id": self.proposal_id},
        )
        self.store.write_now(
            lambda tx: tx.journal(
                detail, session_id=self.session_id, wave_id=self.proposal_id, result="refused"
            )
        )
        return PermissionAnswer(False, words, None, COCKPIT, self.proposal_id, "decided")

    def _request_of(self, proposal: Proposal) -> ToolRequest:
        changed = self._changed_input(proposal)
        return self.request if changed is None else reread_claude_tool(self.request, changed)

    def _changed_input(self, proposal: Proposal) -> Mapping[str, Any] | None:
        """Return the input that the user changed, with the agent's own secrets; None if it is unchanged.

        Raises ``InputNotChanged``, and ``Altered`` if a deny rule matches it by now.
        """
        if proposal.body.get("answers"):
            request = self.request
            answers = read_answers(proposal.body["answers"])
            return fill_answers(request.form, request.questions, request.input, answers)
        if not proposal.body.get("edited"):
            return None
        original, shown = dict(self.request.input), self.first.body["input"]
        changed: dict[str, Any] = restore_input(original, shown, proposal.body["input"])
        judged = judge_request(reread_claude_tool(self.request, changed), self.place.root)
        if judged.denied:
            raise Altered(judged.denied)
        return changed
