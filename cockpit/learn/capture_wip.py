"""Capture of work in progress from an agent's tool calls: patches for :mod:`cockpit.store.backlog.wip`.

The built-in agent and external agents, whose tools have other names, are read the same way. It is a pure
function of the call and never raises. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.access.shell_commands import RanCommand, list_commands
from cockpit.learn.capture_edits import (
    Read,
    list_edited_files,
    list_patched_files,
    relative_to_root,
)
from cockpit.learn.capture_errors import describe_failure, error_command
from cockpit.learn.test_output import masked, results_of
from cockpit.learn.test_runners import test_commands

_EDITS = frozenset(
    ["write_file", "edit_file", "create_file", "Edit", "Write", "MultiEdit", "NotebookEdit"]
) | {"Update", "write", "edit", "str_replace_editor", "str_replace_based_edit_tool"}
_COMMANDS = frozenset(
    ["run", "Bash", "bash", "shell", "local_shell", "exec_command", "container.exec", "command"]
)
_PATCHES = frozenset(["apply_patch"])
_COMMITS = frozenset(["git_commit"])
_VIEWS = frozenset(["view", "open", "undo"])
_COMMITTED = re.compile(r"^\[[^\]\n]*?\b([0-9a-f]{7,40})\]", re.MULTILINE)


class ToolUse(Struct, frozen=True):
    """One call of a tool, when it has ended.

    ``tool`` and ``arguments`` are as the agent names them, ``output`` both streams as they came.
    ``exit_code`` is None where it is not known; ``failed`` is set where the agent reported an error.
    ``cwd`` is the folder it ran in; ``root`` the project's folder (default: ``cwd``), beneath which files
    count.
    """

    tool: str
    arguments: Mapping[str, Any]
    output: str
    exit_code: int | None
    cwd: str = ""
    root: str = ""
    failed: bool = False


def capture_tool_use(tool: ToolUse, read: Read | None = None) -> dict[str, Any]:
    """Return the patch that a tool call makes; empty when it says nothing about the work.

    ``read`` returns the text of a file on disk: with it, files that a script wrote are captured too.
    """
    if tool.tool in _EDITS:
        return _edit(tool)
    if tool.tool in _PATCHES:
        return _patch(tool)
    if tool.tool in _COMMITS:
        return _commit(tool)
    if tool.tool in _COMMANDS:
        return _command(tool, read)
    return {}


def list_solved(tool: ToolUse) -> list[dict[str, str]]:
    """Return patterns of the errors that this call solved: what failed before and succeeded now.

    A command solves the errors of the same command; passing tests also those of every narrower run of the
    same runner, and of the tests that they name; an edit or a commit an earlier one that failed. The
    patterns are those of :mod:`cockpit.store.backlog.solved_errors`.
    """
    if _went_wrong(tool):
        return []
    if tool.tool in _COMMITS:
        return [{"type": "commit_failed"}]
    if tool.tool in _EDITS or tool.tool in _PATCHES:
        files = capture_tool_use(tool).get("files_modified", ())
        named = (str(tool.arguments.get(name, "")) for name in ("file_path", "path", "file"))
        return [
            {"type": "edit_failed", "file": path}
            for path in dict.fromkeys([*files, *(path for path in named if path)])
        ]
    return _solved_by_command(tool) if tool.tool in _COMMANDS else []


def _solved_by_command(tool: ToolUse) -> list[dict[str, str]]:
    simple = _simple(tool)
    tests = results_of(simple, tool.output, tool.exit_code)
    passed = tests is not None and tests.ran and tests.outcome == "pass"
    if not passed and (
        tool.exit_code != 0
        or describe_failure(simple, _words(tool), tool.output, 0, tests, root=_root(tool))
    ):
        return []
    solved = [{"command": error_command(_words(tool))}]
    for command, runner in test_commands(simple) if passed else ():
        named = [word for word in command.argv[1:] if not word.startswith("-")]
        # Of `python -m pytest PATH` the path; the runner's own name is looked for in any case.
        paths = [word for word in named if "/" in word or "." in word or "::" in word]
        program = runner if runner in command.argv else command.program
        solved.append({"type": "test_failure", "words": " ".join([program, *paths])})
        solved += [{"type": "test_failure", "message": path} for path in paths if "::" in path]
    return solved


def _edit(tool: ToolUse) -> dict[str, Any]:
    if str(tool.arguments.get("command")) in _VIEWS:
        return {}
    path = next(
        (
            str(tool.arguments[name])
            for name in ("file_path", "path", "notebook_path", "filename", "file")
            if tool.arguments.get(name)
        ),
        "",
    )
    if _went_wrong(tool):
        message = " ".join(tool.output.split())[:400]
        entry = {"type": "edit_failed", "message": message or "It was not changed.", "file": path}
        return {"errors": [entry]}
    return _files([relative_to_root(path, tool.cwd, _root(tool))])


def _patch(tool: ToolUse) -> dict[str, Any]:
    text = next((str(value) for value in tool.arguments.values() if "***" in str(value)), "")
    if _went_wrong(tool):
        message = " ".join(tool.output.split())[:400]
        return {"errors": [{"type": "edit_failed", "message": message or "It did not apply."}]}
    return _files(
        [relative_to_root(path, tool.cwd, _root(tool)) for path in list_patched_files(text)]
    )


def _commit(tool: ToolUse) -> dict[str, Any]:
    if _went_wrong(tool):
        message = " ".join(tool.output.split())[:400]
        return {"errors": [{"type": "commit_failed", "message": message or "Nothing committed."}]}
    named = str(tool.arguments.get("commit", "")) or _committed(tool.output)
    return {"uncommitted_changes": False, **({"last_commit": named} if named else {})}


def _command(tool: ToolUse, read: Read | None) -> dict[str, Any]:
    simple = _simple(tool)
    code = tool.exit_code if tool.exit_code is not None or not tool.failed else 1
    tests = results_of(simple, tool.output, code)
    wrong = describe_failure(simple, _words(tool), tool.output, code, tests, root=_root(tool))
    patch = _files(
        list_edited_files(
            simple, root=_root(tool), failure=tool.output if wrong else None, read=read
        )
    )
    if tests is not None:
        patch["test_results"] = tests.wip()
    commits = [each for each in simple if _commits(each)]
    if commits and (not wrong or (code == 0 and masked(simple, commits[-1]))):
        named = _committed(tool.output)
        if named or not wrong:
            patch["uncommitted_changes"] = False
            patch |= {"last_commit": named} if named else {}
    if wrong is not None:
        patch["errors"] = [wrong]
    return patch


def _commits(command: RanCommand) -> bool:
    if command.program != "git" or "--dry-run" in command.argv:
        return False
    rest = list(command.argv[1:])
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
    return rest[:1] == ["commit"]


def _committed(output: str) -> str:
    commits = _COMMITTED.findall(output)
    return commits[-1] if commits else ""


def _simple(tool: ToolUse) -> list[RanCommand]:
    where = tool.arguments.get("workdir") or tool.arguments.get("cwd") or tool.cwd
    return list_commands(_command_of(tool), str(where or ""))


def _command_of(tool: ToolUse) -> str | list[str]:
    for name in ("command", "cmd", "argv", "script", "commandline"):
        value = tool.arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, Sequence):
            return [str(word) for word in value]
    return ""


def _words(tool: ToolUse) -> str:
    command = _command_of(tool)
    return command if isinstance(command, str) else shlex.join(command)


def _files(paths: Sequence[str]) -> dict[str, Any]:
    files = sorted({path for path in paths if path})
    return {"files_modified": files, "uncommitted_changes": True} if files else {}


def _went_wrong(tool: ToolUse) -> bool:
    return tool.failed or bool(tool.exit_code)


def _root(tool: ToolUse) -> str:
    return tool.root or tool.cwd
