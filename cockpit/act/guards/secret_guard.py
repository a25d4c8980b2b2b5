"""Arguments that contain a secret. See ``docs/reference/actions.md``, guards."""

from __future__ import annotations

from msgspec import Struct

from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.model_tools import Call
from cockpit.act.text_edits import WITHHELD
from cockpit.act.tool_payloads import Run
from cockpit.core.secrets import mask_value


class SecretGuard(Struct, frozen=True):
    """Refuse arguments that look like a secret: they would be stored and shown."""

    name: str = "secret"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        arguments = dict(call.arguments)
        masked = isinstance(call.payload, Run) and any("[masked:" in w for w in call.payload.argv)
        if not masked and mask_value(arguments) == arguments:
            return None
        return Refusal(
            self.name,
            f"{call.name}: the arguments contain text that looks like a key, a token or a password. "
            + WITHHELD,
        )
