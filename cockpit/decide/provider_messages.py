"""A :class:`Prompt` as a provider gets it: messages with cache points, tool definitions, settings.

Cache points go to Anthropic only (others cache by themselves): one after the system text, which
covers the tools too, and at most three on band boundaries.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cockpit.decide.model import Prompt, PromptMessage
from cockpit.decide.model_endpoint import Endpoint, Vendor
from cockpit.decide.provider_names import provider_name

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, UserContent
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings as RequestSettings

_MESSAGE_CACHE_POINTS = 3
"""Anthropic takes four in a request; the system text has the first."""
THINKING_TOKENS = {"minimal": 1_024, "low": 2_048, "medium": 10_000, "high": 16_384}
"""Tokens that thinking may take beside the answer, by how much a model is to think."""


def to_messages(prompt: Prompt, *, vendor: Vendor) -> list[ModelMessage]:
    """The prompt as pydantic-ai messages: system first, then the rest in their roles and order.

    What another vendor's model thought is left out: only its own takes it back.

    Consecutive ``user`` and ``tool`` messages share one request, as providers want the results of a
    turn's calls together. A cache point lands on the last block of the message that asks for one.
    """
    from pydantic_ai.messages import (
        CachePoint,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    cached = choose_cache_points(prompt.messages) if vendor == "anthropic" else frozenset()
    messages: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    if prompt.system:
        parts.append(SystemPromptPart(_sendable(prompt.system)))
    for index, message in enumerate(prompt.messages):
        if message.role == "assistant":
            if parts:
                messages.append(ModelRequest(parts=parts))
            answer: list[ThinkingPart | TextPart | ToolCallPart] = [
                ThinkingPart(
                    block.text,
                    id=block.block_id or None,
                    signature=block.signature or None,
                    provider_name=block.provider,
                    provider_details=dict(block.details) or None,
                )
                for block in message.thinking
                if block.provider == vendor
            ]
            if message.text:
                answer.append(TextPart(_sendable(message.text)))
            answer += [
                ToolCallPart(
                    tool_name=provider_name(call.name),
                    args=_sendable(call.arguments),
                    tool_call_id=call.call_id,
                )
                for call in message.calls
            ]
            messages.append(ModelResponse(parts=answer))
            # Opening the next request, the point attaches to the answer before it.
            parts = [UserPromptPart([CachePoint()])] if index in cached else []
        elif message.role == "tool":
            parts.append(
                ToolReturnPart(
                    tool_name=provider_name(message.tool_name),
                    content=_sendable(message.text),
                    tool_call_id=message.call_id,
                )
            )
            if index in cached:
                parts.append(UserPromptPart([CachePoint()]))
        elif message.text:
            content: list[UserContent] = [_sendable(message.text)]
            if index in cached:
                content.append(CachePoint())
            parts.append(UserPromptPart(content))
    if parts:
        messages.append(ModelRequest(parts=parts))
    return messages


def to_parameters(prompt: Prompt) -> ModelRequestParameters:
    """The prompt's tools, their schemas sent as they are written."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=provider_name(tool.name),
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
                strict=False,
            )
            for tool in prompt.tools
        ]
    )


def to_settings(prompt: Prompt, endpoint: Endpoint) -> RequestSettings:
    """Limits and caching of one request. The SDK's own retries are off: ours are journalled."""
    from pydantic_ai.settings import ModelSettings as RequestSettings
    from pydantic_ai.settings import merge_model_settings

    room = THINKING_TOKENS.get(endpoint.thinking, 0)
    settings = RequestSettings(
        max_tokens=prompt.max_output_tokens + room, timeout=endpoint.timeout_s, max_retries=0
    )
    if endpoint.thinking == "off":
        settings["thinking"] = False
    elif endpoint.thinking != "default":
        settings["thinking"] = endpoint.thinking
    if endpoint.vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModelSettings

        head = AnthropicModelSettings(anthropic_cache_instructions=True)
        tools = AnthropicModelSettings(anthropic_cache_tool_definitions=True)
        return merge_model_settings(settings, head if prompt.system else tools) or settings
    if endpoint.vendor == "openai":
        from pydantic_ai.models.openai import OpenAIResponsesModelSettings

        digest = hashlib.sha256(prompt.system.encode("utf-8", "replace")).hexdigest()
        own = OpenAIResponsesModelSettings(
            openai_prompt_cache_key=f"cockpit-{digest[:24]}", openai_store=False
        )
        return merge_model_settings(settings, own) or settings
    return settings


def _sendable(text: str) -> str:
    """Names of files may carry lone surrogates, which no request can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def choose_cache_points(messages: tuple[PromptMessage, ...]) -> frozenset[int]:
    """Where cache points go: on all boundaries if they fit, else on the first (the most stable
    prefix, so the one most often read) and the newest. A closing answer can carry none."""
    indexes = [
        index
        for index, message in enumerate(messages)
        if message.cache and (message.text or message.calls or message.role == "tool")
    ]
    if indexes and indexes[-1] == len(messages) - 1 and messages[-1].role == "assistant":
        indexes.pop()
    if len(indexes) > _MESSAGE_CACHE_POINTS:
        indexes = [indexes[0], *indexes[-(_MESSAGE_CACHE_POINTS - 1) :]]
    return frozenset(indexes)
