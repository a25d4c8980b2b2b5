"""Calls of an action tool that only read: they become context requests, with the same review.

Reading is not an action. A ``github`` call with a command that reads (``gh pr view 24``) and a ``run`` of one
(``cat a.py``) are planned with the arguments of the context request that they stand for, under ``reads``.
See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from cockpit.access.gh_command import parse_gh
from cockpit.access.gh_flags import GhRefused, split_words
from cockpit.act.reading_commands import find_reading
from cockpit.act.tool_payloads import GitHub, Payload, Run
from cockpit.loop.wave_context import WaveContext

READS = "reads"
"""The field of a planned call with the arguments of the context request that it stands for."""


def find_request(context: WaveContext, payload: Payload) -> dict[str, Any] | None:
    """Return the arguments of the context request that a call stands for; None for an action."""
    match payload:
        case GitHub():
            return _find_github_request(context, payload)
        case Run():
            return _find_command_request(context, payload)
        case _:
            return None


def _find_command_request(context: WaveContext, payload: Run) -> dict[str, Any] | None:
    """A command without scope items for all that it reads stays an action, and the guard refuses it."""
    reading = find_reading(
        payload.argv,
        context.engine.ground.confined,
        pinned_rev=context.session.rev is not None,
    )
    if not reading:
        return None
    return {
        "purpose": payload.reason,
        "question": f"What does `{shlex.join(payload.argv)[:400]}` print?",
        "scope": list(reading),
        "escalation": "",
    }


def _find_github_request(context: WaveContext, payload: GitHub) -> dict[str, Any] | None:
    try:
        command = parse_gh(payload.command, project_repo=context.engine.repo)
        words = split_words(payload.command)
    except GhRefused:
        return None  # the guard refuses it and says why
    if command.access != "read":
        return None
    line = shlex.join(words)
    return {
        "purpose": "Read from GitHub.",
        "question": f"What does `gh {line}` print?",
        "scope": [f"gh:{line}"],
        "escalation": "",
    }


def asks_to_read(call: Mapping[str, Any]) -> bool:
    """Return whether a planned call is a context request, by its tool or by what it stands for."""
    return call["name"] == "request_context" or bool(call.get(READS))


def request_arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of the context request of a call that :func:`asks_to_read`."""
    arguments: Mapping[str, Any] = call.get(READS) or call["arguments"]
    return arguments
