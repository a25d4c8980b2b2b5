"""The user's words as the blocks of a prompt: text, images where the agent takes them, links to files.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import base64
import re
from pathlib import PurePosixPath
from typing import Any

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.secret_files import is_sensitive
from cockpit.agents.acp_client.agent_connection import Abilities

LARGEST_IMAGE = 5 * 1024 * 1024
_MOST_FILES = 20
_NAMED = re.compile(r"(?<!\S)@([^\s@]{1,400})")
_IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


def prompt_blocks(text: str, confined: Confined, abilities: Abilities) -> list[dict[str, Any]]:
    """Return the blocks of a prompt; ``@PATH`` in ``text`` names a file. It reads files, so it blocks."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for match in list(_NAMED.finditer(text))[:_MOST_FILES]:
        path = match[1].rstrip(".,;:!?)")
        if not is_sensitive(path) and (block := _file_block(path, confined, abilities)) is not None:
            blocks.append(block)
    return blocks


def _file_block(path: str, confined: Confined, abilities: Abilities) -> dict[str, Any] | None:
    try:
        real = confined.inside(path)
        if not real.is_file():
            return None
        kind = _IMAGES.get(PurePosixPath(path).suffix.lower(), "")
        if kind and abilities.images:
            with confined.open_read(path) as file:
                data = file.read(LARGEST_IMAGE + 1)
            if len(data) <= LARGEST_IMAGE:
                encoded = base64.b64encode(data).decode("ascii")
                return {"type": "image", "mimeType": kind, "data": encoded}
    except PathRefused:
        return None
    return {"type": "resource_link", "uri": real.as_uri(), "name": path}
