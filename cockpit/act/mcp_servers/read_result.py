"""What an MCP server's tool returned, as text for a receipt: masked, without escapes, bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.act.own_tools.tool_definition import clean_text
from cockpit.core.failure_lines import clip_middle

MAX_RESULT_CHARS = 24_000
_MAX_READ = 2_000_000


def render_content(result: Mapping[str, Any], secrets: Sequence[tuple[str, str]] = ()) -> str:
    """Return the text of a result; ``secrets`` are values that never appear, each with its name.

    Pictures, sounds and links are named and not shown.
    """
    parts = [
        _render_part(part) for part in result.get("content") or () if isinstance(part, Mapping)
    ]
    structured = result.get("structuredContent")
    if structured is not None and not any(part.strip() for part in parts):
        parts.append(json.dumps(structured, ensure_ascii=False, indent=1))
    text = "\n".join(part for part in parts if part)[:_MAX_READ]
    for value, name in secrets:
        text = text.replace(value, f"[masked:{name}]")
    return clip_middle(clean_text(text, len(text) + 1), MAX_RESULT_CHARS) or "(nothing)"


def _render_part(part: Mapping[str, Any]) -> str:
    match part.get("type"):
        case "text":
            return str(part.get("text", ""))
        case "image" | "audio" as kind:
            size = len(str(part.get("data", ""))) * 3 // 4
            return f"[{kind} {part.get('mimeType', '')}, {size:,} bytes: not shown]"
        case "resource":
            resource = part.get("resource")
            inner = resource if isinstance(resource, Mapping) else {}
            text = inner.get("text")
            return (
                str(text) if text is not None else f"[resource {inner.get('uri', '')}: not shown]"
            )
        case "resource_link":
            return f"[link {part.get('uri', '')}: not followed]"
        case _:
            return ""
