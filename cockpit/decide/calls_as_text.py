"""Calls that a model prints as text in place of making them, as small models do.

Only a text that is exactly that counts: one or more JSON objects with a name and arguments, bare, fenced or
in ``<tool_call>`` tags, and nothing else. See ``docs/reference/loop.md``, calls as text.
"""

from __future__ import annotations

import json
import re

from cockpit.core.canonical_json import canonical_json
from cockpit.core.read_record import InvalidRecord, parse_object
from cockpit.decide.model import ToolCall

MAX_TEXT = 200_000
"""Characters of an answer that is looked at; what is longer stays text."""

_BEGIN = re.compile(r"\s*(?:```(?:json|tool_call)?[ \t]*\n|<tool_call>)?\s*")
_ENDS = {
    "": re.compile(r"\s*"),
    "<tool_call>": re.compile(r"\s*</tool_call>\s*"),
    "```": re.compile(r"\s*```(?=\s|\Z)\s*"),
}
"""What has to follow a call, by what it begins with."""
_DECODER = json.JSONDecoder()


def read_calls_as_text(text: str) -> list[ToolCall]:
    """Return the calls that ``text`` consists of, in order; none where it holds anything else."""
    calls: list[ToolCall] = []
    place = 0
    if len(text) > MAX_TEXT or "{" not in text:
        return []
    while place < len(text):
        begin = _BEGIN.match(text, place)
        opened = begin[0].strip() if begin else ""
        place = begin.end() if begin else place
        try:
            _, end = _DECODER.raw_decode(text, place)
            written = parse_object(text[place:end], name="call", max_characters=MAX_TEXT)
        except (ValueError, RecursionError, InvalidRecord):
            return []
        closed = _ENDS["```" if opened.startswith("```") else opened].match(text, end)
        is_call = set(written) == {"name", "arguments"} and isinstance(written["arguments"], dict)
        if closed is None or not is_call:
            return []
        call_id = f"text-{len(calls) + 1}"
        calls.append(ToolCall(call_id, str(written["name"]), canonical_json(written["arguments"])))
        place = closed.end()
    return calls
