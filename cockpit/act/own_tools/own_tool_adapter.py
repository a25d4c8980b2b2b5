"""Call a tool in Python: exactly the sources that were approved, in the sandbox, once.

See ``docs/reference/tools.md``, calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.act.adapters.adapter import Found, Outcome, failed, succeeded, tail
from cockpit.act.own_tools.run_child import ChildAnswer, NoSandbox, run_child
from cockpit.act.own_tools.tool_definition import ToolDefinition, clean_text
from cockpit.act.own_tools.tool_files import ToolFile, ToolFileRefused, ToolFolder, load_tool_file
from cockpit.act.sandbox.find_planted_repos import mark_repository, set_aside_planted
from cockpit.act.workspace import Workspace
from cockpit.core.failure_lines import clip_middle
from cockpit.core.read_record import convert

MAX_RESULT_CHARS = 24_000
"""Characters of a result that a receipt keeps."""


class _Payload(Struct, frozen=True):
    tool_id: str
    digest: str
    arguments: dict[str, Any]


class OwnToolAdapter:
    """Performs ``own_tool``.

    ``find_approved`` returns the approved tool of an id, or None; ``list_folders`` the folders of tools.
    """

    ends_when_cancelled = True

    def __init__(
        self,
        find_approved: Callable[[str], ToolDefinition | None],
        list_folders: Callable[[], Sequence[ToolFolder]],
    ) -> None:
        self._find_approved = find_approved
        self._list_folders = list_folders

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Call it. An exception of the tool is a permanent failure with its message."""
        request = convert(payload, _Payload)
        definition = self._find_approved(request.tool_id)
        if definition is None or definition.digest != request.digest:
            return failed(
                "conflict",
                f"{request.tool_id[:100]} is not approved as it was shown by now; it was not run. The user"
                " approves it with `cockpit trust NAME`.",
            )
        try:
            file = await asyncio.to_thread(self._load_file, definition)
        except ToolFileRefused as error:
            return failed("conflict", f"{definition.name} was not run: {error}")
        if file.digest != request.digest:
            return failed(
                "conflict",
                f"{definition.name}: {file.label} changed since the user approved it; it was not run. The"
                " user approves the new version with `cockpit trust NAME`.",
            )
        writes = definition.effects != "reads"
        before = await asyncio.to_thread(mark_repository, ground.root) if writes else None
        planted: tuple[str, ...] = ()
        try:
            answer = await run_child(
                file,
                {"mode": "call", "function": definition.function, "arguments": request.arguments},
                ground.sandbox,
                ground.root,
                ground.environment,
                timeout_s=definition.timeout_s,
                writes=writes,
            )
        except NoSandbox as error:
            return failed("conflict", f"{definition.name}: {error}")
        finally:
            if before is not None:
                planted = await asyncio.to_thread(set_aside_planted, ground.root, before)
        return _outcome(definition, answer, planted)

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Return ``not_done`` for a tool that cannot write, which may run again; else unknown."""
        definition = self._find_approved(str(payload.get("tool_id", "")))
        is_same = definition is not None and definition.digest == payload.get("digest")
        if definition is not None and is_same and definition.effects == "reads":
            return "not_done"
        return "unknown"

    def _load_file(self, definition: ToolDefinition) -> ToolFile:
        for folder in self._list_folders():
            if folder.place == definition.place:
                return load_tool_file(folder, definition.file)
        raise ToolFileRefused(f"the folder of {definition.place} is gone.")


def _outcome(
    definition: ToolDefinition, answer: ChildAnswer, planted: tuple[str, ...] = ()
) -> Outcome:
    detail: dict[str, Any] = {
        "tool": definition.tool_id,
        "digest": definition.digest,
        "duration_ms": answer.duration_ms,
    }
    if printed := clean_text(tail(answer.printed), MAX_RESULT_CHARS):
        detail["stderr"] = printed
    if planted:
        detail["set_aside"] = list(planted)
        return failed(
            "permanent",
            f"{definition.name} made a .git, whose settings could run programs with your rights. It is now"
            f" {', '.join(planted)}: look at it, and rename it to .git if you want it.",
            **detail,
        )
    if answer.timed_out:
        return Outcome("timeout", f"{definition.name}: {answer.error}", "permanent", detail)
    if answer.error and answer.needs:
        detail["needs"] = [clean_text(item, 500) for item in answer.needs]
    if answer.error:
        return failed(
            "permanent", f"{definition.name}: {clean_text(answer.error, 2_000)}", **detail
        )
    detail["stdout"] = render_result(answer.result)
    return succeeded(f"{definition.name} returned.", **detail)


def render_result(result: Any) -> str:
    """Return a result as text: a text as it is, anything else as JSON; masked, without escapes, clipped."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=1)
    return clip_middle(clean_text(text, len(text) + 1), MAX_RESULT_CHARS)
