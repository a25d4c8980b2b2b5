"""Guards of the user and of projects: functions in Python that may refuse a call, and do nothing else.

A file defines ``check(call, session)``, which returns why the call is refused, or None. It is found by its
syntax, and runs only as it was approved, only in the sandbox, without the right to write and without the
network. What it returns can refuse: anything but None refuses. See ``docs/reference/guards.md``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.model_tools import Call
from cockpit.act.own_tools.run_child import NoSandbox, run_child
from cockpit.act.own_tools.tool_definition import clean_text
from cockpit.act.own_tools.tool_files import (
    ToolFile,
    ToolFileRefused,
    ToolFolder,
    digest_files,
    list_tool_files,
    load_tool_file,
    parse_python,
)
from cockpit.act.workspace import Workspace
from cockpit.core.errors import CockpitError

FOLDER = "guards"
"""The name of the folder of guards in ``.cockpit`` and in the user's configuration."""
FUNCTION = "check"
TIMEOUT_S = 10
MOST_MESSAGE = 400
"""Characters of a guard's words that an agent reads."""
_READS = "request_context"


class DeclaredGuard(Struct, frozen=True):
    """A guard as its source declares it."""

    guard_id: str
    file: ToolFile
    tools: tuple[str, ...] = ()
    """The tools whose calls it sees; empty: those of all actions."""
    description: str = ""

    def sees(self, tool: str) -> bool:
        """Return whether the guard is asked about calls of ``tool``."""
        return tool in self.tools if self.tools else tool != _READS


def guard_folders(home: Path, user_dir: Path, own_folder: str) -> tuple[ToolFolder, ...]:
    """Return the folders of the user's and the project's guards."""
    return (
        ToolFolder("user", user_dir / FOLDER, user_dir),
        ToolFolder("project", home / own_folder / FOLDER, home),
    )


def list_guard_files(folders: Sequence[ToolFolder]) -> list[tuple[ToolFolder, str]]:
    """List the files of guards, by folder and name. Nothing is read."""
    return [(folder, name) for folder in folders for name in list_tool_files(folder)]


def load_guard(folder: ToolFolder, name: str) -> DeclaredGuard:
    """Read a guard's file as it is now. Raises :class:`ToolFileRefused`; nothing of it is run."""
    return declare_guard(load_tool_file(folder, name))


def restore_guard(guard_id: str, sources: Mapping[str, str], digest: str) -> DeclaredGuard:
    """Return the guard of approved sources. Raises :class:`ToolFileRefused` where they are not those."""
    place, _, name = guard_id.rpartition(":")
    files = {path: text.encode("utf-8", "surrogateescape") for path, text in sources.items()}
    if digest_files(files) != digest:
        raise ToolFileRefused(f"{guard_id}: its sources are not those that were approved.")
    folder = ToolFolder(place, Path("/", FOLDER), Path("/"))
    return declare_guard(ToolFile(folder, f"{name}.py", files, digest))


def guard_sources(file: ToolFile) -> dict[str, str]:
    """Return the sources of a file as they are stored."""
    return {path: data.decode("utf-8", "surrogateescape") for path, data in file.files.items()}


def declare_guard(file: ToolFile) -> DeclaredGuard:
    """Find the guard of a file by its syntax. Raises :class:`ToolFileRefused`."""
    tree = parse_python(file.name, file.files[file.name])
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == FUNCTION
    ]
    if len(functions) != 1:
        raise ToolFileRefused(f"{file.label} must define one function check(call, session).")
    arguments = functions[0].args
    names = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    if names != ["call", "session"] or arguments.posonlyargs:
        raise ToolFileRefused(f"{file.label}: write the function as check(call, session).")
    description = ast.get_docstring(functions[0]) or ast.get_docstring(tree) or ""
    name = file.name.removesuffix(".py")
    return DeclaredGuard(
        f"{file.folder.place}:{name}",
        file,
        _read_tools(tree, file.label),
        clean_text(description.split("\n\n")[0], MOST_MESSAGE),
    )


def _read_tools(tree: ast.Module, label: str) -> tuple[str, ...]:
    """Return the value of ``TOOLS = ("run", …)``; empty without it."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "TOOLS" for target in targets):
            try:
                value = ast.literal_eval(node.value)  # type: ignore[attr-defined]  # an assignment
            except ValueError:
                value = None
            if (
                not isinstance(value, tuple | list)
                or not value
                or not all(isinstance(tool, str) for tool in value)
            ):
                raise ToolFileRefused(f'{label}: write TOOLS as names: TOOLS = ("run",).')
            return tuple(value)
    return ()


async def ask_guard(
    guard: DeclaredGuard, call: Call, state: GuardState, ground: Workspace
) -> Refusal | None:
    """Ask one guard about a call; a guard that fails refuses."""
    request = {
        "mode": "call",
        "function": FUNCTION,
        "arguments": {
            "call": {"tool": call.name, "arguments": dict(call.arguments)},
            "session": {"files_in_packet": sorted(state.packet_files), "changes": state.changes},
        },
    }
    try:
        answer = await run_child(
            guard.file,
            request,
            ground.sandbox,
            ground.root,
            ground.environment,
            timeout_s=TIMEOUT_S,
            writes=False,
        )
    except (NoSandbox, CockpitError) as error:
        return _refuse_failed(guard, str(error))
    if answer.error:
        return _refuse_failed(guard, answer.error)
    return read_verdict(guard, answer.result)


def read_verdict(guard: DeclaredGuard, result: Any) -> Refusal | None:
    """Return the refusal that a guard's result stands for: None lets the call go on to approval."""
    if result is None:
        return None
    if not isinstance(result, str) or not result.strip():
        return _refuse_failed(guard, "it returned neither a text nor None")
    words = clean_text(" ".join(result.split()), MOST_MESSAGE)
    return Refusal(
        guard.guard_id,
        f"The guard {guard.guard_id} refused this call. Its author's words, which decide nothing else:"
        f" {words!r}. Do it in another way, or finish as blocked and say why.",
    )


def _refuse_failed(guard: DeclaredGuard, error: str) -> Refusal:
    return Refusal(
        guard.guard_id,
        f"The guard {guard.guard_id} could not be asked, so this call is not carried out:"
        f" {clean_text(error, MOST_MESSAGE)} Only the user can change that:"
        f" `cockpit guards {guard.guard_id}`.",
    )
