"""Commands of ``gh`` that are not run. See ``docs/reference/actions.md``, guards."""

from __future__ import annotations

from msgspec import Struct

from cockpit.access.gh_command import parse_gh
from cockpit.access.gh_flags import GhRefused
from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.model_tools import Call
from cockpit.act.preview_command import explain_read
from cockpit.act.tool_payloads import GitHub


class GitHubGuard(Struct, frozen=True):
    """Allow only known ``gh`` commands that write, to this project's repository."""

    name: str = "github"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, GitHub):
            return None
        try:
            command = parse_gh(call.payload.command, project_repo=state.project_repo)
        except GhRefused as error:
            return Refusal(self.name, str(error))
        return Refusal(self.name, explain_read(command)) if command.access == "read" else None
