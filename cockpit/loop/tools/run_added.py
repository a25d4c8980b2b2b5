"""Previews and the dispatcher of a session's actions, calls of added tools included."""

from __future__ import annotations

from cockpit.act.dispatch_actions import Dispatcher
from cockpit.act.model_tools import Call
from cockpit.act.own_tools.check_arguments import parse_added_call
from cockpit.act.preview import preview_action
from cockpit.act.proposed_action import ActionPreview
from cockpit.act.text_edits import ActionRefused
from cockpit.act.tool_payloads import AddedCall
from cockpit.loop.wave_context import Engine


def open_dispatcher(engine: Engine) -> Dispatcher:
    """Return a dispatcher for every action of the engine's sessions."""
    if engine.added is None:
        return Dispatcher(engine.store, engine.ground)
    return Dispatcher(engine.store, engine.ground, engine.added.adapters())


async def preview_call(engine: Engine, call: Call) -> ActionPreview:
    """Return what ``call`` will do. Raises ``CockpitError`` with a message for the model."""
    if not isinstance(call.payload, AddedCall):
        return await preview_action(call, engine.ground)
    if engine.added is None:
        raise ActionRefused(f"{call.name} cannot be called here.")
    return engine.added.preview(call.payload)


def parse_edited_call(engine: Engine, tool_id: str, text: str) -> Call:
    """Return the call of an added tool with the arguments that the user wrote.

    Raises ``MalformedCall`` for arguments that it does not take, and ``ActionRefused``.
    """
    definition = None if engine.added is None else engine.added.find_approved(tool_id)
    if definition is None:
        raise ActionRefused(
            f"{tool_id} is not approved any more; it was not run. Reject the proposal, or approve"
            " the tool first."
        )
    return parse_added_call(definition, text)


def find_allowing_rule(engine: Engine, preview: ActionPreview) -> str | None:
    """Return the name of the rule of the user's settings that approves an action, or None."""
    return None if engine.added is None else engine.added.find_allowing_rule(preview)
