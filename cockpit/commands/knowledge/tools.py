"""``cockpit tools``: list, show and run tools of the user, projects and MCP servers."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.tools import COLLECTION, find_tool
from cockpit.commands.caller_rights import find_user
from cockpit.commands.collection_groups import format_parts, make_group, read_view
from cockpit.commands.confirm import confirm
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import (
    WrongUse,
    find_project,
    load_project_settings,
    open_project_runtime,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.errors import NotFound
from cockpit.loop.tools.list_tools import ToolRow

if TYPE_CHECKING:
    from cockpit.loop.tools.added_tools import AddedTools

T = TypeVar("T")


class Offer(Struct, frozen=True):
    """What an MCP server offers now, beside what of it was approved."""

    tools: tuple[ToolDefinition, ...]
    approved: tuple[ToolDefinition, ...]

    def describe(self) -> str:
        return "\n\n".join(_describe_mcp_tool(each, self.approved) for each in self.tools)


def _find(name: str) -> ToolRow | Offer:
    async def read(added: AddedTools) -> ToolRow | Offer:
        server = _find_server(added, name)
        if server is None:
            return find_tool(await _read_rows(added), name)
        return await _list_server(added, server, name)

    return _with_tools(read)


def _describe(shown: ToolRow | Offer) -> str:
    return (
        shown.describe() if isinstance(shown, Offer) else format_parts(COLLECTION.describe(shown))
    )


def _document(shown: ToolRow | Offer) -> Any:
    if isinstance(shown, Offer):
        return [each.body() for each in shown.tools]
    return COLLECTION.show_row(shown)


tools = make_group(COLLECTION, find=_find, describe=_describe, document=_document)


@tools.command(
    "run",
    epilog=examples(
        "cockpit tools run count_words path=README.md",
        """cockpit tools run count_words --json-arguments '{"path": "README.md"}'""",
    ),
)
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--json-arguments",
    "json_arguments",
    default="",
    metavar="JSON",
    help="Use these arguments, a JSON object, instead of KEY=VALUE.",
)
@AS_JSON
@click.pass_context
def run_tool(
    ctx: click.Context,
    /,
    name: str,
    arguments: tuple[str, ...],
    json_arguments: str,
    as_json: bool,
) -> None:
    """Run an approved tool yourself.

    VALUE is JSON where it can be, else a text. Agents call tools by proposals; this command is for you.
    """

    async def call(added: AddedTools) -> bool:
        from cockpit.act.model_tools import MalformedCall
        from cockpit.act.own_tools.check_arguments import parse_added_call

        await _require_user(added, "running a tool by hand")
        usable = await added.store.read(added.catalog.read_usable)
        definition = next(
            (each for each in usable if name == each.name or name in each.aliases), None
        )
        if definition is None:
            row = find_tool(await _read_rows(added), name)
            raise WrongUse(f"{name} does not run: {row.state_text}. See `cockpit tools {name}`.")
        text = json_arguments or json.dumps(_read_pairs(definition, arguments))
        try:
            parsed = parse_added_call(definition, text)
        except MalformedCall as error:
            raise WrongUse(str(error)) from error
        preview = added.preview(parsed.payload)  # type: ignore[arg-type]  # an added tool's call
        adapter = added.adapters()[preview.type]
        outcome = await adapter.perform(preview.payload, "by hand", added.ground)
        detail = dict(outcome.detail)
        if as_json:
            show_json({"status": outcome.status, "summary": outcome.summary, **detail})
        else:
            if printed := str(detail.get("stderr", "")):
                say(printed)
            if detail.get("stdout"):
                show(str(detail["stdout"]))
            if outcome.failure is not None:
                say(outcome.summary)
        return outcome.failure is None

    if not _with_tools(call):
        ctx.exit(Exit.FAILED)


def approve_tool(name: str, *, yes: bool) -> None:
    """Show a tool and ask; then agents may call exactly what was shown.

    ``name`` is a tool, an alias, a file, or an MCP server for all of its tools. A file is loaded only after
    the user agrees, and only in the sandbox. Raises ``NotFound``, and ``NotAllowed`` for all but the user.
    """

    async def approve(added: AddedTools) -> None:
        from cockpit.loop.tools.approve_tools import approve_file, approve_server_tools

        await _require_user(added, "approving a tool")
        server = _find_server(added, name)
        if server is not None:
            offer = await _list_server(added, server, name)
            show(offer.describe())
            confirm(
                "Let agents call these tools, as they are described?",
                yes=yes,
                undone="nothing was approved",
            )
            await approve_server_tools(added, server, offer.tools, by="person")
            say(f"Approved: {', '.join(each.name for each in offer.tools)}")
            return
        row = find_tool(await _read_rows(added), name)
        if row.source is None:
            raise WrongUse(f"{row.name} {row.state_text}: {row.note}")
        show(_describe(row))
        confirm("Let agents call exactly these tools?", yes=yes, undone="nothing was approved")
        definitions = await approve_file(
            added, row.place, row.file, shown_digest=row.source.digest, by="person"
        )
        say(f"Approved: {', '.join(each.name for each in definitions)}")

    _with_tools(approve)


def forget_tool(name: str) -> None:
    """Revoke the approval of a tool, an alias, a file, or an MCP server for all of its tools.

    Raises ``NotFound``, and ``NotAllowed`` for all but the user.
    """

    async def forget(added: AddedTools) -> None:
        from cockpit.loop.tools.approve_tools import forget_tools

        await _require_user(added, "forgetting a tool")
        approved = await _read_approved(added)
        chosen = [
            each
            for each in approved
            if name in (each.name, each.file, *each.aliases, each.place)
            and (each.kind == "mcp" or name != each.place)
        ]
        # A file is approved as a whole.
        files = {(each.place, each.file) for each in chosen if each.kind == "own"}
        ids = [
            each.tool_id for each in approved if each in chosen or (each.place, each.file) in files
        ]
        if not ids:
            raise NotFound(f"No tool {name} is approved.")

        await added.store.write(lambda tx: forget_tools(tx, ids, by="person"))
        say(f"Forgotten: {', '.join(ids)}")

    _with_tools(forget)


def is_tool(name: str) -> bool:
    """Whether a name is a tool's, a file's, an alias's or an MCP server's, without starting any."""
    place = find_project()
    servers = load_project_settings(place).runtime.mcp
    if name.partition(".")[0] in servers:
        return True
    rows = read_view(COLLECTION, COLLECTION.list_rows).rows
    return any(
        name in (row.name, row.file, *(row.approved.aliases if row.approved else ()))
        for row in rows
    )


def _with_tools(step: Callable[[AddedTools], Awaitable[T]]) -> T:
    """Run ``step`` with the project's tools."""
    place = find_project()
    settings = load_project_settings(place)

    async def run() -> T:
        async with open_project_runtime(place, settings.runtime) as runtime:
            if runtime.engine.added is None:
                raise NotFound("This project has no tools.")
            return await step(runtime.engine.added)

    return asyncio.run(run())


async def _require_user(added: AddedTools, activity: str) -> None:
    from cockpit.loop.tools.approve_tools import require_person

    await added.store.write(lambda tx: require_person(find_user(tx, activity)))


async def _read_rows(added: AddedTools) -> list[ToolRow]:
    from cockpit.loop.tools.list_tools import list_rows

    return await added.store.read(lambda connection: list_rows(connection, added.catalog))


async def _read_approved(added: AddedTools) -> tuple[ToolDefinition, ...]:
    return await added.store.read(added.catalog.read_approved)


def _find_server(added: AddedTools, name: str) -> str | None:
    """Return the MCP server that ``name`` names, alone or with one of its tools."""
    server = name.partition(".")[0]
    return server if server in added.catalog.servers and not name.endswith(".py") else None


async def _list_server(added: AddedTools, server: str, name: str) -> Offer:
    settings = added.servers.find(server)
    say(f"{server} runs {settings.describe_place(has_sandbox=added.ground.sandbox.works)}.")
    listing = await added.servers.list_tools(server)
    chosen = tuple(each for each in listing.tools if name in (server, each.name))
    if not chosen:
        raise NotFound(
            f"The MCP server {server} lists no tool {name.partition('.')[2] or name}. `cockpit"
            f" tools {server}` shows its tools."
        )
    for problem in listing.problems:
        say(problem)
    return Offer(chosen, await _read_approved(added))


def _read_pairs(definition: ToolDefinition, pairs: Sequence[str]) -> dict[str, Any]:
    properties = definition.parameters.get("properties", {})
    values: dict[str, Any] = {}
    for pair in pairs:
        key, mark, text = pair.partition("=")
        if not mark:
            raise WrongUse(f"{pair!r} is not an argument. Write it as KEY=VALUE.")
        part = properties.get(key)
        if isinstance(part, dict) and part.get("type") == "string":
            values[key] = text
            continue
        try:
            values[key] = json.loads(text)
        except ValueError:
            values[key] = text
    return values


def _describe_mcp_tool(tool: ToolDefinition, approved: Sequence[ToolDefinition]) -> str:
    from cockpit.act.own_tools.check_arguments import describe_parameters

    before = next((each for each in approved if each.tool_id == tool.tool_id), None)
    state = "not approved"
    if before is not None:
        state = "approved" if before.digest == tool.digest else "changed since it was approved"
    hints = ", ".join(f"{name}: {str(value).lower()}" for name, value in tool.annotations.items())
    lines = [
        f"{tool.name}({describe_parameters(tool.parameters)}) · {state}",
        _indent(tool.description or "(no description)"),
    ]
    if hints:
        lines.append(f"the server's hints, which are not trusted: {hints}")
    if before is not None and before.digest != tool.digest:
        changes = difflib.unified_diff(
            before.description.splitlines(),
            tool.description.splitlines(),
            "approved",
            "now",
            lineterm="",
        )
        lines.append(_indent("\n".join(changes) or "(its schema or hints changed)"))
    return "\n".join(lines)


def _indent(text: str) -> str:
    # In front of every line, so that no content can pass for words of cockpit.
    return "\n".join(f"│ {line}" for line in text.splitlines())
