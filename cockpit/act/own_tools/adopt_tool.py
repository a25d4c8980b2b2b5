"""From the user's Enter to a tool that can be called: its files are written once, and their digest approved.

They are the files of the main checkout: all sessions of the project load its tools from there. See
``docs/reference/evolve.md``, adoption.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.access.confined_paths import Confined
from cockpit.act.adapters.adapter import Found, Outcome, failed, succeeded
from cockpit.act.adapters.write_files import put_file
from cockpit.act.model_tools import TOOL_RECORDS
from cockpit.act.own_tools.describe_tools import describe_file
from cockpit.act.own_tools.find_tools import NAME
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.own_tools.tool_files import ToolFolder, load_tool_file
from cockpit.act.text_edits import bytes_digest, digest_now
from cockpit.act.workspace import Workspace
from cockpit.core.read_record import convert
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.tools import approved_tools

ADOPT = "adopt_tool"
"""The type of the action that adopts a tool."""
FOLDER = ".cockpit/tools"


def path_of_code(name: str) -> str:
    """Return the path of a tool's code, from the project's root."""
    return f"{FOLDER}/{name}.py"


def path_of_test(name: str) -> str:
    """Return the path of a tool's test, from the project's root."""
    return f"{FOLDER}/tests/test_{name}.py"


class _Payload(msgspec.Struct, frozen=True):
    name: str
    code_path: str
    code: str
    test_path: str
    test: str


def place_at(ground: Workspace, home: Path) -> Workspace:
    """Return the workspace in the main checkout, where the project's tools are."""
    home = home.resolve()
    return ground if ground.root == home else replace(ground, confined=Confined(home))


class AdoptAdapter:
    """Writes the two files where nothing is, and approves the tool by their digest.

    ``home`` is the main checkout, which has the project's tools.
    """

    ends_when_cancelled = False

    def __init__(self, store: Store, home: Path) -> None:
        self._store, self._home = store, home

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Write and approve; files that are there with this content already are taken as written."""
        request = convert(payload, _Payload)
        at_home = place_at(ground, self._home)
        problem = check_paths(request) or await asyncio.to_thread(_write, request, key, at_home)
        if problem:
            return failed("conflict", problem)
        root = at_home.root
        folder = ToolFolder("project", root / FOLDER, root)
        file = await asyncio.to_thread(load_tool_file, folder, f"{request.name}.py")
        definitions = await describe_file(file, ground.sandbox, root, ground.environment)
        if problem := find_other_names(request.name, definitions):
            return failed(
                "permanent", f"{request.code_path} is written and not approved: {problem}"
            )

        def approve(tx: Tx) -> None:
            for definition in definitions:
                stored = approved_tools.find(tx.connection, definition.tool_id)
                if stored is None or stored.digest != definition.digest:
                    approved_tools.approve(tx, definition.body(), by="person")

        await self._store.write(approve)
        return succeeded(
            f"The tool {request.name} is adopted: {request.code_path} and {request.test_path} are written."
            " Commit them when you like.",
            tool=f"project:{request.name}",
        )

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Return that it is to be done again, which changes nothing of what is written and approved."""
        return "not_done"


def check_paths(request: _Payload) -> str:
    """Return why the payload's paths are not those of its tool; empty when they are."""
    paths = (request.code_path, request.test_path)
    if NAME.fullmatch(request.name) and paths == (
        path_of_code(request.name),
        path_of_test(request.name),
    ):
        return ""
    return f"{', '.join(paths)[:200]} are not the files of a tool; nothing was written."


def find_other_names(name: str, definitions: tuple[ToolDefinition, ...]) -> str:
    """Return why a file does not have exactly the tool ``name``, by its own name; empty if it does."""
    if [definition.name for definition in definitions] != [name]:
        return f"The file must have one tool, named {name}."
    taken = sorted({name, *definitions[0].aliases} & set(TOOL_RECORDS))
    return f"{taken[0]!r} is a tool of cockpit's own." if taken else ""


def _write(request: _Payload, key: str, ground: Workspace) -> str:
    """Write both files; returns why they could not be, or ''."""
    wanted = ((request.code_path, request.code), (request.test_path, request.test))
    for path, text in wanted:
        now = digest_now(ground.confined, path)
        if now not in (None, bytes_digest(text.encode())):
            return f"{path} exists with another content; nothing was written."
    for path, text in wanted:
        if digest_now(ground.confined, path) is None and not put_file(
            ground.confined, path, text.encode(), key, None
        ):
            return f"{path} appeared while it was written; it was left as it is."
    return ""
