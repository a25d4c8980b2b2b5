"""Permission answers for external agents: deny rules, then the approval policy, else the agent asks.

:mod:`cockpit.loop.permissions.judge_tool` judges. ``reads`` allows what is known to be a read. A call of
high risk is never allowed from here, whatever the policy. Without an answer the agent behaves as if there
were no hook. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import os
import sys

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
        subject = event.command or str(event.arguments.get("file_path") or event.tool)
        return {"tool": event.tool, "answer": self.answer, "by": self.by, "about": subject[:500]}


DENY_RULES = "deny rules"
POLICIES = ("ask", "trusted", "reads", "all")
_LARGEST = 1_000_000


def _answer(event: str, **detail: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **detail}}


def decide_permission(
    event: Event, place: Checkout, *, policy: str = "", config: str = ""
) -> PermissionDecision | None:
    """Answer a tool call before it runs, or a permission request; None for no answer.

    ``policy`` and ``config`` are as for :func:`read_policy`.
    """
    from cockpit.loop.permissions.judge_tool import find_tool_denial, judge_tool

    denial = find_tool_denial(event.tool, event.arguments, event.command)
    if denial.words:
        return PermissionDecision("deny", f"cockpit denies this: {denial.words}", DENY_RULES)
    if event.name != "PermissionRequest":
        return _ask(event, denial.unjudged) if denial.unjudged else None
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


def read_policy(home: str, policy: str = "", config: str = "") -> str:
    """Return the policy of the project whose main checkout is ``home``, without loading the other settings.

    The layers are those of :mod:`cockpit.config.load_settings`: the user's file, and the project's (which can
    only tighten to ``ask``). The environment is an agent's, and a repository's settings of that agent can set
    it: it tightens, and does not loosen. An unreadable value is ``ask``.

    ``policy`` is that of the run that cockpit started the agent for. ``config`` is the folder of the user's
    settings as it was when the hook was installed; without it, it is the usual one of the user's account.
    """
    if policy:
        return policy if policy in POLICIES else "ask"
    if os.environ.get("COCKPIT_APPROVE", "").strip() not in ("", *POLICIES[1:]):
        return "ask"
    project = _of(os.path.join(home, ".cockpit", "config.toml"))
    if project:
        return "ask"  # all that a project may set, and what a wrong value comes to
    mine = _of(os.path.join(config or _usual_folder(), "config.toml"))
    return mine if mine in POLICIES else "ask"


def _of(path: str) -> str:
    """Return the file's policy; '' without one, ``?`` when the file cannot be read."""
    if not os.path.isfile(path):
        return ""
    import tomllib  # few users and projects have the file, and each call of a hook would load it

    try:
        with open(path, "rb") as file:
            table = tomllib.loads(file.read(_LARGEST).decode("utf-8")).get("approval", {})
    except (OSError, ValueError):
        return "?"
    set_to = table.get("policy", "") if isinstance(table, dict) else "?"
    return set_to if isinstance(set_to, str) else "?"


def _usual_folder() -> str:
    """Return where settings are without any variable: not even ``HOME`` is the user's own here."""
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.devnull
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "cockpit")
    return os.path.join(home, ".config", "cockpit")
