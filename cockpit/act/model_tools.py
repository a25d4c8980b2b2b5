"""The tools that a model is offered, and the reading of its calls.

A call that cannot be read raises :class:`MalformedCall`, whose message goes back to the model: it
names the tool, the field and a correct value. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.act.command_line import CommandRefused, check_argv, split_command
from cockpit.act.tool_payloads import (
    MAX_TIMEOUT_S,
    ChangeTaskType,
    CreateSkill,
    EditFile,
    Finish,
    GitCommit,
    GitHub,
    Payload,
    ProposePlan,
    ProposeProfileChange,
    ProposeTool,
    RequestContext,
    ResumeAction,
    Run,
    RunArguments,
    UpdateWip,
    WriteFile,
)
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import InvalidRecord, parse_object, read_record, record_schema

MAX_ARGUMENTS = 2_000_000
"""The longest text of arguments that is read, in characters."""


class MalformedCall(CockpitError):
    """The model's call cannot be read. The message is written for the model."""

    code = "malformed_call"


class ToolDef(Struct, frozen=True):
    """A tool as the model sees it: ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Call(Struct, frozen=True):
    """A parsed call: ``arguments`` as the model wrote them, ``payload`` as a record."""

    name: str
    arguments: Mapping[str, Any]
    payload: Payload


def _tool(name: str, record: type[Any], description: str) -> ToolDef:
    # Providers want `required` even where every field may be left out.
    return ToolDef(name, description, {"required": [], **record_schema(record, closed=True)})


TOOL_RECORDS: Mapping[str, type[Any]] = {
    "request_context": RequestContext,
    "write_file": WriteFile,
    "edit_file": EditFile,
    "run": RunArguments,
    "github": GitHub,
    "git_commit": GitCommit,
    "create_skill": CreateSkill,
    "propose_tool": ProposeTool,
    "resume_action": ResumeAction,
    "propose_profile_change": ProposeProfileChange,
    "change_task_type": ChangeTaskType,
    "propose_plan": ProposePlan,
    "update_wip": UpdateWip,
    "finish": Finish,
}
"""The record that each tool's arguments are read into."""

TOOLS: tuple[ToolDef, ...] = (
    _tool(
        "request_context",
        RequestContext,
        "Ask to read something. The user sees every item with its cost before anything is read. "
        "Ask for all that you need at once, and for nothing that is in your context already.",
    ),
    _tool(
        "write_file",
        WriteFile,
        "Create a text file, or replace all of one that is in your context.",
    ),
    _tool(
        "edit_file",
        EditFile,
        "Replace text in a file that is in your context. `old` must occur in the file exactly "
        "once, spaces included, unless replace_all is true.",
    ),
    _tool(
        "run",
        RunArguments,
        "Run one program in the project's root, without a shell: no pipes, redirections, variables "
        "or globs. Give argv, or command as one line. The network is off. Say changes: false for tests, "
        "checks and whatever else writes nothing. To read files, searches or diffs use request_context: "
        "a plain command that reads becomes such a request.",
    ),
    _tool(
        "github",
        GitHub,
        "Run one gh command in this project's repository: a review, a comment, a pull request, an "
        "issue. A command that only reads becomes a request for context (gh:COMMAND). "
        "`gh pr create` pushes the current branch first.",
    ),
    _tool(
        "git_commit",
        GitCommit,
        "Commit exactly the named files as they are now. Whatever else is staged stays staged.",
    ),
    _tool(
        "create_skill",
        CreateSkill,
        "Propose a skill: instructions that later tasks of this project will need again. The user reads "
        "it first; approved, it is loaded at once. Use it for what took effort to find out.",
    ),
    _tool(
        "propose_tool",
        ProposeTool,
        "Ask for a tool that is missing: the user decides whether it grows, test first, and whether it is "
        "adopted; then you call it. Only where no tool and no command can do it.",
    ),
    _tool(
        "resume_action",
        ResumeAction,
        "Propose a kept action again, as it was, once you have read what it lacked. To change it, make its "
        "call anew instead.",
    ),
    _tool(
        "propose_profile_change",
        ProposeProfileChange,
        "Request a temporary profile change: other weights and token limits for your context in the "
        "next waves. Use it when facts that you need are dropped or shortened. Omitted values stay.",
    ),
    _tool(
        "change_task_type",
        ChangeTaskType,
        "Ask the user to let this session change things: it only reads until its task type changes. Use "
        "it when the user asks for the change itself, such as 'fix it now'.",
    ),
    _tool(
        "propose_plan",
        ProposePlan,
        "Propose the tasks for the backlog, all at once; this ends your part. A task is what one agent can "
        "do, test and merge by itself. The user approves, edits or discusses the whole; nothing is in the "
        "backlog before.",
    ),
    _tool(
        "update_wip",
        UpdateWip,
        "Record with the task each decision and its reason, what matters, and the next step. Whoever "
        "resumes the task reads it first, and the report lists the decisions.",
    ),
    _tool(
        "finish",
        Finish,
        "End the task: 'done' when its definition of done is met, 'blocked' when you cannot continue.",
    ),
)

_LISTS_OF_TEXT: Mapping[str, tuple[str, ...]] = {
    tool.name: tuple(
        field
        for field, schema in tool.parameters.get("properties", {}).items()
        if schema.get("type") == "array" and schema.get("items", {}).get("type") == "string"
    )
    for tool in TOOLS
}
"""Each tool's fields that are lists of texts."""

WITH_TASK = ("update_wip",)
"""The tools of sessions that work on a task of the backlog."""

PLANNING = ("propose_plan",)
"""The tools of sessions that plan."""

ACTIONS = ("write_file", "edit_file", "run", "github", "git_commit", "create_skill")
"""The tools that change something, and so go through guards, approval and the outbox."""


GROW = "propose_tool"
"""The tool that asks for another tool; what it changes in the end is the adoption of that one."""

RESUME = "resume_action"
"""The tool that proposes a kept action again."""

ADDED_ACTIONS = ("own_tool", "mcp_tool")
"""The types of actions that call tools which cockpit does not bring."""


_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "request_context": {
        "purpose": "see how it is built",
        "question": "what calls it?",
        "scope": ["tree:.", "file:README.md"],
    },
    "edit_file": {"path": "app.py", "old": "a - b", "new": "a + b"},
    "write_file": {"path": "notes.md", "content": "# Notes\n"},
    "run": {"command": "python3 -m pytest -q", "reason": "see whether it is green"},
    "git_commit": {"message": "Fix add", "paths": ["app.py"]},
    "finish": {"status": "done", "summary": "add adds now."},
}
"""One good call of each tool that a model is lost without."""


def suggest_tool(name: str, names: Sequence[str]) -> str:
    """Return the nearest of the offered tools to one that is not there, with an example where one is kept."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    nearest = near[0] if near else "request_context" if "request_context" in names else names[0]
    example = _EXAMPLES.get(nearest)
    return f"The nearest is {nearest}" + (f": {json.dumps(example)}." if example else ".")


def parse_call(name: str, arguments_json: str) -> Call:
    """Parse a model's call. Raises :class:`MalformedCall` with a message for the model."""
    record = TOOL_RECORDS.get(name)
    if record is None:
        names = ", ".join(TOOL_RECORDS)
        hint = suggest_tool(name, tuple(TOOL_RECORDS))
        raise MalformedCall(f"There is no tool {name!r}. {hint} The tools are: {names}.")
    try:
        arguments = parse_object(arguments_json or "{}", name=name, max_characters=MAX_ARGUMENTS)
        arguments = _read_single_strings(name, arguments)
        payload = read_record(record, arguments, name=name)
    except InvalidRecord as error:
        raise MalformedCall(str(error)) from error
    if isinstance(payload, RunArguments):
        payload = _read_run(payload)
    _check_values(name, payload)
    return Call(name, arguments, payload)


def _read_single_strings(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Take one string for a list of one, and a command line where argv is due, as small models write them."""
    if name == "run" and isinstance(arguments.get("argv"), str) and "command" not in arguments:
        return {"command" if field == "argv" else field: each for field, each in arguments.items()}
    singles = [
        field
        for field in _LISTS_OF_TEXT[name]
        if isinstance(arguments.get(field), str) and arguments[field].strip()
    ]
    return {**arguments, **{field: [arguments[field]] for field in singles}}


def _read_run(arguments: RunArguments) -> Run:
    if (arguments.argv is None) == (arguments.command is None):
        raise MalformedCall("run needs either 'argv' or 'command': exactly one of the two.")
    if not 1 <= arguments.timeout_s <= MAX_TIMEOUT_S:
        raise MalformedCall(
            f"run: timeout_s must be 1 to {MAX_TIMEOUT_S} seconds, not {arguments.timeout_s}."
        )
    try:
        argv = (
            split_command(arguments.command)
            if arguments.command is not None
            else check_argv(arguments.argv or ())
        )
    except CommandRefused as error:
        raise MalformedCall(f"run: {error}") from error
    return Run(argv, arguments.reason, arguments.timeout_s, arguments.changes)


def _check_values(name: str, payload: Payload) -> None:
    for field in payload.__struct_fields__:
        value = getattr(payload, field)
        texts = value if isinstance(value, tuple) else (value,)
        if field in {
            "path",
            "message",
            "command",
            "reason",
            "paths",
            "task_type",
            "body",
            "purpose",
            "call",
            "example_input",
            "expected_output",
        } and (not value or not all(str(text).strip() for text in texts)):
            raise MalformedCall(f"{name}: {field!r} is empty.")
    if isinstance(payload, UpdateWip) and not (
        payload.decisions or payload.context.strip() or payload.next_step.strip()
    ):
        raise MalformedCall("update_wip: nothing to record. Give decisions, context or next_step.")
    if isinstance(payload, EditFile) and not payload.old:
        raise MalformedCall(
            "edit_file: 'old' is empty. Give the exact text to replace, or use write_file."
        )
    if isinstance(payload, EditFile) and payload.old == payload.new:
        raise MalformedCall("edit_file: 'old' and 'new' are the same; nothing would change.")
