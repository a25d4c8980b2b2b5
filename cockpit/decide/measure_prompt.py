"""The tokens of a whole prompt: system text, messages, tool calls and tool definitions.

Every text is counted as it is sent; what providers write around it is a few tokens for each message, call
and tool (:mod:`cockpit.core.fenced_text`). See ``docs/reference/kernel.md``, compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.fenced_text import CALL_TOKENS, MESSAGE_TOKENS
from cockpit.decide.model import Prompt, PromptMessage, ToolSpec

CountTokens = Callable[[str], int]


def count_prompt(prompt: Prompt, count: CountTokens) -> int:
    """Count the tokens of the prompt; ``count`` counts those of one text."""
    system = count(prompt.system) + MESSAGE_TOKENS if prompt.system else 0
    messages = sum(_count_message(message, count) for message in prompt.messages)
    return system + messages + count_tools(prompt.tools, count)


def count_head(prompt: Prompt, count: CountTokens) -> int:
    """Count the tokens of what stays at the head of a session's prompts: tools, system text and task."""
    end = next((at for at, message in enumerate(prompt.messages, 1) if message.cache), 0)
    return count_prompt(replace(prompt, messages=prompt.messages[:end]), count)


def count_tools(tools: Sequence[ToolSpec], count: CountTokens) -> int:
    """Count the tokens of tool definitions: name, description and JSON Schema of each."""
    return sum(
        CALL_TOKENS + count(tool.name) + count(tool.description) + count(_schema_json(tool))
        for tool in tools
    )


def tools_json(tools: Sequence[ToolSpec]) -> str:
    """Return the canonical JSON of tools as they are described to the model."""
    described = (
        f"[{canonical_json(tool.name)},{canonical_json(tool.description)},{_schema_json(tool)}]"
        for tool in tools
    )
    return f"[{','.join(described)}]"


_schemas: dict[int, tuple[Mapping[str, Any], str]] = {}
"""The canonical JSON of tools' parameters, by identity: they are the same in every wave."""
_MOST_SCHEMAS = 256


def _schema_json(tool: ToolSpec) -> str:
    kept = _schemas.get(id(tool.parameters))
    if kept is not None and kept[0] is tool.parameters:
        return kept[1]
    if len(_schemas) >= _MOST_SCHEMAS:
        _schemas.clear()
    text = canonical_json(dict(tool.parameters))
    _schemas[id(tool.parameters)] = tool.parameters, text
    return text


def _count_message(message: PromptMessage, count: CountTokens) -> int:
    tokens = MESSAGE_TOKENS + count(message.text)
    tokens += sum(CALL_TOKENS + count(block.text) for block in message.thinking)
    for call in message.calls:
        tokens += CALL_TOKENS + count(call.name) + count(call.arguments) + count(call.call_id)
    if message.role == "tool":
        tokens += CALL_TOKENS + count(message.tool_name) + count(message.call_id)
    return tokens


def digest_prompt(prompt: Prompt) -> str:
    """Return the sha256 of everything that is sent."""
    messages = msgspec.to_builtins(prompt.messages)
    for message in messages:
        del message["cache"]
        if not message["thinking"]:
            del message["thinking"]
    parts = [canonical_json(prompt.system), canonical_json(messages, is_plain=True)]
    parts += [tools_json(prompt.tools), canonical_json(prompt.max_output_tokens)]
    return text_digest(f"[{','.join(parts)}]")
