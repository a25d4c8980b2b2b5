"""The parts of an answer of the offline rules: text, then calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Answer(Struct, frozen=True):
    """Text for the user, and calls as (tool, arguments)."""

    words: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def asking(words: str, purpose: str, question: str, scope: list[str], escalation: str) -> Answer:
    """Return an answer that requests context."""
    arguments = {
        "purpose": purpose,
        "question": question,
        "scope": scope,
        "escalation": escalation,
    }
    return Answer(words, (("request_context", arguments),))


def finishing(status: str, summary: str, words: str = "") -> Answer:
    """Return an answer that ends the task: ``done`` or ``blocked``."""
    return Answer(words or summary, (("finish", {"status": status, "summary": summary}),))


def written(arguments: Mapping[str, Any]) -> str:
    """Return arguments as the JSON text of a tool call."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)
