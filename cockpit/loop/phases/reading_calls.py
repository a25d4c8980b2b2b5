"""Calls of an action tool that only read: they become context requests, with the same review.

Reading is not an action. A ``github`` call with a command that reads (``gh pr view 24``) is planned with the
arguments of the context request that it stands for, under ``reads``. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from cockpit.access.gh_command import parse_gh
from cockpit.access.gh_flags import GhRefused, split_words
from cockpit.act.tool_payloads import GitHub, Payload

READS = "reads"
"""The field of a planned call with the arguments of the context request that it stands for."""


def find_request(payload: Payload, project_repo: str | None) -> dict[str, Any] | None:
    """Return the arguments of the context request that a call stands for; None for an action.

    ``project_repo`` is the project's ``owner/name`` on GitHub, where it is known.
    """
    if not isinstance(payload, GitHub):
        return None
    try:
        command = parse_gh(payload.command, project_repo=project_repo)
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
