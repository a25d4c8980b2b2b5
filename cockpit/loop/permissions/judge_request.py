"""The risk of what an external agent asks for, by cockpit's own table, and which policy may answer it.

The agent's words for what it does count for nothing but to raise the risk: a call that says "read" and
has a command in it is judged by the command. See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cockpit.access.commands.judge_command import Risk
from cockpit.loop.permissions.judge_tool import (
    ToolRisk,
    find_tool_denial,
    find_write_denial,
    judge_reading,
    judge_searching,
    judge_shell,
    judge_writing,
)
from cockpit.loop.permissions.tool_commands import list_tool_commands, why_not_plain_read
from cockpit.loop.permissions.tool_names import SEARCHERS, SHELLS, join_words
from cockpit.loop.permissions.tool_request import MOST_EDITS, ToolRequest

_ORDER: dict[Risk, int] = {"low": 0, "medium": 1, "high": 2}
_LONGEST = 4_000_000
"""Characters of a command that is judged."""
_DEEPEST = 60
_CHANGES = frozenset(("edit", "delete", "move"))


def judge_request(request: ToolRequest, root: Path) -> ToolRisk:
    """Judge what ``request`` would do in the worktree ``root``. Blocks: it looks at files and programs."""
    line = request.command or join_words(list(request.argv))
    tool = (
        request.tool
        if request.tool in SHELLS
        else "Bash"
        if request.kind == "execute"
        else request.tool
    )
    deep = is_too_deep(request.input)
    if denied := find_tool_denial(tool, {} if deep else request.input, line).words:
        return ToolRisk("high", (denied,), denied=f"cockpit denies this: {denied}")
    for path in request.paths if request.kind in _CHANGES else ():
        if denied := find_write_denial(path, root=str(root), cwd=request.cwd):
            return ToolRisk("high", (denied,), denied=f"cockpit denies this: {denied}.")
    if deep or len(line) > _LONGEST or len(request.edits) > MOST_EDITS:
        return ToolRisk("high", ("its input is too large or too deep to be judged",))
    if request.kind == "think" and not (line or list_tool_commands(dict(request.input))[0]):
        return ToolRisk("medium", ("it is a question to you",), sensitive=True, waits=True)
    verdicts = list(_verdicts(request, line, root))
    if request.announced:
        verdicts.append(
            ToolRisk("high", (f"it was announced as another call: {request.announced}",))
        )
    risk: Risk = "high"
    if verdicts:
        risk = max((each.risk for each in verdicts), key=_ORDER.__getitem__)
    reasons = tuple(dict.fromkeys(reason for each in verdicts for reason in each.reasons))
    if not verdicts:
        reasons = ("what it does cannot be judged",)
    sensitive = not verdicts or any(each.sensitive for each in verdicts)
    reads = bool(verdicts) and all(each.reads for each in verdicts)
    waits = risk == "high" or any(each.waits for each in verdicts)
    return ToolRisk(risk, reasons, reads=reads, sensitive=sensitive, waits=waits)


def _verdicts(request: ToolRequest, line: str, root: Path) -> Iterator[ToolRisk]:
    top, cwd = str(root), request.cwd or str(root)
    if request.kind == "execute":
        arguments = _shell_arguments(request, line)
        yield judge_shell(arguments, line, root=top, cwd=cwd, confined=request.confined)
        return
    if line or list_tool_commands(dict(request.input))[0]:
        yield ToolRisk("high", ("its input has a command, and it does not say that it runs one",))
    if request.kind in _CHANGES:
        for path in request.paths:
            yield judge_writing(path, root=top, cwd=cwd)
        if request.kind == "delete":
            yield ToolRisk("medium", ("it removes files",))
    elif request.kind in ("read", "search") and (strange := why_not_plain_read(request.input)):
        yield ToolRisk("high", (f"its argument {strange[:60]!r} may change what it reads",))
    elif request.kind == "read":
        for path in request.paths:
            yield judge_reading(path, root=top, cwd=cwd)
    elif request.kind == "search":
        if request.tool in SEARCHERS:
            yield judge_searching(request.tool, request.input, root=top, cwd=cwd)
        else:
            for path in request.paths or (top,):
                yield judge_reading(path, root=top, cwd=cwd, below=("*",))
    elif request.kind == "fetch":
        yield ToolRisk("high", ("it reaches the network",), sensitive=False)
    elif request.kind == "mcp":
        yield ToolRisk("high", ("what a server's tool does cannot be judged",), sensitive=False)


def _shell_arguments(request: ToolRequest, line: str) -> Mapping[str, Any]:
    """Return the arguments that a command is judged with, those that cockpit does not know among them."""
    given = request.input
    return given if {"command", "cmd"} & set(given) else {**given, "command": line}


def is_too_deep(value: object) -> bool:
    """Whether an input is nested deeper than an agent has reason to, without going into it."""
    level: list[object] = [value]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                inner += each.values()
            elif isinstance(each, list | tuple):
                inner += each
        level = [each for each in inner if isinstance(each, Mapping | list | tuple)]
        if not level:
            return False
    return True
