"""The form of Claude Code's last answer, as a JSON schema: no words to interpret.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from cockpit.core.json_fields import get_text

AnswerForm = Literal["status", "verdict"]
"""What a role ends with: the status of its work, or a reviewer's verdict."""

STATUSES = ("done", "nothing_to_do", "blocked", "needs_answer")
VERDICTS = ("PASS", "FAIL", "BLOCKED")


def schema_text(form: AnswerForm) -> str:
    """Return the schema as one argument of a command; every field is required."""
    text = {"type": "string"}
    fields: dict[str, Any] = {"status": {"type": "string", "enum": list(STATUSES)}, "summary": text}
    if form == "verdict":
        fields = {
            "verdict": {"type": "string", "enum": list(VERDICTS)},
            "looked_at": text,
            "findings": text,
        }
    schema = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return json.dumps(schema, separators=(",", ":"))


def write_answer(answer: Mapping[str, Any]) -> str:
    """Return an answer in that form as the text that a role's last message is; empty for another form."""
    verdict, status = get_text(answer, "verdict"), get_text(answer, "status")
    if verdict in VERDICTS:
        looked_at = " ".join(get_text(answer, "looked_at").split())
        seen = f"\nLOOKED AT: {looked_at}" if looked_at else ""
        return f"VERDICT: {verdict}{seen}\n\n{get_text(answer, 'findings')}".strip()
    if status not in STATUSES:
        return ""
    summary = get_text(answer, "summary").strip()
    if status == "needs_answer":
        return summary or "It needs an answer and did not say to what."
    return f"STATUS: {status.replace('_', ' ')}\n{summary}".strip()
