"""The meaning of the keys on the screen over all projects, as text: footer, and keys under a proposal."""

from __future__ import annotations

from cockpit.app.key_policy import KeyPolicy
from widgets.views import KeyHintView, QueueView


def proposal_hints(
    queue: QueueView, policy: KeyPolicy, *, is_deciding: bool
) -> tuple[KeyHintView, ...]:
    """Return the keys under the proposal in front; Enter and Escape are its own where ``is_deciding``."""
    front = queue.front
    if front is None:
        return ()
    if policy.second is not None:
        return (
            KeyHintView("y", "approve", True, "y"),
            KeyHintView("any other key", "cancel", press="escape"),
        )
    if not is_deciding:
        return (KeyHintView("⇥", "decide", True, "tab"),)
    label = "then y approve" if front.second_key else "approve"
    if policy.front is not None and not policy.is_read:
        label = "read on"
    elif front.questions:
        label = "answer in its project"
    discuss = "no, and why" if front.kind == "permission" else "discuss"
    hints = [
        KeyHintView("⏎", label, True, "enter"),
        KeyHintView("esc", discuss, True, "escape"),
        KeyHintView("x", "reject", press="x"),
    ]
    if front.diffs:
        hints.append(KeyHintView("v", "whole change", press="v"))
    if queue.total > 1:
        hints.append(KeyHintView("]", f"next ({queue.total})", press="right_square_bracket"))
    return tuple(hints)


def footer_hints(*, is_deciding: bool, is_only: bool) -> list[KeyHintView]:
    """Return the footer. ``is_only``: no screen is below this one."""
    back = KeyHintView("q", "quit" if is_only else "back", press="q")
    if is_deciding:
        return [
            KeyHintView("⇥", "projects", True, "tab"),
            KeyHintView("o", "go there", press="o"),
            back,
        ]
    return [
        KeyHintView("⏎", "open the project", True, "enter"),
        KeyHintView("j k", "move", press="j"),
        KeyHintView("w", "what waits there", press="w"),
        KeyHintView("s", "waiting first", press="s"),
        KeyHintView("⇥", "the queue", press="tab"),
        back,
    ]
