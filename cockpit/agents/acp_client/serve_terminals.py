"""``terminal/*``: commands that an agent runs through cockpit, in the sandbox, with live output.

A command runs when the same one was just allowed, or after a permission of its own. Output is kept from its
end, up to the limit that the agent names. See ``docs/reference/agents.md``, terminals.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cockpit.access.confined_paths import PathRefused
from cockpit.access.process_group import end_group, start
from cockpit.act.sandbox.find_planted_repos import mark_repository, set_aside_planted
from cockpit.act.sandbox.run_confined import Watch
from cockpit.agents.acp_client.acp_session_context import SessionContext
from cockpit.agents.acp_client.agent_connection import Refused
from cockpit.agents.acp_client.serve_permissions import ApprovedWork
from cockpit.core.json_fields import JsonObject, get_count, get_objects, get_text
from cockpit.core.text import end_sentence
from cockpit.loop.permissions.tool_commands import peel_shells
from cockpit.loop.permissions.tool_request import ToolRequest

MOST_TERMINALS = 16
"""Terminals of a session at once."""
MOST_OUTPUT = 1024 * 1024
"""Bytes of a terminal's output that are kept, from its end."""
LONGEST_S = 3_600.0
"""Seconds that a command may take."""

_CHUNK = 65_536
_MOST_VARIABLES = 50
_POLL_S = 0.05
_QUIET = frozenset(("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "GIT_TERMINAL_PROMPT"))
"""Variables that say how output looks."""
_PLAIN = re.compile(r"[A-Za-z0-9._+-]{0,40}")
_SYSTEM_SHELLS = ("/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh")


class _Terminal:
    """One command and what it wrote."""

    def __init__(self, process: asyncio.subprocess.Process, limit: int) -> None:
        self.process = process
        self.output = bytearray()
        self.truncated = False
        self.ended = asyncio.Event()
        self.note = ""
        self._limit = limit

    def add(self, chunk: bytes) -> None:
        self.output += chunk
        if len(self.output) > self._limit:
            del self.output[: len(self.output) - self._limit]
            self.truncated = True

    def text(self) -> str:
        """Return the output; a character that the limit cut is left out."""
        data = bytes(self.output)
        while self.truncated and data and data[0] & 0xC0 == 0x80:
            data = data[1:]
        return data.decode("utf-8", "replace") + self.note

    def status(self) -> dict[str, Any]:
        code = self.process.returncode
        if code is None:
            return {"exitCode": None, "signal": "SIGKILL"}
        if code < 0:
            return {"exitCode": None, "signal": str(-code)}
        return {"exitCode": code, "signal": None}


class AgentTerminals:
    """The terminals of one session."""

    def __init__(self, context: SessionContext, approved: ApprovedWork) -> None:
        self._context = context
        self._approved = approved
        self._terminals: dict[str, _Terminal] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0

    async def serve(self, method: str, params: JsonObject) -> Mapping[str, Any]:
        """Answer a request ``terminal/*``. Raises :class:`Refused`."""
        if method == "terminal/create":
            return await self._create(params)
        name = get_text(params, "terminalId")
        terminal = self._terminals.get(name)
        if terminal is None:
            raise Refused(f"There is no terminal {name[:100]!r}; it was released, or never made.")
        match method:
            case "terminal/output":
                status = terminal.status() if terminal.ended.is_set() else None
                return {
                    "output": terminal.text(),
                    "truncated": terminal.truncated,
                    "exitStatus": status,
                }
            case "terminal/wait_for_exit":
                await terminal.ended.wait()
                return terminal.status()
            case "terminal/kill":
                await self._end(terminal)
                return {}
            case "terminal/release":
                del self._terminals[name]
                await self._end(terminal)
                return {}
            case _:
                raise NotImplementedError

    async def close(self) -> None:
        """End every command that runs."""
        for terminal in list(self._terminals.values()):
            await self._end(terminal)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._terminals.clear()

    async def _create(self, params: JsonObject) -> Mapping[str, Any]:
        if len(self._terminals) >= MOST_TERMINALS:
            raise Refused(f"There are {MOST_TERMINALS} terminals already; release one.")
        argv, line = self._read_command(params)
        cwd = self._folder(get_text(params, "cwd"))
        variables = _read_variables(params)
        # Variables change what a command does, so an approval without them does not count for it.
        telling = {name: value for name, value in variables.items() if not _is_quiet(name, value)}
        root = self._context.root
        script = _read_script(line, root) if cwd == root else line
        if telling or cwd != root or not self._approved.take_command(script):
            await self._ask(line, script, cwd, telling)
        limit = get_count(params, "outputByteLimit") or MOST_OUTPUT
        environment = {**self._context.environment, **variables}
        started: asyncio.Future[_Terminal] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(
            self._run(argv, cwd, environment, min(limit, MOST_OUTPUT), started)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        terminal = await started
        self._context.updates.calls.note_run(script)
        self._count += 1
        name = f"terminal-{self._count}"
        self._terminals[name] = terminal
        return {"terminalId": name}

    def _read_command(self, params: JsonObject) -> tuple[tuple[str, ...], str]:
        command, words = get_text(params, "command"), params.get("args")
        args = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
        if not command.strip() or any("\0" in word for word in (command, *args)):
            raise Refused("command must be text without NUL characters.")
        path = self._context.environment.get("PATH", os.defpath)
        if not args and shutil.which(command, path=path) is None:
            # Several agents send a line for the shell in place of a program.
            return ("/bin/sh", "-c", command), command
        return (command, *args), shlex.join((command, *args))

    def _folder(self, cwd: str) -> Path:
        root = self._context.root
        if not cwd:
            return root
        inside = os.path.relpath(os.path.normpath(cwd), root)
        try:
            folder = self._context.confined.inside(inside)
        except PathRefused as error:
            raise Refused(f"cwd: {error}") from error
        if not folder.is_dir():
            raise Refused(f"cwd: there is no folder {cwd[:200]}.")
        return folder

    async def _ask(self, line: str, script: str, cwd: Path, variables: Mapping[str, str]) -> None:
        request = ToolRequest(
            agent=self._context.agent.name,
            transport="acp",
            call_id="",
            tool="terminal/create",
            kind="execute",
            title=script[:200],
            input={"command": line, **({"env": dict(variables)} if variables else {})},
            command=script,
            cwd=str(cwd),
        )
        answer = await self._context.ask(request)
        if not answer.allowed:
            raise Refused(answer.message)

    async def _run(
        self,
        argv: tuple[str, ...],
        cwd: Path,
        environment: Mapping[str, str],
        limit: int,
        started: asyncio.Future[_Terminal],
    ) -> None:
        context = self._context
        sandbox = context.sandbox
        watched = Watch(sandbox.choices.limits, context.root, whole=sandbox.works)
        before = await asyncio.to_thread(mark_repository, context.root)
        terminal: _Terminal | None = None
        with ExitStack() as stack:
            try:
                inner = argv if cwd == context.root else ("/usr/bin/env", "-C", str(cwd), *argv)
                launch = stack.enter_context(sandbox.launch(inner, context.root, dict(environment)))
                process = await start(
                    launch.argv, context.root, environment, piped=False, files=launch.files
                )
                watched.begin(process.pid)
                terminal = _Terminal(process, limit)
                started.set_result(terminal)
                await self._follow(terminal)
            except OSError as error:
                words = f"{argv[0]!r} could not be started: {error.strerror or error}"
                if not started.done():
                    started.set_exception(Refused(words))
            finally:
                await watched.end()
                if terminal is not None:
                    await asyncio.shield(end_group(terminal.process))
                    if watched.reason:
                        terminal.note = f"\nIt was ended: {end_sentence(watched.reason)}"
                planted = await asyncio.to_thread(set_aside_planted, context.root, before)
                for each in planted:
                    await context.journal.note(f"A command of the agent: {each}")
                if terminal is not None:
                    terminal.ended.set()
                if not started.done():
                    started.cancel()

    async def _follow(self, terminal: _Terminal) -> None:
        """Read the output until the command ends; a child that it left may keep the pipes open."""
        process = terminal.process
        readers = [
            asyncio.ensure_future(_read(stream, terminal))
            for stream in (process.stdout, process.stderr)
        ]
        try:
            async with asyncio.timeout(LONGEST_S):
                waiting: set[asyncio.Future[None]] = set(readers)
                while waiting and process.returncode is None:
                    _, waiting = await asyncio.wait(waiting, timeout=_POLL_S)
                if waiting:
                    await asyncio.wait(waiting, timeout=10 * _POLL_S)
                while process.returncode is None:  # noqa: ASYNC110 - wait() waits for the pipes too
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            terminal.note = f"\nIt was ended after {LONGEST_S:g} s."
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    async def _end(self, terminal: _Terminal) -> None:
        if not terminal.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                await end_group(terminal.process)
            await terminal.ended.wait()


def _is_quiet(name: str, value: str) -> bool:
    """Whether a variable only says how output looks, or names the shell of the system."""
    if name == "SHELL":
        return value in _SYSTEM_SHELLS
    return name in _QUIET and _PLAIN.fullmatch(value) is not None


def _read_script(line: str, root: Path) -> str:
    """Return what a line has the system's shell run in ``root``, without a ``cd`` there (Kimi Code's way)."""
    script, shells = peel_shells(line)
    if any("/" in shell and shell not in _SYSTEM_SHELLS for shell in shells):
        return line
    folder = str(root)
    return script if "'" in folder else script.removeprefix(f"cd '{folder}' && ")


def _read_variables(params: JsonObject) -> dict[str, str]:
    variables = {}
    for entry in get_objects(params, "env")[:_MOST_VARIABLES]:
        name, value = get_text(entry, "name"), get_text(entry, "value")
        if name and "=" not in name and "\0" not in name + value:
            variables[name] = value
    return variables


async def _read(stream: asyncio.StreamReader | None, terminal: _Terminal) -> None:
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        terminal.add(chunk)
