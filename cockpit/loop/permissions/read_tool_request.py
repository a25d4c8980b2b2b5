"""Permission requests read from the agents' own words: Claude Code's tools, and those of ACP.

Everything here was written by an agent: a value of another shape than expected reads as missing, and
nothing raises. See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.core.json_fields import parse_object
from cockpit.loop.permissions.question_form import (
    Question,
    read_claude_questions,
    read_form,
)
from cockpit.loop.permissions.tool_commands import peel_shells
from cockpit.loop.permissions.tool_names import SHELLS, join_words
from cockpit.loop.permissions.tool_request import (
    MOST_EDITS,
    FileEdit,
    OptionKind,
    PermissionOption,
    ToolRequest,
)

_CLAUDE_KINDS = {
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "NotebookEdit"), "edit"),
    **dict.fromkeys(SHELLS, "execute"),
    **dict.fromkeys(("Read", "NotebookRead", "LS"), "read"),
    **dict.fromkeys(("Glob", "Grep"), "search"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "fetch"),
    **dict.fromkeys(("TodoWrite", "ExitPlanMode", "AskUserQuestion"), "think"),
}
_ASKS_USER = "AskUserQuestion"
_PATH_KEYS = (
    *("file_path", "filePath", "notebook_path", "path", "abs_path", "filepath", "target"),
    *("source", "destination", "old_path", "new_path", "oldPath", "newPath"),
)
_TELLING = frozenset(("command", "cmd", "argv", "cwd", "workdir", *_PATH_KEYS))
"""Arguments that say what a call does."""
_ACP_KINDS = frozenset(("read", "edit", "delete", "move", "search", "execute", "think", "fetch"))
_OPTION_KINDS = get_args(OptionKind)


def read_claude_tool(
    tool_name: str,
    tool_input: Any,
    *,
    agent: str = "claude",
    transport: str = "stdio",
    call_id: str = "",
    cwd: str = "",
    why: str = "",
    options: tuple[PermissionOption, ...] = (),
    editable: bool = True,
) -> ToolRequest:
    """Read a tool call of Claude Code, or of an agent whose hooks use its names.

    ``why`` is the agent's reason beside the input; without it the input's ``description`` counts.
    """
    arguments = _mapping(tool_input)
    server, _, mcp_tool = _mcp_name(tool_name)
    kind = "mcp" if server else _CLAUDE_KINDS.get(tool_name, "other")
    command, argv = _command(arguments) if kind == "execute" else ("", ())
    paths = tuple(_named_paths(arguments))
    questions = read_claude_questions(arguments) if tool_name == _ASKS_USER else ()
    return ToolRequest(
        agent=agent,
        transport=transport,
        call_id=call_id,
        tool=tool_name,
        kind=kind,
        title=_claude_title(tool_name, arguments, command or join_words(list(argv)), mcp_tool),
        input=arguments,
        edits=tuple(_claude_edits(tool_name, arguments)),
        command=command,
        argv=argv,
        cwd=_text(arguments, "workdir") or cwd if kind == "execute" else cwd,
        server=server,
        paths=paths,
        why=why or _text(arguments, "description"),
        options=options,
        editable=editable and not questions,
        questions=questions,
        # The answers are part of the tool's input.
        form="claude" if questions and transport == "stdio" else "",
    )


def read_acp_tool(
    tool_call: Any,
    options: Any = (),
    *,
    agent: str,
    earlier: Any = None,
    cwd: str = "",
) -> ToolRequest:
    """Read the ``toolCall`` of an ACP ``session/request_permission``, given as plain JSON.

    ``earlier`` is the session's last ``tool_call`` or ``tool_call_update`` of the same id: some agents send
    the id alone when they ask. ``options`` are the request's, as JSON.
    """
    call = {
        **{name: value for name, value in _mapping(earlier).items() if value is not None},
        **{name: value for name, value in _mapping(tool_call).items() if value is not None},
    }
    raw = _mapping(call.get("rawInput", call.get("raw_input"))) or _written_input(earlier)
    title = _text(call, "title")
    stated = _text(call, "kind")
    server, tool = "", _text(raw, "tool_name") or _text(call, "toolName")
    meta = _mapping(_mapping(call.get("_meta")).get("claudeCode"))
    tool = tool or _text(meta, "toolName") or title.split(" ", 1)[0]
    server, _, _ = _mcp_name(tool)
    stated = "think" if stated == "switch_mode" else stated
    kind = "mcp" if server else stated if stated in _ACP_KINDS else "other"
    command, argv = _command(raw)
    contents = [_mapping(each) for each in _sequence(call.get("content"))]
    edits = tuple(_acp_edits(contents)) or tuple(
        _claude_edits_of_any(raw) if kind == "edit" else ()
    )
    places = [_text(_mapping(each), "path") for each in _sequence(call.get("locations"))]
    paths = dict.fromkeys([*places, *(edit.path for edit in edits), *_named_paths(raw)])
    return ToolRequest(
        agent=agent,
        transport="acp",
        call_id=_text(call, "toolCallId") or _text(call, "tool_call_id"),
        tool=tool,
        kind=kind,
        title=title or f"{agent} asks to use a tool",
        input=raw,
        edits=edits,
        command=command,
        argv=argv,
        cwd=_text(raw, "cwd") or _text(raw, "workdir") or cwd,
        server=server,
        paths=tuple(path for path in paths if path),
        why=_text(raw, "description") or _text(raw, "reason") or _content_text(contents),
        options=read_options(options),
        questions=read_claude_questions(raw) if tool == _ASKS_USER else (),
        announced=_find_difference(_mapping(earlier), _mapping(tool_call)),
    )


def _find_difference(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> str:
    """Return how a call was announced, where it is asked for as another one; '' where the two agree.

    An agent may say more when it asks, and leave out what it said before.
    """
    before, now = _text(earlier, "kind"), _text(later, "kind")
    if before and now and before != now:
        return f"kind {before}"
    before_input, now_input = (_mapping(each.get("rawInput")) for each in (earlier, later))
    for name, value in before_input.items():
        if name in now_input and now_input[name] != value and name in _TELLING:
            return (
                f"{name} {value if isinstance(value, str) else list(map(str, _sequence(value)))}"[
                    :400
                ]
            )
    places = [
        [_text(_mapping(place), "path") for place in _sequence(each.get("locations"))]
        for each in (earlier, later)
    ]
    if all(places) and not set(places[1]) <= set(places[0]):
        return f"files {', '.join(places[0])}"[:400]
    return ""


def read_elicitation(params: Any, *, agent: str, cwd: str = "") -> ToolRequest:
    """Read an elicitation of ACP: a form, or an address to open."""
    body = _mapping(params)
    message = _text(body, "message")
    address = _text(body, "url")
    return ToolRequest(
        agent=agent,
        transport="acp",
        call_id=_text(body, "toolCallId"),
        tool="elicitation",
        kind="think",
        title=message.split("\n", 1)[0] or f"{agent} asks you",
        input={"address": address, "host": _host(address)} if address else {},
        cwd=cwd,
        why=message,
        questions=read_form(_mapping(body.get("requestedSchema"))),
        form="form",
    )


def _host(address: str) -> str:
    """Return the host that an address leads to; '' where it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _question_title(questions: Sequence[Question]) -> str:
    if not questions:
        return "asks you"
    more = f" and {len(questions) - 1} more" if len(questions) > 1 else ""
    return f"asks: {questions[0].text}{more}"


def read_options(options: Any) -> tuple[PermissionOption, ...]:
    """Read the options of an ACP request; one of an unknown kind is left out."""
    read = []
    for each in map(_mapping, _sequence(options)):
        kind = _text(each, "kind")
        option_id = _text(each, "optionId") or _text(each, "option_id")
        if option_id and kind in _OPTION_KINDS:
            read.append(PermissionOption(option_id, _text(each, "name") or kind, kind))  # type: ignore[arg-type]
    return tuple(read)


def reread_claude_tool(request: ToolRequest, changed: Mapping[str, Any]) -> ToolRequest:
    """Read ``request`` again with input that the user changed."""
    read = read_claude_tool(
        request.tool,
        changed,
        agent=request.agent,
        transport=request.transport,
        call_id=request.call_id,
        cwd=request.cwd,
        why=request.why,
        options=request.options,
        editable=request.editable,
    )
    return replace(read, confined=request.confined)


def _claude_title(tool: str, arguments: Mapping[str, Any], line: str, mcp_tool: str) -> str:
    path = next(iter(_named_paths(arguments)), "")
    if line:
        return line
    if mcp_tool:
        return f"call {mcp_tool}"
    if tool in ("Glob", "Grep"):
        return f"{tool} {_text(arguments, 'pattern')}".rstrip()
    if tool in ("WebFetch", "WebSearch"):
        return f"{tool} {_text(arguments, 'url') or _text(arguments, 'query')}".rstrip()
    words = {
        "Write": "write",
        "Edit": "edit",
        "MultiEdit": "edit",
        "NotebookEdit": "edit",
        "Read": "read",
    }
    if path and tool in words:
        return f"{words[tool]} {path}"
    if tool == _ASKS_USER:
        return _question_title(read_claude_questions(arguments))
    if tool == "ExitPlanMode":
        return "leave plan mode and begin"
    return f"{tool} {path}".rstrip()


def _claude_edits(tool: str, arguments: Mapping[str, Any]) -> Iterator[FileEdit]:
    path = _text(arguments, "file_path")
    if not path:
        return
    if tool == "Write":
        yield FileEdit(path, None, _text(arguments, "content"))
    elif tool == "Edit":
        yield _replacement(path, arguments)
    elif tool == "MultiEdit":
        for each in _sequence(arguments.get("edits"))[: MOST_EDITS + 1]:
            yield _replacement(path, _mapping(each))


def _replacement(path: str, arguments: Mapping[str, Any]) -> FileEdit:
    before = _text(arguments, "old_string")
    # An empty text stands for no file yet: nothing can be replaced by its place.
    return FileEdit(
        path,
        before or None,
        _text(arguments, "new_string"),
        replace_all=arguments.get("replace_all") is True,
    )


def _claude_edits_of_any(arguments: Mapping[str, Any]) -> Iterator[FileEdit]:
    """Yield the changes in an input with the arguments of Claude Code's tools, whatever the tool's name."""
    for tool, name in (("MultiEdit", "edits"), ("Edit", "new_string"), ("Write", "content")):
        if name in arguments:
            yield from _claude_edits(tool, arguments)
            return


def _acp_edits(contents: Sequence[Mapping[str, Any]]) -> Iterator[FileEdit]:
    for each in contents[: MOST_EDITS + 1]:
        path = _text(each, "path")
        if each.get("type") == "diff" and path:
            old = each.get("oldText", each.get("old_text"))
            after = _text(each, "newText") or _text(each, "new_text")
            yield FileEdit(path, old if isinstance(old, str) and old else None, after)


def _command(arguments: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the shell text, or the argv, in a shell tool's input."""
    value = arguments.get("command", arguments.get("cmd"))
    if isinstance(value, str):
        return peel_shells(_clean(value))[0], ()
    words = tuple(_clean(word) for word in _sequence(value) if isinstance(word, str))
    if len(words) == 1 or (words and join_words(list(words)) == words[-1]):
        return peel_shells(words[-1])[0], ()  # bash -lc SCRIPT: the script is what runs
    return "", words


def _named_paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in _PATH_KEYS:
        if path := _text(arguments, name):
            yield path


def _mcp_name(tool: str) -> tuple[str, str, str]:
    """Return the server, '__' and the tool in ``mcp__server__tool``; three empty texts for another name."""
    if not tool.startswith("mcp__"):
        return "", "", ""
    server, sign, name = tool.removeprefix("mcp__").partition("__")
    return (server, sign, name) if server else ("?", "", name)


def _written_input(earlier: Any) -> Mapping[str, Any]:
    """Return the input that an ACP call has as JSON in its text: Kimi Code asks before it states another."""
    text = _content_text([_mapping(each) for each in _sequence(_mapping(earlier).get("content"))])
    return parse_object(text) or {}


def _content_text(contents: Sequence[Mapping[str, Any]]) -> str:
    """Return the text blocks of an ACP call's content: some agents give their reason there."""
    texts = (
        _text(_mapping(each.get("content")), "text")
        for each in contents
        if each.get("type") == "content"
    )
    return "\n".join(filter(None, texts))[:4_000]


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {name: each for name, each in value.items() if isinstance(name, str)}


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return _clean(text) if isinstance(text, str) else ""


def _clean(text: str) -> str:
    """Return text that can be stored: half of a pair of surrogates can be written in JSON only."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
