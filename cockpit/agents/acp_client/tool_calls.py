"""The agent's tool calls as it reports them: whole, bounded in number, and worded for the journal.

A later update holds only what changed, and some agents ask permission with the call's id alone, so each call
is kept as the union of what was said of it. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import difflib
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from cockpit.agents.streams.stream_events import (
    Latest,
    MessageEnd,
    StreamEvent,
    ToolEnded,
    ToolStarted,
)
from cockpit.core.json_fields import JsonObject, get_count, get_object, get_objects, get_text
from cockpit.core.secrets import mask
from cockpit.core.text import keep_ends
from cockpit.store.journal.details.agent_turns import RunnerToolUpdated

MOST_CALLS = 500
"""Calls of a session that are remembered; the oldest are forgotten first."""
_MOST_PLACES = 20
_MOST_DIFF = 24_000
_MOST_DIFFED = 400_000
"""Characters of a file's two texts up to which lines are compared; longer ones are only counted."""
_MOST_OUTPUT = 8_000
_TAIL = 2_000


class ToolCall(Struct):
    """One tool call."""

    call_id: str
    body: dict[str, Any] = field(default_factory=dict)
    """What the agent said of it so far, as JSON of the protocol."""
    started: bool = False
    """Whether its beginning is journalled."""
    ended: bool = False
    has_asked: bool = False
    """Whether the agent asked before it."""
    gated: bool = False
    """Whether the agent asked before it, or did it through cockpit, and the user or their policy answered."""

    @property
    def kind(self) -> str:
        """Its kind, in the protocol's words."""
        return get_text(self.body, "kind")[:40] or "other"

    @property
    def status(self) -> str:
        """``pending``, ``in_progress``, ``completed`` or ``failed``."""
        return get_text(self.body, "status")

    @property
    def input(self) -> JsonObject:
        """Its arguments."""
        return get_object(self.body, "rawInput")

    def list_news(self, root: str, run: int) -> Iterator[StreamEvent]:
        """Return what the last update says of it: its start, its output so far, or its end."""
        if not self.started:
            self.started = True
            yield MessageEnd()
            yield self._describe(root)
        if self.status in ("completed", "failed") and not self.ended:
            yield self.end(root, failed=self.status == "failed")
        elif self.status == "in_progress":
            updated = RunnerToolUpdated(
                run=run,
                call_id=self.call_id,
                title=self._describe(root).title,
                output=mask(self.output()[-_TAIL:]),
            )
            yield Latest(f"call {self.call_id}", updated)

    def end(self, root: str, *, failed: bool) -> ToolEnded:
        """Return its end, once."""
        self.ended = True
        # One that ended in vain while it waited for its answer was not done without asking.
        gated = self.gated or (failed and self.has_asked)
        return ToolEnded(
            self.call_id,
            self.output(),
            failed,
            self.exit_code(),
            self._describe(root),
            partial(self.diff, root),
            gated,
        )

    def _describe(self, root: str) -> ToolStarted:
        locations = get_objects(self.body, "locations")[:_MOST_PLACES]
        places = []
        for location in locations:
            line = get_count(location, "line")
            if path := shorten_path(get_text(location, "path"), root):
                places.append(f"{path}:{line}" if line else path)
        return ToolStarted(
            self.call_id,
            self.kind,
            self.input,
            get_text(self.body, "title"),
            self.kind,
            tuple(places),
            self.files(),
        )

    def files(self) -> tuple[str, ...]:
        """Return the files that it is about, as the agent names them."""
        locations = get_objects(self.body, "locations")[:_MOST_PLACES]
        return tuple(path for each in locations if (path := get_text(each, "path")))

    def diff(self, root: str) -> str:
        """Return the changes that the agent reported, as a diff."""
        parts, left = [], _MOST_DIFF
        for block in get_objects(self.body, "content"):
            if block.get("type") == "diff" and left > 0:
                parts.append(_diff(block, root)[:left])
                left -= len(parts[-1])
        return mask("\n".join(parts))

    def output(self) -> str:
        """Return the text of its result."""
        blocks = get_objects(self.body, "content")
        texts = [text for each in blocks if (text := get_text(get_object(each, "content"), "text"))]
        if not texts:
            raw = self.body.get("rawOutput")
            text = raw if isinstance(raw, str) else ""
            if isinstance(raw, dict):
                text = get_text(raw, "output") or get_text(raw, "stdout")
            texts = [text]
        return keep_ends("\n".join(texts), _MOST_OUTPUT)

    def exit_code(self) -> int | None:
        """Return the exit code of a command, where the agent says it."""
        raw = get_object(self.body, "rawOutput")
        for name in ("exitCode", "exit_code"):
            value = raw.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31:
                return value
        return None


class ToolCalls:
    """The tool calls of a session, by id."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, ToolCall] = OrderedDict()

    def update(self, body: Mapping[str, Any]) -> ToolCall:
        """Add what an update says of its call; returns the call."""
        call_id = get_text(body, "toolCallId")[:200]
        call = self._calls.get(call_id)
        if call is None or (call.ended and get_text(body, "sessionUpdate") == "tool_call"):
            call = self._calls[call_id] = ToolCall(call_id)
        self._calls.move_to_end(call_id)
        while len(self._calls) > MOST_CALLS:
            self._calls.popitem(last=False)
        call.body.update({name: value for name, value in body.items() if value is not None})
        return call

    def find(self, call_id: str) -> ToolCall | None:
        """Return the call of that id."""
        return self._calls.get(call_id[:200])

    def note_written(self, path: str, root: str) -> None:
        """Note that a file was written through cockpit: the call that runs and is about it alone is gated."""
        for call in self.list_running():
            named = {shorten_path(str(Path(root, each)), root) for each in call.files()}
            if call.kind == "edit" and named == {path}:
                call.gated = True

    def note_run(self, command: str) -> None:
        """Note that a command ran in a terminal of cockpit's: the running call of just that one is gated."""
        for call in self.list_running():
            if (
                call.kind == "execute"
                and get_text(call.input, "command").strip() == command.strip()
            ):
                call.gated = True

    def list_running(self) -> list[ToolCall]:
        """Return the calls that began and did not end."""
        return [call for call in self._calls.values() if call.started and not call.ended]


def shorten_path(path: str, root: str) -> str:
    """Return a path from the worktree's top, or as it is outside of it."""
    if not path:
        return ""
    normal = os.path.normpath(path[:4_096])
    return os.path.relpath(normal, root) if f"{normal}/".startswith(f"{root}/") else normal


def diff_texts(path: str, before: str | None, after: str) -> str:
    """Return the change of a file as a unified diff, or its size where the texts are long."""
    if len(before or "") + len(after) > _MOST_DIFFED:
        old, new = (before or "").count("\n"), after.count("\n")
        return f"--- {path}\n+++ {path}\n@@ {old:,} lines become {new:,}; too long to compare @@"
    lines = difflib.unified_diff(
        (before or "").splitlines(),
        after.splitlines(),
        f"a/{path}" if before is not None else "/dev/null",
        f"b/{path}",
        lineterm="",
    )
    return "\n".join(lines)


def _diff(block: JsonObject, root: str) -> str:
    path = shorten_path(get_text(block, "path"), root)
    old = block.get("oldText")
    before = get_text(block, "oldText") if isinstance(old, str) else None
    return diff_texts(path, before, get_text(block, "newText"))
