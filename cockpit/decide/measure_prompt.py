"""The tokens of a whole prompt: system text, messages, tool calls and tool definitions.

Every text is counted as it is sent; what providers write around it is a few tokens for each message, call
and tool (:mod:`cockpit.core.fenced_text`). See ``docs/reference/kernel.md``, compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.fenced_text import CALL_TOKENS, MESSAGE_TOKENS
from cockpit.decide.model import Prompt, PromptMessage, ToolSpec
from cockpit.store.context.kept_by_identity import KeptByIdentity

CountTokens = Callable[[str], int]
MOST_CHARACTERS = 4_000_000
"""Characters of messages that are kept with their JSON, and with their tokens."""


def count_prompt(
    prompt: Prompt, count: CountTokens, kept: KeptByIdentity[PromptMessage, int] | None = None
) -> int:
    """Count the tokens of the prompt; ``count`` counts those of one text.

    ``kept`` are the tokens of messages that ``count`` has counted before.
    """
    system = count(prompt.system) + MESSAGE_TOKENS if prompt.system else 0
    messages = 0
    known_tokens = [None] * len(prompt.messages) if kept is None else kept.get_all(prompt.messages)
    for message, tokens in zip(prompt.messages, known_tokens, strict=True):
        if tokens is None:
            tokens = _count_message(message, count)
            if kept is not None:
                kept.put(message, tokens, 1 + len(message.text))
        messages += tokens
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
    described = (_tool_json.get(tool) or _tool_json.put(tool, _describe(tool)) for tool in tools)
    return f"[{','.join(described)}]"


def _describe(tool: ToolSpec) -> str:
    name, description = canonical_json(tool.name), canonical_json(tool.description)
    return f"[{name},{description},{_schema_json(tool)}]"


_schemas: KeptByIdentity[Mapping[str, Any], str] = KeptByIdentity(256)
"""The canonical JSON of tools' parameters: they are the same in every wave."""
_tool_json: KeptByIdentity[ToolSpec, str] = KeptByIdentity(256)
_message_json: KeptByIdentity[PromptMessage, str] = KeptByIdentity(MOST_CHARACTERS)
"""The canonical JSON of messages: a prompt repeats most of those before."""


def _schema_json(tool: ToolSpec) -> str:
    parameters = tool.parameters
    return _schemas.get(parameters) or _schemas.put(parameters, canonical_json(dict(parameters)))


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
    kept = _message_json.get_all(prompt.messages)
    messages = ",".join(
        text or _keep_json(message, _encode_message(message))
        for message, text in zip(prompt.messages, kept, strict=True)
    )
    parts = [canonical_json(prompt.system), f"[{messages}]"]
    parts += [tools_json(prompt.tools), canonical_json(prompt.max_output_tokens)]
    return text_digest(f"[{','.join(parts)}]")


def _keep_json(message: PromptMessage, text: str) -> str:
    return _message_json.put(message, text, len(text))


def _encode_message(message: PromptMessage) -> str:
    body = msgspec.to_builtins(message)
    del body["cache"]
    if not body["thinking"]:
        del body["thinking"]
    return canonical_json(body, is_plain=True)
