"""Read a call of a tool that cockpit does not bring. See ``docs/reference/tools.md``."""

from __future__ import annotations

from cockpit.act.model_tools import MAX_ARGUMENTS, Call, MalformedCall
from cockpit.act.own_tools.check_arguments import find_argument_problem
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.tool_payloads import AddedCall
from cockpit.core.read_record import InvalidRecord, parse_object


def parse_added_call(definition: ToolDefinition, arguments_json: str) -> Call:
    """Read a call's arguments. Raises :class:`MalformedCall` with a message for the model."""
    name = definition.name
    try:
        arguments = parse_object(arguments_json or "{}", name=name, max_characters=MAX_ARGUMENTS)
    except InvalidRecord as error:
        raise MalformedCall(str(error)) from error
    if problem := find_argument_problem(definition, arguments):
        raise MalformedCall(problem)
    return Call(name, arguments, AddedCall(definition, arguments))
