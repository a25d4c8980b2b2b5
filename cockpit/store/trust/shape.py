"""The shape of a request: what makes two requests the same one for learning, and what a rule covers.

A rule covers a request if and only if both have the same shape, so its text is all that it can let pass.
Specified in ``docs/reference/trust.md``, shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, to_builtins

from cockpit.core.canonical_json import canonical_json, digest, parse_json

InnerLoop = Literal["orient", "decide"]
LOOPS: tuple[InnerLoop, InnerLoop] = ("orient", "decide")
Effect = Literal["pass", "card"]
"""What a rule does: it lets a request pass, or it shows a short card that one key approves."""

OWN = "(the task's own)"
"""Stands for the object of the task: its pull request, its range. No item or argument is written so."""

CONTEXT = "context"
GITHUB = "github"


class Shape(Struct, frozen=True):
    """One shape of requests."""

    asker: str
    """The external agent; empty for the built-in agent."""
    task_type: str
    """The task type of the session."""
    kind: str
    """``context``, or the type of an action or of a permission: ``run``, ``write_file``, ``execute``, …"""
    words: tuple[str, ...]
    """What is asked for: source and place, or the command's words, with folders in place of their files."""

    @property
    def digest(self) -> str:
        return digest(to_builtins(self))

    @property
    def rule_id(self) -> str:
        """The id of the rule, or of the offer of one, that covers this shape."""
        return f"t-{self.digest[:10]}"

    @property
    def inner_loop(self) -> InnerLoop:
        return "orient" if self.kind in (CONTEXT, "read", "search") else "decide"

    @property
    def effect(self) -> Effect:
        """What a rule of this shape may do: what reaches other people is always the user's to send."""
        return "card" if self.kind == GITHUB else "pass"

    def as_json(self) -> str:
        return canonical_json(to_builtins(self))

    def describe(self) -> str:
        """Return the shape in words, in one line."""
        what = " ".join(self.words)
        match self.kind:
            case "context":
                text = f"read {what}"
            case "run" | "execute":
                text = f"run {what}"
            case _:
                text = f"{self.kind.replace('_', ' ')} {what}".rstrip()
        who = f"{self.asker}: " if self.asker else ""
        return f"{who}{text}"


def read_shape(text: str) -> Shape:
    """Read what :meth:`Shape.as_json` wrote."""
    value: Mapping[str, Any] = parse_json(text)
    return Shape(
        str(value["asker"]), str(value["task_type"]), str(value["kind"]), tuple(value["words"])
    )
