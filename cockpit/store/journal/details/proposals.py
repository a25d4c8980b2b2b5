"""Details of proposals and of the actions that they approve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.store.journal.details.detail import Detail, Part, read_part
from cockpit.store.journal.details.waves import ContextItem


class FileDiff(Part, frozen=True, kw_only=True):
    """One file as an action changes it."""

    path: str
    """The file's path in the project."""
    before: str | None
    """The text before; None for a new file."""
    after: str | None
    """The text after; None for a removed file."""


class BandRoom(Part, frozen=True, kw_only=True):
    """The tokens of a band in a profile."""

    band: str
    """The band's name."""
    min_tokens: int
    """The guaranteed tokens."""
    target_tokens: int
    """The tokens aimed at."""
    max_tokens: int
    """The most tokens."""


class ProfileRule(Part, frozen=True, kw_only=True):
    """A ranking rule of a profile."""

    rule_id: str
    """The rule's id."""
    source_type: str
    """The kind of source that it applies to; empty for all."""
    predicate: Mapping[str, Any]
    """Which facts it applies to."""
    priority_weight: float | None
    """How much it raises a fact."""
    novelty_weight: float | None
    """How much newness counts."""
    risk_weight: float | None
    """How much risk counts."""
    recency_half_life: float | None
    """After how many waves a fact counts half."""
    enabled: bool
    """Whether the rule applies."""
    fetch: tuple[str, ...] = ()
    """Scope items that sessions read without asking."""
    quota: int = 0
    """The most jobs a wave that they add."""


class GuardFinding(Part, frozen=True, kw_only=True):
    """One check of a profile change."""

    code: str
    """The check."""
    ok: bool
    """Whether the change passes it."""
    message: str
    """The result, for people to read."""


class OfferedRule(Part, frozen=True, kw_only=True):
    """A rule that the user may accept for an external agent."""

    agent: str
    """The agent."""
    project: str
    """The main checkout's folder."""
    kind: str
    """``execute``, ``edit``, ``mcp`` or ``fetch``."""
    what: str
    """The command, file, tool or address."""


class ShortCard(Part, frozen=True, kw_only=True):
    """How an action is shown whose shape the user accepted for one key."""

    rule_id: str
    """The trust rule that says so."""
    until: str = ""
    """When that rule ends; empty: never."""


class AskedQuestion(Part, frozen=True, kw_only=True):
    """One question of an agent to its user."""

    header: str
    """A word or two about it."""
    text: str
    """The question."""
    kind: str
    """``choice``, ``text``, ``number``, ``integer`` or ``yes_no``."""
    options: tuple[tuple[str, str], ...]
    """The labels of its options, each with its meaning."""
    several: bool
    """Whether more than one option may be chosen."""
    other: bool
    """Whether a text of the user's own may take the place of an option."""
    required: bool
    """Whether it needs an answer."""
    default: str
    """The agent's own answer."""


class ProposalBody(Part, frozen=True, kw_only=True):
    """A proposal as the user is shown it; each kind of proposal uses some of the fields."""

    type: str
    """The action's type."""
    purpose: str
    """Why context is needed."""
    question: str
    """The question that the context is to answer."""
    escalation: str
    """Why more than the usual context is needed."""
    items: tuple[ContextItem, ...]
    """The items of a context request."""
    fields: tuple[tuple[str, str], ...]
    """Names and values to show."""
    body: str
    """The text to show, as Markdown: code and text whose lines count are fenced."""
    diffs: tuple[FileDiff, ...]
    """The files that the action changes."""
    notes: tuple[str, ...]
    """Remarks for the user."""
    changes: tuple[str, ...]
    """The differences from the discussed proposal that this one revises."""
    reason: str
    """Why a profile is to change."""
    profile_id: str
    base_version: int
    """The version that a profile change starts from."""
    effective_waves: int
    """How many waves a profile change applies to; 0: permanently."""
    requested_by: str
    """The principal that asked for a profile change."""
    total_before: int
    """The token budget before."""
    total_after: int
    """The token budget after."""
    bands_before: tuple[BandRoom, ...]
    """All bands before."""
    bands_after: tuple[BandRoom, ...]
    """All bands after."""
    rules_before: tuple[ProfileRule, ...]
    """The rules that change, before."""
    rules_after: tuple[ProfileRule, ...]
    """The rules that change, after."""
    verdict: tuple[GuardFinding, ...]
    """The results of the guard's checks."""
    widening: bool
    """Whether more than weights change."""
    agent: str
    """The external agent that asks for a permission."""
    transport: str
    """How it asked: ``acp``, ``stdio`` or ``hook``."""
    project: str
    """The project that the agent works in."""
    branch: str
    """The branch that the agent works on."""
    worktree: str
    """The worktree that the agent works in."""
    tool: str
    """The agent's own name of its tool."""
    server: str
    """The MCP server of a call."""
    why: str
    """The agent's reason."""
    command: str
    """The command that would run."""
    reasons: tuple[str, ...]
    """Why a permission is not of low risk."""
    options: tuple[str, ...]
    """The names of the agent's own options."""
    editable: bool
    """Whether the input of a permission can be changed before it is approved."""
    card: ShortCard
    """The short card of an action; its texts are empty where it is shown in full."""
    questions: tuple[AskedQuestion, ...]
    """The questions of an agent to its user."""
    form: str
    """How the answers go back to the agent; empty where its protocol takes none."""
    rule: OfferedRule
    """The rule that the user may accept; its texts are empty where there is none."""


class ProposalCreated(Detail, frozen=True, kw_only=True):
    """A proposal waits for a decision."""

    proposal_id: str
    kind: str
    """``context``, ``action``, ``profile``, ``skill`` or ``permission``."""
    title: str
    """The proposal in one line."""
    risk: str
    """``low``, ``medium`` or ``high``."""
    revises: str
    """The discussed proposal that this one replaces; empty without one."""
    expires_at: str | None
    """When the proposal expires."""
    shown_digest: str
    """The digest of the body's canonical JSON; a decision about another digest is refused."""
    body: Mapping[str, Any]
    """The proposal as it is shown, by kind."""
    task_id: str
    """The backlog task; empty without one."""

    def shown(self) -> ProposalBody:
        """Return the body's fields, those that this kind of proposal does not have empty."""
        return read_part(ProposalBody, self.body)


class ProposalDecided(Detail, frozen=True, kw_only=True):
    """A proposal was decided: approved, rejected, answered with a message, expired or replaced."""

    proposal_id: str
    kind: str
    """``context``, ``action``, ``profile``, ``skill`` or ``permission``."""
    title: str
    """The proposal in one line."""
    status: str
    """``approved``, ``rejected``, ``discussed`` or ``expired``."""
    decided_by: str
    """The decider: ``person``, ``policy:NAME``, a principal, ``agent:NAME`` or ``deadline``."""
    shown_digest: str
    """The digest of the body that was decided about."""
    reason: str
    """The remark of the decider, or why it ended; the message of a discussion, empty when the user only
    interrupted."""
    narrowed: tuple[str, ...]
    """The items kept of a context request that was narrowed; empty: all."""

    @property
    def is_taken_back(self) -> bool:
        """Whether it ended before its deadline without a decision: nothing waits for it any more."""
        return self.status == "expired" and self.decided_by != "deadline"


class OfAction(Detail, frozen=True, kw_only=True):
    """An action of a plan."""

    action_id: str
    """The action's id in the outbox."""
    type: str
    """The tool."""
    title: str
    """The action in one line."""


class ActionQueued(OfAction, frozen=True, kw_only=True):
    """The action may run."""

    proposal_id: str
    """The proposal that was approved; empty for an action that needs none."""
    key: str
    """The action's idempotency key."""
    payload_digest: str
    """The digest of the payload's canonical JSON."""


class ActionDispatched(OfAction, frozen=True, kw_only=True):
    """The action starts; written before its effect."""

    attempt: int
    """Which attempt it is, from 1."""


class ActionConfirmed(OfAction, frozen=True, kw_only=True):
    """The action took effect."""

    summary: str
    """The result in one line."""
    receipt: Mapping[str, Any]
    """The adapter's receipt."""


class ActionRetried(OfAction, frozen=True, kw_only=True):
    """The action failed and is tried again."""

    message: str
    """Why it failed."""
    wait_s: float
    """Seconds until the next attempt."""


class ActionFailed(OfAction, frozen=True, kw_only=True):
    """The action failed finally."""

    message: str
    """Why it failed."""
    receipt: Mapping[str, Any]
    """The adapter's receipt."""


class ActionUncertain(OfAction, frozen=True, kw_only=True):
    """It is not known whether the action took effect; the user is asked."""

    message: str
    """Why it is not known."""


class ActionRefused(Detail, frozen=True, kw_only=True):
    """A guard refused a tool call."""

    tool: str
    """The tool."""
    guard: str
    """The guard that refused."""
    message: str
    """Why, as the model reads it."""
    payload: Mapping[str, Any]
    """The refused call's arguments."""
