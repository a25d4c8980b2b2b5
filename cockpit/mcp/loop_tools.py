"""The loop's own tools for outside agents: ask to read, propose, and see what a wave knew.

There is none that approves: a proposal waits in the one queue for a person. Source: RFC-09, RFC-003
§10.3; design of the faces, MCP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cockpit.mcp.tool_schema import WrongArguments

LONGEST_WAIT_S = 600
"""The longest that one call waits for a person, in seconds."""

WAIT_S = 20
"""How long it waits when nothing is said: shorter than any client's patience."""


def _said(words: str, default: Any = None) -> Any:
    return field(default=default, metadata={"description": words})


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Ask to read, or (``proposal_id`` alone) what became of an earlier request."""

    purpose: str | None = None
    question: str | None = None
    scope: tuple[str, ...] | None = _said(
        "file:PATH[:A-B], search:REGEX [in GLOB], tree:DIR, symbol:NAME, diff:RANGE, pr:N, issue:N"
    )
    escalation: str | None = None
    proposal_id: str | None = _said("alone: an earlier one's result")
    wait_s: int = WAIT_S
    offset: int = 0

    def call(self) -> Mapping[str, Any]:
        """The arguments of the loop's own call."""
        return _given(self, "purpose", "question", "scope", "escalation")


@dataclass(frozen=True, slots=True)
class ProposeAction:
    """Propose to do something, or (``proposal_id`` alone) what became of an earlier proposal."""

    action: Literal["write_file", "edit_file", "run", "github", "git_commit"] | None = None
    arguments: Mapping[str, Any] | None = _said(
        "write_file {path, content}; edit_file {path, old, new, replace_all?}; run {argv, reason, "
        "timeout_s?}; github {command}; git_commit {message, paths}"
    )
    proposal_id: str | None = _said("alone: an earlier one's result")
    wait_s: int = WAIT_S

    def call(self) -> Mapping[str, Any]:
        """The arguments of the action's own call."""
        return dict(self.arguments or {})


@dataclass(frozen=True, slots=True)
class ProposeProfileChange:
    """Propose to shift attention, or (``proposal_id`` alone) what became of an earlier proposal."""

    base_profile_version: int | None = None
    effective_waves: int | None = None
    bands: Mapping[str, Any] | None = _said("by band: min_tokens, target_tokens, max_tokens")
    rules: tuple[Mapping[str, Any], ...] | None = _said(
        "rule_id with priority_weight, risk_weight, novelty_weight, recency_half_life"
    )
    reason: str | None = None
    proposal_id: str | None = _said("alone: an earlier one's result")
    wait_s: int = WAIT_S

    def call(self) -> Mapping[str, Any]:
        """The arguments of the loop's own call."""
        return _given(self, "base_profile_version", "effective_waves", "bands", "rules", "reason")


Proposing = RequestContext | ProposeAction | ProposeProfileChange


@dataclass(frozen=True, slots=True)
class PacketOf:
    """Which packet: the newest of your own session, or of ``session_id``; of its Nth wave."""

    session_id: str | None = None
    wave: int | None = None
    fields: Literal["minimal", "standard", "full"] = "standard"
    offset: int = 0


def checked(tool: str, asked: Proposing) -> Proposing:
    """The arguments themselves. Raises ``WrongArguments`` for a proposal that names an earlier one as
    well, and for neither."""
    if not 0 <= asked.wait_s <= LONGEST_WAIT_S:
        raise WrongArguments(f"{tool}: wait_s is 0 to {LONGEST_WAIT_S} seconds.")
    new = bool(asked.call()) or (isinstance(asked, ProposeAction) and asked.action is not None)
    if asked.proposal_id and new:
        raise WrongArguments(
            f"{tool}: proposal_id stands alone (with wait_s): it asks what became of an earlier one."
        )
    if not asked.proposal_id and not new:
        raise WrongArguments(f"{tool}: say what you propose, or name an earlier proposal_id.")
    if isinstance(asked, ProposeAction) and new and asked.action is None:
        raise WrongArguments("propose_action needs 'action': write_file, edit_file, run, …")
    return asked


def _given(record: Any, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(record, name)) is not None}
