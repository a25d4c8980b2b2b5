"""The tools that a model is offered, and how its calls are read.

A call that cannot be read raises :class:`MalformedCall`, whose words go back to the model: they
name the tool, the field and what would be right. Source: design of Decide ("a malformed call gets
a precise error back") and of Act.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from cockpit.act.command_line import CommandRefused, check_argv, split_command
from cockpit.act.tool_payloads import (
    MAX_TIMEOUT_S,
    EditFile,
    Finish,
    GitCommit,
    GitHub,
    Payload,
    ProposeProfileChange,
    RequestContext,
    Run,
    WriteFile,
)
from cockpit.core.errors import CockpitError

MAX_ARGUMENTS = 2_000_000
"""The longest arguments text that is read, in characters."""


class MalformedCall(CockpitError):
    """The model's call cannot be read. The message is written for the model."""

    code = "malformed_call"


@dataclass(frozen=True, slots=True)
class ToolDef:
    """A tool as a model sees it: ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was read: ``arguments`` as the model wrote them, ``payload`` as it is meant."""

    name: str
    arguments: Mapping[str, Any]
    payload: Payload


def _schema(required: tuple[str, ...], **fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(words: str) -> dict[str, Any]:
    return {"type": "string", "description": words}


def _texts(words: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": words}


TOOLS: tuple[ToolDef, ...] = (
    ToolDef(
        "request_context",
        "Ask to read something. A person sees every item with its cost before anything is read. "
        "Ask for all that you need at once, and for nothing that is in your context already.",
        _schema(
            ("purpose", "question", "scope"),
            purpose=_text("What you are trying to achieve."),
            question=_text("The question that these items will answer."),
            scope=_texts(
                "Items: file:PATH[:A-B], file:GLOB (all its files: file:src/**/*.py), "
                "search:REGEX [in GLOB], tree:DIR, symbol:NAME, "
                "diff:RANGE, log:RANGE, pr:N, issue:N; each may end in ' @outline' or "
                "' @reference'."
            ),
            escalation=_text("What you will do if this is not granted."),
        ),
    ),
    ToolDef(
        "write_file",
        "Create a text file, or replace all of one that is in your context.",
        _schema(
            ("path", "content"),
            path=_text("Path from the project's root."),
            content=_text("The whole new content."),
        ),
    ),
    ToolDef(
        "edit_file",
        "Replace text in a file that is in your context. `old` must stand in the file exactly "
        "once, spaces included, unless replace_all is true.",
        _schema(
            ("path", "old", "new"),
            path=_text("Path from the project's root."),
            old=_text("The exact text to replace, with enough lines around it to be unique."),
            new=_text("The text that takes its place."),
            replace_all={"type": "boolean", "description": "Replace every occurrence."},
        ),
    ),
    ToolDef(
        "run",
        "Run one program in the project's root, without a shell: no pipes, redirections, variables "
        "or globs. Give argv, or command as one line. The network is off.",
        _schema(
            ("reason",),
            argv=_texts("Program and arguments, e.g. ['pytest', '-q', 'tests']."),
            command=_text("The same as one line; use argv or command, not both."),
            reason=_text("Why, in one sentence, for the person who decides."),
            timeout_s={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_TIMEOUT_S,
                "description": "Seconds until it is ended; 120 if left out.",
            },
        ),
    ),
    ToolDef(
        "github",
        "Run one gh command that writes to this project's repository: a review, a comment, a pull "
        "request. To read a pull request or an issue use request_context with pr:N or issue:N.",
        _schema(
            ("command",),
            command=_text("For example: gh pr review 24 --request-changes --body 'Two findings …'"),
        ),
    ),
    ToolDef(
        "git_commit",
        "Commit exactly the named files as they are now. Whatever else is staged stays staged.",
        _schema(
            ("message", "paths"),
            message=_text("The commit message: a subject line, a blank line, why."),
            paths=_texts("Files from the project's root, deleted ones included."),
        ),
    ),
    ToolDef(
        "propose_profile_change",
        "Ask to shift what your context pays attention to, for the next waves; then it goes back. "
        "Use it when facts that you need are dropped or shortened. What you leave out stays.",
        _schema(
            ("base_profile_version", "effective_waves", "reason"),
            base_profile_version={
                "type": "integer",
                "minimum": 1,
                "description": "The current version; it stands in this tool's description.",
            },
            effective_waves={
                "type": "integer",
                "minimum": 1,
                "description": "For how many waves it is to hold.",
            },
            bands={
                "type": "object",
                "description": "By band: any of min_tokens, target_tokens, max_tokens.",
            },
            rules={
                "type": "array",
                "items": {"type": "object"},
                "description": "By rule_id: any of priority_weight (0 to 4), risk_weight, "
                "novelty_weight (0 to 1), recency_half_life (waves).",
            },
            reason=_text("Why, in one sentence, for the person who decides."),
        ),
    ),
    ToolDef(
        "finish",
        "End the task: 'done' when its definition of done is met, 'blocked' when you cannot go on.",
        _schema(
            ("status", "summary"),
            status={"type": "string", "enum": ["done", "blocked"]},
            summary=_text("What was found or done, or what is in the way."),
        ),
    ),
)

ACTIONS = ("write_file", "edit_file", "run", "github", "git_commit")
"""The tools that change something, and so go through guards, approval and the outbox."""


@dataclass(frozen=True, slots=True)
class _RunArguments:
    reason: str
    argv: tuple[str, ...] | None = None
    command: str | None = None
    timeout_s: int = 120


_SHAPES: Mapping[str, type[Any]] = {
    "request_context": RequestContext,
    "propose_profile_change": ProposeProfileChange,
    "write_file": WriteFile,
    "edit_file": EditFile,
    "run": _RunArguments,
    "github": GitHub,
    "git_commit": GitCommit,
    "finish": Finish,
}


def parse_call(name: str, arguments_json: str) -> Call:
    """Read a model's call. Raises :class:`MalformedCall` with words for the model."""
    shape = _SHAPES.get(name)
    if shape is None:
        raise MalformedCall(f"There is no tool {name!r}. The tools are: {', '.join(_SHAPES)}.")
    arguments = _read(name, arguments_json)
    _check_fields(name, shape, arguments)
    try:
        payload = msgspec.convert(arguments, shape, strict=True)
    except msgspec.ValidationError as error:
        raise MalformedCall(f"{name}: {error}.") from error
    if isinstance(payload, _RunArguments):
        payload = _run(payload)
    _check_values(name, payload)
    return Call(name, arguments, payload)


def _read(name: str, text: str) -> dict[str, Any]:
    if len(text) > MAX_ARGUMENTS:
        raise MalformedCall(f"{name}: the arguments are longer than {MAX_ARGUMENTS} characters.")
    try:
        value = json.loads(
            text or "{}", object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise MalformedCall(
            f"{name}: the arguments are not valid JSON: {error.msg} at line {error.lineno}, "
            f"column {error.colno}."
        ) from error
    except RecursionError as error:
        raise MalformedCall(f"{name}: the arguments are nested too deeply.") from error
    except ValueError as error:
        raise MalformedCall(f"{name}: the arguments are not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise MalformedCall(f"{name}: the arguments must be a JSON object with named fields.")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the field {key!r} is given twice")
        found[key] = value
    return found


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _check_fields(name: str, shape: type[Any], arguments: Mapping[str, Any]) -> None:
    fields = dataclasses.fields(shape)
    names = [field.name for field in fields]
    extra = [key for key in arguments if key not in names]
    if extra:
        raise MalformedCall(
            f"{name} has no field {', '.join(map(repr, extra))}. "
            f"Its fields are: {', '.join(names)}."
        )
    missing = [
        field.name
        for field in fields
        if field.default is field.default_factory is dataclasses.MISSING
        and field.name not in arguments
    ]
    if missing:
        given = ", ".join(arguments) or "nothing"
        raise MalformedCall(f"{name} needs {', '.join(map(repr, missing))}; you gave {given}.")


def _run(arguments: _RunArguments) -> Run:
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
    return Run(argv, arguments.reason, arguments.timeout_s)


def _check_values(name: str, payload: Payload) -> None:
    for field in dataclasses.fields(payload):
        value = getattr(payload, field.name)
        texts = value if isinstance(value, tuple) else (value,)
        for text in texts:
            if isinstance(text, str) and not _encodable(text):
                raise MalformedCall(f"{name}: {field.name!r} holds half a surrogate pair.")
        if field.name in {"path", "message", "command", "reason", "paths"} and (
            not value or not all(str(text).strip() for text in texts)
        ):
            raise MalformedCall(f"{name}: {field.name!r} is empty.")
    if isinstance(payload, EditFile) and not payload.old:
        raise MalformedCall(
            "edit_file: 'old' is empty. Give the exact text to replace, or use write_file."
        )
    if isinstance(payload, EditFile) and payload.old == payload.new:
        raise MalformedCall("edit_file: 'old' and 'new' are the same; nothing would change.")


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
