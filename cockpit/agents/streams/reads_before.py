"""What agents read for a task before the built-in agent takes it up: external agents and earlier roles.

Its first packet has the same lines, read anew through Observe: it need not ask for them, and a request for
them is redundant. See ``docs/reference/agents.md``, what was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.agents.streams.seen_reads import LARGEST_SEEN, version_of
from cockpit.core.text import pluralize
from cockpit.loop.permissions.judge_tool import judge_reading
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.db.database import Store
from cockpit.store.sessions.seen_files import SeenFile, select_seen

MOST_READ_BEFORE = 20
"""Files that are read before the first wave, together with those of the task."""
MOST_BYTES_BEFORE = 80_000
"""Bytes of the parts that are taken over, about 20,000 tokens; the agent may request the others."""


class ReadsBefore(Struct, frozen=True):
    """What is read before the first wave, and the part of the prompt that names it."""

    items: tuple[str, ...] = ()
    text: str = ""


async def take_over_reads(
    store: Store, task_id: str, root: Path, scope: Sequence[str], most: int
) -> ReadsBefore:
    """Return up to ``most`` parts of files that agents read for the task, the last read first.

    Left out are parts beyond :data:`MOST_BYTES_BEFORE`, files that ``scope`` has whole, that are gone, and
    whatever is not an ordinary file of the project.
    """
    seen = await store.read(lambda connection: select_seen(connection, task_id))
    whole = {item.removeprefix("file:") for item in scope}
    parts = [part for part in seen if part.path not in whole]
    if not parts or most <= 0:
        return ReadsBefore()
    lines, items = await asyncio.to_thread(_describe, parts, root, most)
    if not items:
        return ReadsBefore()
    left = len(parts) - len(items)
    more = f"\n- and {pluralize(left, 'part')} more that you may request" if left > 0 else ""
    head = "\n\n### Read Before\n\nAgents before you read these for this task. They are in your context:\n\n"
    return ReadsBefore(tuple(items), f"{head}{chr(10).join(lines)}{more}\n")


def _describe(parts: Sequence[SeenFile], root: Path, most: int) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    items: list[str] = []
    confined = Confined(root)
    size = 0
    for part in parts:
        data = _load(confined, part.path)
        if data is None or len(items) >= most:
            continue
        rows = data.removesuffix(b"\n").split(b"\n")
        total = len(rows)
        first, last = part.first, min(part.last, total)
        part_size = sum(len(row) + 1 for row in rows[first - 1 : last])
        if first > last or size + part_size > MOST_BYTES_BEFORE:
            continue
        size += part_size
        is_whole = first == 1 and last == total
        item = ScopeItem("file", part.path, None if is_whole else (first, last))
        same = version_of(data) == part.version
        state = f"version {part.version}, unchanged" if same else f"changed since {part.version}"
        lines.append(f"- `{item}`: {part.agent} in {part.session_id}, {state}")
        items.append(str(item))
    return lines, items


def _load(confined: Confined, path: str) -> bytes | None:
    """Return an ordinary text file of the project; None for any other."""
    top = str(confined.root)
    if not judge_reading(path, root=top, cwd=top).reads:
        return None
    try:
        with confined.open_read(path) as file:
            data = file.read(LARGEST_SEEN + 1)
    except (PathRefused, OSError, ValueError):
        return None
    return data if data and len(data) <= LARGEST_SEEN else None
