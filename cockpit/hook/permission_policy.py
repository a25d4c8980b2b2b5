"""Permission answers for external agents: deny rules, then the approval policy, else the agent asks.

:mod:`cockpit.loop.permissions.judge_tool` judges. ``reads`` allows what is known to be a read. A call of
high risk is never allowed from here, whatever the policy. Without an answer the agent behaves as if there
were no hook. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cockpit.core.find_checkout import Checkout
    from cockpit.hook.event_payload import Event


class PermissionDecision:
    """The answer to a tool call: ``allow`` or deny, its message, and ``by`` which rule."""

    __slots__ = ("allow", "by", "words")

    def __init__(self, allow: bool, words: str, by: str) -> None:
        self.allow = allow
        self.words = words
        self.by = by

    def answer(self, event: str) -> dict[str, Any]:
        """Return the answer in the form that both agents read."""
        if event == "PreToolUse":
            decision = "allow" if self.allow else "deny"
            return _answer(event, permissionDecision=decision, permissionDecisionReason=self.words)
        if self.allow:
            return _answer(event, decision={"behavior": "allow"})
        return _answer(event, decision={"behavior": "deny", "message": self.words})

    def body(self, event: Event) -> dict[str, Any]:
        """Return the answer as it is stored in the journal."""
        answer = "allow" if self.allow else "deny"
        subject = event.command or event.tool
        return {"tool": event.tool, "answer": answer, "by": self.by, "about": subject[:500]}


def _answer(event: str, **detail: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **detail}}


def decide_permission(
    event: Event, place: Checkout, *, policy: str = "", config: str = ""
) -> PermissionDecision | None:
    """Answer a tool call before it runs, or a permission request; None for no answer.

    ``policy`` and ``config`` are as for :func:`cockpit.hook.read_policy.read_policy`.
    """
    from cockpit.loop.permissions.judge_tool import find_tool_denial, judge_tool

    if words := find_tool_denial(event.tool, event.arguments, event.command):
        return PermissionDecision(False, f"cockpit denies this: {words}", "deny rules")
    if event.name != "PermissionRequest":
        return None
    from cockpit.hook.read_policy import read_policy

    approval = read_policy(place.home, policy, config)
    if approval not in ("reads", "all"):
        return None
    judged = judge_tool(event.tool, event.arguments, event.command, root=place.root, cwd=event.cwd)
    if judged.reads or (judged.risk != "high" and approval == "all"):
        return PermissionDecision(
            True, f"cockpit's policy {approval!r} allows it.", f"policy:{approval}"
        )
    return None
