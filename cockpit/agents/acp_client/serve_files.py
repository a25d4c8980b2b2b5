"""``fs/read_text_file`` and ``fs/write_text_file``: files of the worktree, through the session's policy.

What is read is not masked: an agent writes back what it read, and a masked secret would replace the real one
on the disk. So a file with a secret's name is refused, and one with a secret in it is asked for whatever the
policy allows. What the session's facts keep of it is masked. See ``docs/reference/agents.md``, files.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from typing import Any

from cockpit.access.confined_paths import PathMissing, PathRefused
from cockpit.access.secret_files import is_sensitive
from cockpit.act.adapters.write_files import put_file
from cockpit.act.text_edits import bytes_digest
from cockpit.agents.acp_client.acp_session_context import SessionContext
from cockpit.agents.acp_client.agent_connection import Refused
from cockpit.agents.acp_client.serve_permissions import ApprovedWork
from cockpit.agents.acp_client.tool_calls import diff_texts
from cockpit.core.json_fields import JsonObject, get_count, get_text
from cockpit.core.secrets import mask
from cockpit.loop.permissions.ask_context import FileRequest, record_read
from cockpit.loop.permissions.tool_request import FileEdit, ToolRequest
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.journal.details.agent_turns import RunnerFileRead, RunnerFileWritten

LARGEST_FILE = 8 * 1024 * 1024
"""Bytes of a file that is read or written."""
_MOST_DIFF = 24_000
_DIGEST = 16
_MOST_FACTS = 2_000


class AgentFiles:
    """The files that one session reads and writes through cockpit."""

    def __init__(self, context: SessionContext, approved: ApprovedWork) -> None:
        self._context = context
        self._approved = approved
        self._readable: set[str] = set()
        """Files that the agent may read again: it was allowed to, or wrote them itself."""
        self._recorded: set[tuple[ScopeItem, str]] = set()
        """Parts of files, with their versions, that are facts of the session."""

    async def read(self, params: JsonObject) -> Mapping[str, Any]:
        """Answer ``fs/read_text_file``. Raises :class:`Refused`."""
        path = self._relative(params)
        if is_sensitive(path):
            raise Refused(f"{path} holds secrets by its name; cockpit does not hand it out.")
        text = await asyncio.to_thread(self._load, path)
        if text is None:
            raise Refused(f"There is no file {path}.")
        lines = text.splitlines(keepends=True)
        first = max(1, get_count(params, "line"))
        limit = get_count(params, "limit")
        has_limit = "limit" in params and params["limit"] is not None
        part = lines[first - 1 :][:limit] if has_limit else lines[first - 1 :]
        last = min(first - 1 + len(part), len(lines))
        is_whole = len(part) == len(lines) or not part
        item = ScopeItem("file", path, None if is_whole else (first, last))
        await self._allow_reading(item, text)
        detail = RunnerFileRead(
            path=mask(path)[:1_000],
            version=_version(text),
            first=min(first, len(lines)),
            last=last,
            gated=True,
        )
        await self._context.journal.write(detail)
        self._context.journal.reads.add(detail.path, detail.version, detail.first, detail.last)
        await self._record_fact(item, text)
        return {"content": "".join(part)}

    async def write(self, params: JsonObject) -> Mapping[str, Any]:
        """Answer ``fs/write_text_file``. Raises :class:`Refused`."""
        context, path = self._context, self._relative(params)
        after = params.get("content")
        if not isinstance(after, str):
            raise Refused("content must be text.")
        if len(after.encode("utf-8", "replace")) > LARGEST_FILE:
            raise Refused(f"cockpit writes no file of more than {LARGEST_FILE:,} bytes.")
        before = await asyncio.to_thread(self._load, path)
        real = context.root / path
        proposal_id = self._approved.take_text(real, before, after)
        if not proposal_id:
            request = ToolRequest(
                agent=context.agent.name,
                transport="acp",
                call_id="",
                tool="fs/write_text_file",
                kind="edit",
                title=f"write {path}",
                input={"path": path, "content": after},
                edits=(FileEdit(path, None, after),),
                cwd=str(context.root),
                paths=(path,),
            )
            answer = await context.ask(request)
            if not answer.allowed:
                raise Refused(answer.message)
            proposal_id = answer.proposal_id
        await asyncio.to_thread(self._store, path, before, after)
        self._readable.add(path)
        context.updates.calls.note_written(path, str(context.root))
        diff = await asyncio.to_thread(diff_texts, path, before, after)
        written = RunnerFileWritten(
            path=mask(path)[:1_000],
            version=_version(after),
            proposal_id=proposal_id,
            diff=mask(diff)[:_MOST_DIFF],
        )
        await context.journal.write(written)
        return {}

    async def _allow_reading(self, item: ScopeItem, text: str) -> None:
        context, path = self._context, item.ref
        if path in self._readable:
            return
        has_secret = await asyncio.to_thread(lambda: mask(text) != text)
        request = FileRequest(context.agent.name, "acp", path, item.lines, has_secret)
        answer = await context.ask_to_read(request)
        if not answer.allowed:
            raise Refused(answer.message)
        # The grant covers the path: the agent may read the rest of it, and read it again.
        self._readable.add(path)

    async def _record_fact(self, item: ScopeItem, text: str) -> None:
        """Keep what was read as a fact of the session; the same part of the same version only once."""
        context, key = self._context, (item, _version(text))
        if key in self._recorded or len(self._recorded) >= _MOST_FACTS:
            return
        self._recorded.add(key)
        wave_id = await context.turn_wave()
        await record_read(
            context.store, context.settings, context.root, context.session_id, wave_id, item
        )

    def _relative(self, params: JsonObject) -> str:
        path = get_text(params, "path")
        root = str(self._context.root)
        if not path.startswith("/"):
            raise Refused(f"{path[:200]!r} is not an absolute path.")
        inside = os.path.relpath(os.path.normpath(path), root)
        if inside == ".." or inside.startswith("../"):
            raise Refused(f"{path[:200]!r} is outside of {root}, where this session works.")
        try:
            return self._context.confined.relative(inside)
        except PathRefused as error:
            raise Refused(str(error)) from error

    def _load(self, path: str) -> str | None:
        """Return a file's text; None where there is none."""
        data = self._load_bytes(path)
        if data is None:
            return None
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(f"{path} is not UTF-8 text.") from None

    def _load_bytes(self, path: str) -> bytes | None:
        try:
            with self._context.confined.open_read(path) as file:
                data = file.read(LARGEST_FILE + 1)
        except PathMissing:
            return None
        except PathRefused as error:
            raise Refused(str(error)) from error
        if len(data) > LARGEST_FILE:
            raise Refused(f"{path} has more than {LARGEST_FILE:,} bytes.")
        return data

    def _store(self, path: str, before: str | None, text: str) -> None:
        """Give the file its new text, unless it is no longer as it was."""
        confined, key = self._context.confined, f"{self._context.session_id} {path}"
        digest = None if before is None else bytes_digest(before.encode())
        try:
            is_written = put_file(confined, path, text.encode(), key, digest)
        except PathRefused as error:
            raise Refused(str(error)) from error
        except OSError as error:
            raise Refused(f"{path} cannot be written: {error.strerror or error}.") from error
        if not is_written:
            raise Refused(f"{path} changed while it was written. Read it again.")


def _version(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
