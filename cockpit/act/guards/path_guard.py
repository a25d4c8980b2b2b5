"""Paths that no action may write. See ``docs/reference/actions.md``, guards."""

from __future__ import annotations

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.model_tools import Call
from cockpit.act.tool_payloads import EditFile, GitCommit, WriteFile


class PathGuard(Struct, frozen=True):
    """Refuse paths outside the project and in git's or cockpit's own files."""

    confined: Confined
    name: str = "path"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        match call.payload:
            case WriteFile(path=path) | EditFile(path=path):
                paths: tuple[str, ...] = (path,)
            case GitCommit(paths=paths):
                pass
            case _:
                return None
        try:
            for path in paths:
                self.confined.inside(path, write=True)
        except PathRefused as error:
            return Refusal(self.name, str(error))
        return None
