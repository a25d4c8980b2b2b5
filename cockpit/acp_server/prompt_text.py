"""The text of a prompt: a client's content blocks as the message that the agent reads.

See ``docs/reference/acp.md``, prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cockpit.core.errors import CockpitError
from cockpit.core.json_fields import JsonObject, get_object, get_text

MOST_CHARACTERS = 1_000_000
"""Characters of one prompt."""


class PromptInvalid(CockpitError):
    """A prompt that the agent cannot read."""

    code = "usage"


def read_prompt(blocks: Sequence[JsonObject], root: Path) -> str:
    """Return the text of ``blocks``; a file of the project ``root`` is named as ``@path``.

    Raises :class:`PromptInvalid` for an empty or too long prompt, and for images and sound.
    """
    parts: list[str] = []
    for block in blocks:
        match get_text(block, "type"):
            case "text":
                parts.append(get_text(block, "text"))
            case "resource_link":
                parts.append(_name_resource(get_text(block, "uri"), root))
            case "resource":
                parts.append(_quote_resource(get_object(block, "resource"), root))
            case other:
                raise PromptInvalid(
                    f"cockpit's agent reads text and files; this prompt contains {other or 'something else'}."
                    " Remove it and send the prompt again."
                )
    text = "".join(parts).strip()
    if not text:
        raise PromptInvalid("The prompt is empty. Say what to do.")
    if len(text) > MOST_CHARACTERS:
        raise PromptInvalid(
            f"The prompt has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read. Name the files"
            " instead of quoting them."
        )
    return text


def _name_resource(uri: str, root: Path) -> str:
    """Return ``@path`` for a file of the project, else the address."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = Path(unquote(parts.path))
        if path.is_relative_to(root):
            return f"@{path.relative_to(root)}"
    return uri


def _quote_resource(resource: JsonObject, root: Path) -> str:
    name = _name_resource(get_text(resource, "uri"), root)
    text = get_text(resource, "text")
    if not text:
        return name
    fence = fence_for(text)
    return f"\n\n{name.removeprefix('@')}:\n{fence}\n{text}\n{fence}\n\n"


def fence_for(text: str) -> str:
    """Return a Markdown fence that no line of ``text`` can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence
