"""Prompts that the tests of this folder send."""

from __future__ import annotations

from cockpit.decide.model import (
    ModelEvent,
    PacketFact,
    Prompt,
    PromptCall,
    PromptMessage,
    TextDelta,
    ToolSpec,
)

FINISH = ToolSpec(
    "finish",
    "End the session.",
    {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]},
)

PLAIN = Prompt(
    system="You steer.",
    messages=(PromptMessage("user", "Review the change."),),
    tools=(FINISH,),
)

EXCHANGE = Prompt(
    system="You steer.",
    messages=(
        PromptMessage("user", "The task.", cache=True),
        PromptMessage(
            "assistant",
            "I read first.",
            calls=(
                PromptCall("call_a", "request_context", '{"purpose":"see"}'),
                PromptCall("call_b", "note", '{"text":"n"}'),
            ),
        ),
        PromptMessage("tool", "the file", call_id="call_a", tool_name="request_context"),
        PromptMessage("tool", "noted", call_id="call_b", tool_name="note", cache=True),
        PromptMessage("user", "Go on."),
    ),
    tools=(FINISH,),
)


def fact(text: str, source_type: str = "file", source_ref: str = "a.py") -> PacketFact:
    return PacketFact(
        fact_id="f1", band="situational", source_type=source_type, source_ref=source_ref, level="full",
        text=text, tokens=10, pinned=False, ordinal=1, provenance={},
    )  # fmt: skip


def text_in(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))
