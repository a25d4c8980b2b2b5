"""Commands that are never run, and those that only read. See ``docs/reference/actions.md``, guards."""

from __future__ import annotations

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.act.command_risk import judge
from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.model_tools import Call
from cockpit.act.reading_commands import find_reading
from cockpit.act.tool_payloads import Run


class CommandGuard(Struct, frozen=True):
    """Refuse commands that are never run, however they are wrapped."""

    name: str = "command"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        denied = judge(call.payload.argv).denied
        return Refusal(self.name, f"This command is not run. {denied}") if denied else None


class ReadingGuard(Struct, frozen=True):
    """Refuse to read a file of another revision, which the gateway shows as a diff.

    A plain command that reads became a context request before it came here.
    """

    confined: Confined
    name: str = "reading"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        reading = find_reading(call.payload.argv, self.confined, pinned_rev=state.pinned_rev)
        if reading is None or not reading.refusal:
            return None
        return Refusal(
            self.name, f"Reading is not an action, so this command is not run. {reading.refusal}"
        )
