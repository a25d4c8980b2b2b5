"""The protocol's methods: what a client may ask of cockpit's agent, over one connection.

See ``docs/reference/acp.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from cockpit import __version__
from cockpit.access import user_presence
from cockpit.acp_server.client_link import ClientLink
from cockpit.acp_server.prompt_text import read_prompt
from cockpit.acp_server.served_session import ServedSession, TurnEnd
from cockpit.acp_server.session_updates import Wording
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.json_fields import JsonObject, get_objects, get_text
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH, is_narrower
from cockpit.loop.runtime import Runtime
from cockpit.store.sessions import sessions

PROTOCOL = 1
MOST_SESSIONS = 50
"""Sessions that a client has open at once."""
LISTED = 200
"""Sessions of a list."""

OpenProject = Callable[[Path], AbstractAsyncContextManager[Runtime]]
"""Opens the project of a folder. Raises ``CockpitError`` where it may not be opened."""

_MODES = {
    "ask": ("Ask", "You decide every proposal."),
    "trusted": ("Use trust rules", "What your trust rules cover is approved; you decide the rest."),
    "reads": ("Approve reads", "Context requests are approved; you decide everything else."),
    "all": (
        "Approve all",
        "Everything is approved but writes to GitHub and actions of high risk.",
    ),
}


class RequestInvalid(CockpitError):
    """A request whose parameters cannot be used."""

    code = "usage"


class UnknownMethod(Exception):
    """A method that cockpit does not have."""


class AgentServer:
    """Serves one client. :meth:`close` stops everything that runs for it; what is stored stays."""

    def __init__(self, open_project: OpenProject, link: ClientLink, wording: Wording) -> None:
        self._open_project = open_project
        self._link = link
        self._wording = wording
        self._runtimes: dict[Path, Runtime] = {}
        self._opening = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._sessions: dict[str, ServedSession] = {}
        self._announcing: set[asyncio.Task[None]] = set()

    async def serve(self, method: str, params: JsonObject) -> Mapping[str, Any]:
        """Answer a request. Raises ``CockpitError``, ``ModelError`` and :class:`UnknownMethod`."""
        match method:
            case "initialize":
                return _describe_agent()
            case "session/new":
                return await self._create(params)
            case "session/load" | "session/resume":
                return await self._load(params, replay=method == "session/load")
            case "session/list":
                return await self._list(params)
            case "session/prompt":
                return await self._prompt(params)
            case "session/set_mode":
                return await self._set_mode(params)
            case "session/close":
                await self._find(params).close()
                del self._sessions[get_text(params, "sessionId")]
                return {}
        raise UnknownMethod(method)

    async def cancel(self, params: JsonObject) -> None:
        """Stop the turn of a session, as the notification ``session/cancel`` asks."""
        session = self._sessions.get(get_text(params, "sessionId"))
        if session is not None:
            await session.cancel()

    async def close(self) -> None:
        """Stop every session, then close the projects."""
        for task in self._announcing:
            task.cancel()
        await asyncio.gather(
            *(session.close() for session in self._sessions.values()), return_exceptions=True
        )
        await self._resources.aclose()

    async def _create(self, params: JsonObject) -> Mapping[str, Any]:
        runtime = await self._open(params)
        self._require_room()
        session_id = runtime.store.ids.new("s")
        policy = runtime.engine.settings.policy
        session = ServedSession(runtime, session_id, self._link, self._wording, policy)
        self._sessions[session_id] = session
        self._announce_commands(session)
        return {"sessionId": session_id, "modes": _list_modes(session)}

    async def _load(self, params: JsonObject, *, replay: bool) -> Mapping[str, Any]:
        runtime = await self._open(params)
        session_id = get_text(params, "sessionId")
        if (before := self._sessions.pop(session_id, None)) is not None:
            await before.close()
        self._require_room()
        session = ServedSession(runtime, session_id, self._link, self._wording, "ask")
        await session.attach(replay=replay)
        self._sessions[session_id] = session
        self._announce_commands(session)
        return {"modes": _list_modes(session)}

    async def _list(self, params: JsonObject) -> Mapping[str, Any]:
        if params.get("cwd") is not None:
            runtimes = [await self._open(params)]
        else:
            runtimes = list(self._runtimes.values())
        entries = []
        for runtime in runtimes:
            root = str(runtime.place.root)
            for session in await runtime.store.read(lambda c: sessions.select_recent(c, LISTED)):
                is_ours = not session.agent and not session.role
                if is_ours and session.task_type != sessions.EXTERNAL_AGENT:
                    title = self._wording.clean(session.title).replace("\n", " ")
                    entry = {"sessionId": session.session_id, "cwd": root, "title": title}
                    entries.append({**entry, "updatedAt": session.updated_at})
        return {"sessions": entries}

    async def _prompt(self, params: JsonObject) -> Mapping[str, Any]:
        session = self._find(params)
        text = read_prompt(get_objects(params, "prompt"), session.runtime.place.root)
        return _describe_end(await session.prompt(text))

    async def _set_mode(self, params: JsonObject) -> Mapping[str, Any]:
        session, mode = self._find(params), get_text(params, "modeId")
        offered = _offered_modes(session)
        if mode not in offered:
            raise RequestInvalid(
                f"The approval policy {mode!r} cannot be chosen here; it can be {' or '.join(offered)}."
                " A project's settings, --approve and an agent above this process limit it."
            )
        await session.change_policy(mode)
        return {}

    def _find(self, params: JsonObject) -> ServedSession:
        session_id = get_text(params, "sessionId")
        if session_id not in self._sessions:
            raise NotFound(
                f"No session {session_id[:100]!r} is open on this connection. Open one with session/new or"
                " session/load."
            )
        return self._sessions[session_id]

    def _require_room(self) -> None:
        if len(self._sessions) >= MOST_SESSIONS:
            raise RequestInvalid(
                f"{MOST_SESSIONS} sessions are open on this connection. Close one first."
            )

    async def _open(self, params: JsonObject) -> Runtime:
        folder = Path(get_text(params, "cwd"))
        if not folder.is_absolute():
            raise RequestInvalid("cwd must be the absolute path of a folder of your project.")
        if not await asyncio.to_thread(folder.is_dir):
            raise RequestInvalid(f"There is no folder {folder}. Open one of your project.")
        async with self._opening:
            folder = await asyncio.to_thread(folder.resolve)
            if folder not in self._runtimes:
                opened = self._open_project(folder)
                self._runtimes[folder] = await self._resources.enter_async_context(opened)
            return self._runtimes[folder]

    def _announce_commands(self, session: ServedSession) -> None:
        """Send the slash commands; a task of its own, so that the answer to the request goes first."""
        types = session.runtime.engine.task_types.values()
        clean = self._wording.clean
        commands = [
            {
                "name": kind.command.removeprefix("/"),
                "description": clean(f"Start as {kind.name.replace('_', ' ')}"),
                **({"input": {"hint": clean(kind.arguments)}} if kind.arguments else {}),
            }
            for kind in types
            if kind.command
        ]
        update = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
        task = asyncio.create_task(self._link.update(session.session_id, update))
        self._announcing.add(task)
        task.add_done_callback(self._announcing.discard)


def _describe_agent() -> Mapping[str, Any]:
    return {
        "protocolVersion": PROTOCOL,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        },
        "agentInfo": {"name": "cockpit", "title": "cockpit", "version": __version__},
        "authMethods": [],
    }


def _offered_modes(session: ServedSession) -> list[str]:
    """Return the policies that a session may have: none wider than a fixed one, and none below an agent."""
    settings = session.runtime.engine.settings
    widest = settings.policy if settings.policy_is_final else "all"
    if user_presence.find_agent(counts_cockpit=False):
        widest = "ask"
    current = session.policy
    return [name for name in POLICY_WIDTH if name == current or not is_narrower(widest, name)]


def _list_modes(session: ServedSession) -> Mapping[str, Any]:
    modes = [
        {"id": name, "name": _MODES[name][0], "description": _MODES[name][1]}
        for name in _offered_modes(session)
    ]
    return {"currentModeId": session.policy, "availableModes": modes}


def _describe_end(end: TurnEnd) -> Mapping[str, Any]:
    answer: dict[str, Any] = {"stopReason": end.stop_reason}
    if (session := end.session) is not None:
        answer["usage"] = {
            "totalTokens": session.input_tokens + session.output_tokens,
            "inputTokens": session.input_tokens,
            "outputTokens": session.output_tokens,
            "cachedReadTokens": session.cached_tokens,
        }
    return answer
