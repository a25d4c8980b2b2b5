"""One ACP agent: its process, the connection with it, and the requests that cockpit makes.

The library numbers requests and knows the schema; it takes most of a second to import, so it is imported
when the first agent starts, in a thread. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit import __version__
from cockpit.access.process_group import end_group, start
from cockpit.access.run_program import ProgramMissing
from cockpit.agents.acp_client.bounded_transport import BoundedTransport, OnOdd, OnUpdate
from cockpit.agents.acp_client.login_ways import LoginWay, describe_login, read_login_ways
from cockpit.agents.registry.known_agents import Agent
from cockpit.agents.runs.agent_command_line import agent_environment
from cockpit.agents.runs.agent_process import read_tail
from cockpit.core.errors import CockpitError
from cockpit.core.json_fields import JsonObject, get_count, get_object, get_text
from cockpit.core.project.own_programs import find_program
from cockpit.core.secrets import mask

PROTOCOL = 1
"""The version of the protocol that cockpit speaks."""
INITIALIZE_S = 60.0
"""Seconds that an agent has for its first answer: some unpack themselves first."""
SESSION_S = 120.0
"""Seconds that an agent has to open a session; it starts its MCP servers then."""
_SHORT_S = 30.0
_EXIT_POLL_S = 0.5
_LAST_LINES = 3
_MOST_WORDS = 1_000
_LOGIN_NEEDED = -32000
_INTERNAL_ERROR = -32603


class AgentFailed(CockpitError):
    """The agent ended, did not answer in time, or refused; the message says which, and what to do."""

    code = "agent_failed"


class AgentGone(AgentFailed):
    """The agent's process ended or closed its output."""

    code = "agent_gone"


class AgentRefused(AgentFailed):
    """The agent answered a request with an error."""

    code = "agent_failed"


class LoginNeeded(AgentFailed):
    """The agent wants the user to log in first."""

    code = "agent_login"


class Refused(Exception):
    """A request of the agent that cockpit does not carry out; the message is what the agent gets."""


Serve = Callable[[str, JsonObject], Awaitable[Mapping[str, Any]]]
"""Answers a request of the agent by its method and parameters. Raises :class:`Refused`."""


class Abilities(Struct, frozen=True):
    """What the agent said of itself in ``initialize``."""

    protocol: int
    name: str
    version: str
    loads: bool
    """Whether it can load a session, with its history."""
    resumes: bool
    """Whether it can take a session up without repeating its history."""
    forks: bool
    images: bool
    """Whether a prompt may contain images."""
    logins: tuple[LoginWay, ...]
    """Its ways to log in."""


class AgentConnection:
    """A running agent. Make one with :meth:`open`; :meth:`close` ends its whole process group."""

    def __init__(
        self,
        agent: Agent,
        process: asyncio.subprocess.Process,
        connection: Any,
        transport: BoundedTransport,
    ) -> None:
        self.agent = agent
        self.pid = process.pid
        self._process = process
        self._connection = connection
        self._transport = transport
        self._errors = bytearray()
        self._tail = asyncio.ensure_future(read_tail(process.stderr, self._errors))
        self._watch = asyncio.ensure_future(self._watch_exit())
        self._closing: asyncio.Future[None] | None = None
        self._logins: tuple[LoginWay, ...] = ()
        self.gone = asyncio.Event()
        """Set when the process ended."""

    @classmethod
    async def open(
        cls,
        agent: Agent,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        serve: Serve,
        on_update: OnUpdate,
        on_odd: OnOdd,
        on_start: Callable[[int], object] = lambda _: None,
        files: Sequence[int] = (),
    ) -> AgentConnection:
        """Start the agent in a process group of its own.

        ``on_start`` receives its process id at once. Raises ``ProgramMissing``.
        """
        library = await asyncio.to_thread(_import_library)
        program = find_program(argv[0], environment.get("PATH"))
        if program is None:
            raise ProgramMissing(argv[0])
        command = (program, *argv[1:])
        try:
            process = await start(command, cwd, environment, piped=True, files=files)
        except FileNotFoundError as error:
            raise ProgramMissing(command[0]) from error
        except OSError as error:
            raise ProgramMissing(command[0], error.strerror or str(error)) from error
        if process.stdout is None or process.stdin is None:
            raise AssertionError("the agent was started with pipes")
        try:
            on_start(process.pid)
            transport = BoundedTransport(process.stdout, process.stdin, on_update, on_odd)
            connection = library.Connection(_serving(library, serve), transport)
            return cls(agent, process, connection, transport)
        except BaseException:
            await asyncio.shield(end_group(process))
            raise

    async def initialize(self) -> Abilities:
        """Exchange versions and abilities. Raises :class:`AgentFailed`."""
        answer = await self.request(
            "initialize",
            {
                "protocolVersion": PROTOCOL,
                "clientCapabilities": {
                    "fs": {"readTextFile": True, "writeTextFile": True},
                    "terminal": True,
                    "elicitation": {"form": {}, "url": {}},
                    "auth": {"terminal": True},
                },
                "clientInfo": {"name": "cockpit", "title": "cockpit", "version": __version__},
            },
            INITIALIZE_S,
        )
        abilities = read_abilities(answer)
        self._logins = abilities.logins
        if abilities.protocol != PROTOCOL:
            raise AgentFailed(
                f"{self.agent.title} speaks version {abilities.protocol} of the Agent Client Protocol, and"
                f" cockpit speaks version {PROTOCOL}. Update the older of the two."
            )
        return abilities

    async def request(
        self, method: str, params: Mapping[str, Any], timeout_s: float | None = _SHORT_S
    ) -> JsonObject:
        """Make a request and return its result. ``timeout_s`` None waits for ever.

        Raises :class:`AgentFailed`, :class:`AgentGone` and :class:`LoginNeeded`.
        """
        library = _import_library()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._connection.send_request(method, dict(params))
        except TimeoutError as error:
            raise AgentFailed(
                f"{self.agent.title} did not answer {method} within {timeout_s:g} s."
                f"{self._last_words()}"
            ) from error
        except library.RequestError as error:
            raise self._refusal(method, error.code, str(error), error.data) from error
        except ConnectionError as error:
            raise AgentGone(await self._why_gone()) from error
        return answer if isinstance(answer, dict) else {}

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification; an agent that is gone is none to tell."""
        with contextlib.suppress(ConnectionError):
            await self._connection.send_notification(method, dict(params))

    async def close(self) -> None:
        """End the agent's process group, and what of its requests still runs."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._watch.cancel()
        await self._transport.close()
        await end_group(self._process)
        await self._connection.close()
        self._tail.cancel()
        await asyncio.gather(self._tail, self._watch, return_exceptions=True)
        self.gone.set()

    async def _watch_exit(self) -> None:
        # Not process.wait(): a child that the agent left behind may keep its output open.
        while self._process.returncode is None:  # noqa: ASYNC110 - asyncio reports no exit of its own
            await asyncio.sleep(_EXIT_POLL_S)
        await asyncio.sleep(_EXIT_POLL_S)
        self.gone.set()
        await self._connection.close()

    async def _why_gone(self) -> str:
        for _ in range(10):
            if self._process.returncode is not None:
                break
            await asyncio.sleep(_EXIT_POLL_S / 10)
        code = self._process.returncode
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was ended by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        return f"{self.agent.title} {how}.{self._last_words()}"

    def _last_words(self) -> str:
        lines = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
        words = " / ".join(line.strip() for line in lines[-_LAST_LINES:] if line.strip())
        return f" Its last output: {mask(words)[:_MOST_WORDS]}" if words else ""

    def _refusal(self, method: str, code: int, message: str, data: Any) -> AgentFailed:
        details = get_text(data, "details") if isinstance(data, dict) else ""
        words = mask(" ".join(f"{message} {details}".split()))[:_MOST_WORDS]
        if code == _LOGIN_NEEDED:
            how = self.agent.login.how or f"Log in with {self.agent.title}'s own program."
            ways = "; ".join(describe_login(self.agent, way) for way in self._logins)
            offers = f" Its ways to log in: {ways}." if ways else ""
            return LoginNeeded(
                f"{self.agent.title} wants you to log in first. {how}{offers} It said: {words}"
            )
        return AgentRefused(f"{self.agent.title} refused {method}: {words}")


def read_abilities(answer: JsonObject) -> Abilities:
    """Read an answer to ``initialize``; what is missing or of another type is not an ability."""
    capabilities = get_object(answer, "agentCapabilities")
    session = get_object(capabilities, "sessionCapabilities")
    prompt = get_object(capabilities, "promptCapabilities")
    info = get_object(answer, "agentInfo")
    return Abilities(
        protocol=get_count(answer, "protocolVersion"),
        name=(get_text(info, "title") or get_text(info, "name"))[:100],
        version=get_text(info, "version")[:100],
        loads=capabilities.get("loadSession") is True,
        resumes=isinstance(session.get("resume"), dict),
        forks=isinstance(session.get("fork"), dict),
        images=prompt.get("image") is True,
        logins=read_login_ways(answer),
    )


class _Library(Struct, frozen=True):
    Connection: Any
    RequestError: Any


_LIBRARY: list[_Library] = []


def _import_library() -> _Library:
    if not _LIBRARY:
        from acp.connection import Connection
        from acp.exceptions import RequestError

        _LIBRARY.append(_Library(Connection, RequestError))
    return _LIBRARY[0]


def _serving(library: _Library, serve: Serve) -> Callable[..., Awaitable[Any]]:
    """Return the library's handler: every failure becomes the agent's answer, none a line on the terminal."""

    async def handle(method: str, params: Any, is_notification: bool) -> Any:
        if is_notification:
            return None
        try:
            return dict(await serve(method, params if isinstance(params, dict) else {}))
        except NotImplementedError:
            raise library.RequestError.method_not_found(method) from None
        except Refused as refusal:
            raise library.RequestError(_INTERNAL_ERROR, str(refusal)) from None
        except Exception as error:
            words = str(error) if isinstance(error, CockpitError) else type(error).__name__
            raise library.RequestError(_INTERNAL_ERROR, f"cockpit failed: {words}") from None

    return handle


LOGIN_S = 600.0
"""Seconds that a login may take: the user is in a browser meanwhile."""


async def log_in(
    agent: Agent, environment: Mapping[str, str], cwd: Path, choose: Callable[[Abilities], LoginWay]
) -> LoginWay:
    """Start ``agent`` and let it log in the way that ``choose`` picks; returns that way.

    Raises ``AgentFailed``, also for a login that fails or takes too long, and ``ProgramMissing``.
    """
    connection = await _open(agent, environment, cwd)
    try:
        way = choose(await connection.initialize())
        await connection.request("authenticate", {"methodId": way.id}, LOGIN_S)
        return way
    finally:
        await connection.close()


async def shake_hands(agent: Agent, environment: Mapping[str, str], cwd: Path) -> Abilities:
    """Start ``agent``, ask it to initialize, and end it. Raises ``AgentFailed`` and ``ProgramMissing``."""
    connection = await _open(agent, environment, cwd)
    try:
        return await connection.initialize()
    finally:
        await connection.close()


async def _open(agent: Agent, environment: Mapping[str, str], cwd: Path) -> AgentConnection:
    return await AgentConnection.open(
        agent,
        agent.acp.command,
        cwd=cwd,
        environment=agent_environment(agent, environment, {}),
        serve=_serve_nothing,
        on_update=_ignore,
        on_odd=_ignore,
    )


async def _serve_nothing(method: str, params: JsonObject) -> Mapping[str, Any]:
    raise NotImplementedError


async def _ignore(_: object) -> None:
    return None
