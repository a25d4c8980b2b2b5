"""What an external agent's context has of the project: one file of lines per context.

A line is appended by each call of the hook, in one write; a line that was cut off is skipped. The file is
emptied when the agent's context is: at its start, its compaction, its end. See ``docs/reference/guards.md``,
the guard as a hook.
"""

from __future__ import annotations

import hashlib
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "read-guard"
LARGEST = 2_000_000
"""Bytes of a ledger; a larger one is emptied: the context is longer than any that is still whole."""
OLDEST_S = 7 * 24 * 3600
"""Ledgers of sessions that ended without saying so are removed after this."""


class ReadLedger:
    """The ledger of one context: of a session, or of one of its subagents."""

    __slots__ = ("folder", "path")

    def __init__(self, state: str, agent: str, session: str, context: str = "") -> None:
        self.folder = os.path.join(state, FOLDER)
        self.path = os.path.join(self.folder, _name(agent, session, context))

    def load(self) -> list[list[Any]]:
        """Return the entries, oldest first; none where they cannot be read."""
        try:
            with open(self.path, "rb") as file:
                data = file.read(LARGEST + 1)
        except OSError:
            return []
        if len(data) > LARGEST:
            self.empty()
            return []
        entries = []
        for line in data.split(b"\n"):
            try:
                entry = json.loads(line) if line else None
            except ValueError:
                continue
            if isinstance(entry, list) and entry:
                entries.append(entry)
        return entries

    def append(self, *entries: list[Any]) -> None:
        """Add entries. Raises ``OSError``."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        text = "".join(json.dumps(entry) + "\n" for entry in entries).encode("ascii")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self.path, flags, 0o600)
        try:
            os.write(file, b"\n" + text)  # a line before it may have been cut off
        finally:
            os.close(file)

    def empty(self) -> None:
        """Forget everything: the agent's context begins again."""
        try:
            os.unlink(self.path)
        except OSError:
            return

    def empty_session(self, agent: str, session: str) -> None:
        """Forget the session's contexts, those of its subagents too, and remove what is old."""
        begin = _name(agent, session, "").partition(".")[0]
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    is_old = entry.stat(follow_symlinks=False).st_mtime < time.time() - OLDEST_S
                    if entry.name.startswith(begin) or is_old:
                        os.unlink(entry.path)
        except OSError:
            return


def _name(agent: str, session: str, context: str) -> str:
    whole = f"{agent}\0{session}".encode("utf-8", "surrogatepass")
    part = context.encode("utf-8", "surrogatepass")
    return f"{hashlib.sha256(whole).hexdigest()[:32]}.{hashlib.sha256(part).hexdigest()[:16]}"
