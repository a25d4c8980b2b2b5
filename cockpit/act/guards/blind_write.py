"""A write to a file of which the session has seen nothing. See ``docs/reference/actions.md``, guards."""

from __future__ import annotations

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.model_tools import Call
from cockpit.act.text_edits import bytes_digest, digest_now
from cockpit.act.tool_payloads import EditFile, WriteFile


class BlindWriteGuard(Struct, frozen=True):
    """Refuse to write an existing file of which nothing is in the packet.

    A write of the very content that the file has already passes.
    """

    confined: Confined
    name: str = "blind_write"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, WriteFile | EditFile):
            return None
        path = self.confined.relative(call.payload.path)
        if state.packet_files.get(path) or not self.confined.inside(path).exists():
            return None
        if isinstance(call.payload, WriteFile) and self._holds(path, call.payload.content):
            return None
        return Refusal(
            self.name,
            f"{path} exists, and nothing of it is in your context: you would write blind. Ask for it "
            f"first: request_context with file:{path}.",
        )

    def _holds(self, path: str, content: str) -> bool:
        """Whether the file already has the content to write: then no unseen text is lost."""
        return digest_now(self.confined, path) == bytes_digest(content.encode())
