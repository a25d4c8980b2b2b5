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
    """The answer to a tool call: ``allow``, ``deny`` or ``ask``, its message, and ``by`` which rule."""

    __slots__ = ("answer", "by", "words")

    def __init__(self, answer: str, words: str, by: str) -> None:
        self.answer = answer
        self.words = words
        self.by = by

    def reply(self, event: str) -> dict[str, Any]:
        """Return the answer in the form that both agents read."""
        if event == "PreToolUse":
            return _answer(
                event, permissionDecision=self.answer, permissionDecisionReason=self.words
            )
        if self.answer == "allow":
            return _answer(event, decision={"behavior": "allow"})
        return _answer(event, decision={"behavior": "deny", "message": self.words})

    def body(self, event: Event) -> dict[str, Any]:
        """Return the answer as it is stored in the journal."""
        subject = event.command or event.tool
        return {"tool": event.tool, "answer": self.answer, "by": self.by, "about": subject[:500]}


DENY_RULES = "deny rules"


def _answer(event: str, **detail: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **detail}}


def decide_permission(
    event: Event, place: Checkout, *, policy: str = "", config: str = ""
) -> PermissionDecision | None:
    """Answer a tool call before it runs, or a permission request; None for no answer.

    ``policy`` and ``config`` are as for :func:`cockpit.hook.read_policy.read_policy`.
    """
    from cockpit.loop.permissions.judge_tool import find_tool_denial, judge_tool

    denial = find_tool_denial(event.tool, event.arguments, event.command)
    if denial.words:
        return PermissionDecision("deny", f"cockpit denies this: {denial.words}", DENY_RULES)
    if event.name != "PermissionRequest":
        return _ask(event, denial.unjudged) if denial.unjudged else None
    from cockpit.hook.read_policy import read_policy

    approval = read_policy(place.home, policy, config)
    if approval not in ("reads", "all"):
        return None
    judged = judge_tool(event.tool, event.arguments, event.command, root=place.root, cwd=event.cwd)
    if judged.reads or (not judged.waits and approval == "all"):
        return PermissionDecision(
            "allow", f"cockpit's policy {approval!r} allows it.", f"policy:{approval}"
        )
    return None


def _ask(event: Event, why: str) -> PermissionDecision:
    """Let the user decide about a call that deny rules cannot judge, whatever the agent's own rules say.

    Codex takes no such answer from a hook and runs the call, so there it is refused with the way out.
    """
    words = f"cockpit cannot judge this: {why}."
    if event.agent != "codex":
        return PermissionDecision("ask", words, DENY_RULES)
    return PermissionDecision("deny", f"{words} Run it in shorter, plain commands.", DENY_RULES)
