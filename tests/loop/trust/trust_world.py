"""A store in which sessions propose, the user decides, and rules let pass: without a model or a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loop.stored_session import store_session
from state_for_tests import put_store

from cockpit.access.principals import Caller
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.decide_proposal import decide_proposal, find_decider, find_holder
from cockpit.loop.decisions.pass_without_asking import pass_without_asking
from cockpit.loop.runtime_settings import RuntimeSettings, TrustSettings
from cockpit.loop.trust.decide_rules import accept_rule, list_offers, revoke_rule, suspend_rule
from cockpit.loop.trust.list_rules import RuleListing, TaskTypeState, list_rules, list_states
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.trust.trust_rules import Rule

PR = {"pr": 24}


@dataclass
class TrustWorld:
    """One store of one project; sessions have the policy ``trusted`` unless said otherwise."""

    store: Store
    root: Path
    settings: RuntimeSettings = field(
        default_factory=lambda: RuntimeSettings(trust=TrustSettings(3, 2, 90))
    )
    count: int = 0

    def begin(self, task_type: str = "review_pr", policy: str = "trusted", target: Any = PR) -> str:
        """Begin a session; returns its id."""
        fields = {"task_type": task_type, "target": target, "policy": policy, "model": "script:x"}
        return self.store.write_now(
            lambda tx: (
                store_session(tx, self.root, title="work", branch="main", **fields).session_id
            )
        )

    def read(self, session_id: str, *items: str, risk: str = "low") -> Proposal:
        """Ask for items; returns the proposal as it is afterwards: pending, or passed."""
        known = {"level": "full", "tokens": 5, "band": "situational", "refused": "", "note": ""}
        records = [{"item": item, **known} for item in items]
        body = {
            "purpose": "p",
            "question": "q",
            "escalation": "",
            "items": records,
            "total_tokens": 5,
        }
        return self._propose(session_id, "context", f"read {len(items)}", body, risk)

    def run(self, session_id: str, *argv: str, risk: str = "medium", **payload: Any) -> Proposal:
        """Ask to run a command."""
        sent = {"argv": list(argv), "timeout_s": 120, "sandboxed": True, **payload}
        return self.act(session_id, "run", sent, risk=risk)

    def act(
        self,
        session_id: str,
        kind: str,
        payload: dict[str, Any],
        *,
        risk: str = "medium",
        diffs: Sequence[dict[str, Any]] = (),
    ) -> Proposal:
        """Ask for an action."""
        body = {"type": kind, "payload": payload, "diffs": list(diffs), "body": "", "changes": []}
        return self._propose(session_id, "action", f"{kind} {payload}", body, risk)

    def _propose(
        self, session_id: str, kind: str, title: str, body: dict[str, Any], risk: str
    ) -> Proposal:
        self.count += 1
        proposal_id = f"p-{self.count:010d}"
        if kind == "action":
            body = {**body, "key": proposal_id}

        def write(tx: Tx) -> Proposal:
            session = sessions.load(tx.connection, session_id)
            proposal = proposals.create(
                tx,
                proposal_id=proposal_id,
                kind=kind,
                session_id=session_id,
                wave_id=f"{session_id}-w{self.count}",
                title=title,
                body=body,
                risk=risk,
            )
            action = str(body.get("type", ""))
            by = approving_policy(session.policy, kind, risk=risk, action_type=action)
            pass_without_asking(tx, self.settings, proposal, by)
            return proposals.load(tx.connection, proposal_id)

        return self.store.write_now(write)

    def decide(
        self,
        proposal: Proposal,
        decision: str = "approved",
        *,
        narrowed: Sequence[str] | None = None,
        reason: str = "",
    ) -> None:
        """Decide as the user."""
        self.store.write_now(
            lambda tx: decide_proposal(
                tx,
                self.settings,
                proposal.proposal_id,
                decision,  # type: ignore[arg-type]
                find_decider(tx, self.settings),
                shown_digest=proposal.shown_digest,
                narrowed=narrowed,
                reason=reason,
            )
        )

    def learn(self, *requests: Any, task_type: str = "review_pr") -> None:
        """Approve each request (a call of the world and a session) in two sessions of its own, twice."""
        for _ in range(2):
            session_id = self.begin(task_type, "ask")
            for number in range(2):
                for request in requests:
                    self.decide(request(session_id, number))

    def learn_rule(self, *requests: Any, task_type: str = "review_pr") -> list[Rule]:
        """Learn, and accept every offer."""
        self.learn(*requests, task_type=task_type)
        return [self.accept(rule_id) for rule_id in self.offers()]

    def offers(self) -> list[str]:
        """The ids of what is offered."""
        return [
            each.shape.rule_id
            for each in self.store.read_now(
                lambda connection: list_offers(connection, self.store.clock, self.settings)
            )
        ]

    def accept(self, rule_id: str, decider: Caller | None = None) -> Rule:
        return self.store.write_now(
            lambda tx: accept_rule(
                tx, self.settings, rule_id, decider or find_holder(tx, self.settings)
            )
        )

    def suspend(self, rule_id: str) -> Rule:
        return self.store.write_now(
            lambda tx: suspend_rule(tx, rule_id, find_holder(tx, self.settings))
        )

    def revoke(self, rule_id: str) -> Rule:
        return self.store.write_now(
            lambda tx: revoke_rule(tx, self.settings, rule_id, find_holder(tx, self.settings))
        )

    def rules(self) -> RuleListing:
        return self.store.read_now(
            lambda connection: list_rules(connection, self.store.clock, self.settings)
        )

    def states(self) -> dict[str, TaskTypeState]:
        states = self.store.read_now(
            lambda connection: list_states(connection, self.store.clock, self.settings)
        )
        return {each.task_type: each for each in states}

    def rows(self, action: str) -> list[Row]:
        rows = self.store.read_now(lambda connection: list(journal.rows(connection)))
        return [row for row in rows if row.action == action]


def passed(proposal: Proposal) -> bool:
    """Whether it passed by a rule."""
    return proposal.status == "approved" and str(proposal.decided_by).startswith("trust:")


def open_trust(folder: Path, root: Path) -> TrustWorld:
    return TrustWorld(
        Store.open(put_store(folder / "cockpit.db"), FixedClock(step_s=0.001), CountingIds()), root
    )
