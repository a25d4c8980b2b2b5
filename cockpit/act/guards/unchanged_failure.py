"""A command that failed before, with nothing changed since. See ``docs/reference/actions.md``, guards."""

from __future__ import annotations

from msgspec import Struct

from cockpit.act.guards.action_guard import GuardState, Refusal, argv_digest
from cockpit.act.model_tools import Call
from cockpit.act.tool_payloads import Run


class UnchangedFailureGuard(Struct, frozen=True):
    """Refuse a command that failed before while nothing has changed since, and its failure is in view.

    A failure that is not in the packet cannot be read there, so the command may run again.
    """

    name: str = "unchanged_failure"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        command = argv_digest(call.payload.argv)
        place = state.shown_failures.get(command)
        if place is None or state.failed_commands.get(command) != state.changes:
            return None
        return Refusal(
            self.name,
            "This command failed before, and nothing has changed since: it would fail again. Its "
            f"result is in your context as [exchange:{place}]; request_context with receipt:{place} "
            "shows all of it. Change what made it fail, or run a command that shows more.",
        )
