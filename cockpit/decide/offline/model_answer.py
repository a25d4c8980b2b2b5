"""The parts of an answer of the offline rules: text, then calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

ON_MIND = "You would like to discuss this first. What is on your mind?"


class Answer(Struct, frozen=True):
    """Text for the user, and calls as (tool, arguments)."""

    words: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def asking(words: str, **arguments: Any) -> Answer:
    """Return an answer that requests context: ``purpose``, ``question``, ``scope``, ``escalation``."""
    return Answer(words, (("request_context", arguments),))


def finishing(status: str, summary: str, words: str = "") -> Answer:
    """Return an answer that ends the task: ``done`` or ``blocked``."""
    return Answer(words or summary, (("finish", {"status": status, "summary": summary}),))


def shorten(text: str) -> str:
    """Return a text as one line of at most 160 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"
