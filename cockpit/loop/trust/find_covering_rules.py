"""Whether rules of the user cover a proposal: the one place that answers it, for every agent and every rule.

Learned rules, those of ``permissions.toml`` and short cards are asked for here. Each use is judged by the
request's risk of now, in the transaction that would approve it, so that a pushback, an expiry or a
revocation counts at once, in every process. See ``docs/reference/trust.md``, coverage.
"""

from __future__ import annotations

from msgspec import Struct

from cockpit.loop.decisions.approval_policy import uses_rules
from cockpit.loop.permissions.permission_rules import TrustRule, find_rule
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.request_parts import Asked, RequestPart, find_linked_path, list_parts
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions.sessions import Session
from cockpit.store.trust import trust_rules
from cockpit.store.trust.shape import Effect, Shape
from cockpit.store.trust.trust_rules import FILE, LEARNED

BY_RULE = "trust:"
"""Starts the name in which rules decide; the rules' ids follow, with ``+`` between them."""
_RISKS = ("low", "medium", "high")


class RuleUse(Struct, frozen=True):
    """One rule, and what it covers of the proposal."""

    rule_id: str
    shape: Shape
    what: str
    origin: str = LEARNED
    expires_at: str = ""
    """When the rule ends; empty: never."""


class Coverage(Struct, frozen=True):
    """The rules that together cover a whole proposal."""

    uses: tuple[RuleUse, ...]

    @property
    def by(self) -> str:
        """The name in which they decide."""
        return BY_RULE + "+".join(dict.fromkeys(use.rule_id for use in self.uses))


def find_coverage(
    tx: Tx,
    settings: RuntimeSettings,
    proposal: Asked,
    session: Session,
    *,
    exact: TrustRule | None = None,
) -> Coverage | None:
    """Return the rules that cover every part of ``proposal``; None where a part is left to the user.

    ``exact`` is the rule of ``permissions.toml`` that would allow exactly this permission. It counts under
    every policy, because the user wrote it for this one thing. Learned rules count under the policies that
    use rules, and never for what is of high risk now.
    """
    if exact is not None and (use := _find_exact(tx, settings, exact, proposal)):
        return Coverage((use,))
    if proposal.risk == "high" or not uses_rules(session.policy) or proposal.revises is not None:
        return None
    parts = list_parts(proposal, session)
    uses: list[RuleUse] = []
    for part in parts:
        if (use := _find_use(tx, part, proposal, session, "pass")) is None:
            return None
        uses.append(use)
    return Coverage(tuple(uses)) if uses else None


def find_item_uses(tx: Tx, proposal: Asked, session: Session) -> tuple[RuleUse, ...]:
    """Return the rules that cover single items of a context request, one for each item that is covered."""
    if proposal.risk == "high" or not uses_rules(session.policy) or proposal.revises is not None:
        return ()
    uses = (
        _find_use(tx, part, proposal, session, "pass") for part in list_parts(proposal, session)
    )
    return tuple(use for use in uses if use is not None)


def find_card(tx: Tx, proposal: Asked, session: Session) -> RuleUse | None:
    """Return the rule that shows ``proposal`` as a short card, which the user approves with one key."""
    if proposal.revises is not None:
        return None
    parts = list_parts(proposal, session)
    return _find_use(tx, parts[0], proposal, session, "card") if len(parts) == 1 else None


def count_uses(tx: Tx, uses: tuple[RuleUse, ...], proposal: Asked) -> None:
    """Count each rule's use, and journal what it let pass."""
    for rule_id in dict.fromkeys(use.rule_id for use in uses):
        of_rule = [use for use in uses if use.rule_id == rule_id]
        trust_rules.count_use(
            tx,
            rule_id,
            of_rule[0].shape,
            proposal_id=proposal.proposal_id,
            what=" · ".join(use.what for use in of_rule)[:2_000],
            session_id=proposal.session_id,
            wave_id=proposal.wave_id,
            origin=of_rule[0].origin,
        )


def _find_use(
    tx: Tx, part: RequestPart, proposal: Asked, session: Session, effect: Effect
) -> RuleUse | None:
    """Return the rule in force that covers one part."""
    if part.shape is None or part.shape.effect != effect:
        return None
    rule = trust_rules.find_in_force(tx, part.shape.rule_id)
    if rule is None or rule.shape != part.shape:
        return None
    if _RISKS.index(proposal.risk) > _RISKS.index(rule.risk):
        return None
    # Files of a commit are not files on the disk.
    is_on_disk = not (proposal.kind == "context" and session.rev is not None)
    root = str(proposal.body.get("worktree") or session.root)
    if is_on_disk and find_linked_path(root, part.paths):
        return None
    return RuleUse(rule.rule_id, part.shape, part.text, expires_at=rule.expires_at or "")


def _find_exact(
    tx: Tx, settings: RuntimeSettings, exact: TrustRule, proposal: Asked
) -> RuleUse | None:
    """Return the user's own rule in ``permissions.toml``, unless it was suspended here."""
    if not find_rule(exact, settings.user_dir) or trust_rules.is_ended(tx, exact.rule_id):
        return None
    return RuleUse(exact.rule_id, exact.as_shape(), proposal.title, FILE)
