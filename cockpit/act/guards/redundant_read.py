"""A context request for text that is in the packet already. See ``docs/reference/guards.md``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.act.guards.action_guard import GuardState, PacketLines, Refusal
from cockpit.act.guards.line_coverage import clip_lines, covers_lines
from cockpit.act.model_tools import Call
from cockpit.act.text_edits import digest_read
from cockpit.act.tool_payloads import RequestContext

_FILE_ITEM = re.compile(
    r'^file:(?P<path>"(?:[^"\\]|\\.)*"|.+?)(?::(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?)?(?: @full)?$'
)


class RedundantReadGuard(Struct, frozen=True):
    """Refuse a context request whose text is all in the current packet, in the same version.

    Lines of files are compared here. What other sources answer was compared before (``shown_items``).
    """

    confined: Confined
    name: str = "redundant_read"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, RequestContext) or not call.payload.scope:
            return None
        items = [item.strip() for item in call.payload.scope]
        shown = {item: place for item in items if (place := self.find_place(item, state))}
        if len(shown) < len(set(items)):
            return None
        listed = "; ".join(
            f"{item} is in your context already ({place})" for item, place in shown.items()
        )
        return Refusal(
            self.name,
            f"Nothing was read: {listed}, unchanged. Work from what you have: make the change, run a"
            " command, or finish. Or ask for what is missing.",
        )

    def find_place(self, item: str, state: GuardState) -> str | None:
        """Return where all that ``item`` reads is in the packet; None when any of it is not.

        It reads the file's digest: not on the event loop.
        """
        compared = state.shown_items.get(item)
        if compared is not None:
            return compared
        match = _FILE_ITEM.match(item)
        if match is None:
            return None
        try:
            path = self.confined.relative(_read_path(match["path"]))
        except (PathRefused, ValueError):
            return None
        parts = self._list_current(path, state)
        for version in dict.fromkeys(part.content_sha for part in parts):
            of_version = [part for part in parts if part.content_sha == version]
            first, last = self._wanted(match, path, of_version, state)
            if covers_lines([(part.start, part.end) for part in of_version], first, last):
                return _describe_lines(first, last, of_version)
        return None

    def _list_current(self, path: str, state: GuardState) -> Sequence[PacketLines]:
        """List the parts of a file in the packet that have the content of now."""
        shown = [part for part in state.packet_files.get(path, ()) if part.content_sha]
        if not shown or state.pinned_rev:
            return shown
        now = digest_read(self.confined, path)
        return [part for part in shown if part.content_sha == now]

    def _wanted(
        self, match: re.Match[str], path: str, parts: Sequence[PacketLines], state: GuardState
    ) -> tuple[int, int]:
        """Return the requested lines; (1, 0) when their number is not known."""
        total = max((part.total_lines for part in parts), default=0)
        if match["first"] is not None:
            first = int(match["first"])
            return clip_lines(first, int(match["last"] or first), total)
        if total or state.pinned_rev:
            return 1, total
        with self.confined.open_read(path) as file:
            data = file.read()
        return 1, data.count(b"\n") + (not data.endswith(b"\n"))


def _read_path(text: str) -> str:
    if not text.startswith('"'):
        return text
    path = json.loads(text)
    if not isinstance(path, str) or not path:
        raise ValueError("no path")
    return path


def _describe_lines(first: int, last: int, parts: Sequence[PacketLines]) -> str:
    within = [part for part in parts if part.start <= last and part.end >= first]
    places = dict.fromkeys(part.where for part in within if part.where)
    return f"lines {first}-{last}" + (f", {', '.join(places)}" if places else "")
