"""The tokens of a whole prompt: system text, messages, tool calls and tool definitions.

Every text is counted as it is sent; what providers write around it is a few tokens for each message, call
and tool (:mod:`cockpit.core.fenced_text`). See ``docs/reference/kernel.md``, the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

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
    return f"[{','.join(map(_describe, tools))}]"


def _describe(tool: ToolSpec) -> str:
    name, description = canonical_json(tool.name), canonical_json(tool.description)
    return f"[{name},{description},{_schema_json(tool)}]"


def _schema_json(tool: ToolSpec) -> str:
    return canonical_json(dict(tool.parameters))


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
    messages = ",".join(map(_encode_message, prompt.messages))
    parts = [canonical_json(prompt.system), f"[{messages}]"]
    parts += [tools_json(prompt.tools), canonical_json(prompt.max_output_tokens)]
    return text_digest(f"[{','.join(parts)}]")


def _encode_message(message: PromptMessage) -> str:
    body = msgspec.to_builtins(message)
    del body["cache"]
    if not body["thinking"]:
        del body["thinking"]
    return canonical_json(body, is_plain=True)
