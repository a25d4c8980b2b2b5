"""Turns of a scripted model, as its scenario file has them."""

from __future__ import annotations

import json
from typing import Any


def call(name: str, /, **arguments: Any) -> str:
    """A call of the turn before it."""
    return f'[[turn.call]]\nname = "{name}"\nraw_arguments = {json.dumps(json.dumps(arguments))}\n'


def turn(name: str = "", /, when: str = "", text: str = "", **arguments: Any) -> str:
    """A turn with at most one call; ``when`` is the inside of its condition."""
    said = (f"when = {{ {when} }}\n" if when else "") + (
        f"text = {json.dumps(text)}\n" if text else ""
    )
    return f"[[turn]]\n{said}{call(name, **arguments) if name else ''}"


def finish(when: str = "", status: str = "done", summary: str = "done") -> str:
    """The turn that ends a session."""
    return turn("finish", when, status=status, summary=summary)


def ask(*scope: str, when: str = "", text: str = "", **arguments: Any) -> str:
    """A turn that requests context."""
    given = {"purpose": "fix add", "question": "what does add do?", "scope": scope, **arguments}
    return turn("request_context", when, text, **given)
