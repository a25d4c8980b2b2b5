"""``cockpit mcp`` as a client starts it, or served in this process: one JSON message a line."""

from __future__ import annotations

import asyncio
import json
import queue
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import run_cockpit
from state_for_tests import kept_variables

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.backlog.tools.work_tool import Tier
from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project
from cockpit.loop.decisions.decide_proposal import Decision, decide_proposal
from cockpit.mcp.answer_call import ToolServer
from cockpit.mcp.call_dispatcher import Dispatcher
from cockpit.mcp.stdio_lines import Wire as ServerWire
from cockpit.mcp.stdio_server import StdioServer
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import proposals

COMMAND = run_cockpit.PROGRAM
PATIENCE_S = 60
VERSION = "2025-11-25"
C = TypeVar("C", bound="Client")


@dataclass
class Project:
    """A project and the environment that ``cockpit`` is run with there."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        kept = kept_variables()
        home = self.root.parent / "home"
        home.mkdir(exist_ok=True)
        config = str(self.root.parent / "config")
        return {**kept, "HOME": str(home), "COCKPIT_CONFIG_DIR": config, **self.extra}

    @cached_property
    def database(self) -> Path:
        """Found once: git is asked where the project is."""
        place = locate_project(self.root)
        place.prepare()
        return place.database

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The project's store, as another process than the server's opens it."""
        with Store.open(self.database) as store:
            yield store

    def run(self, *words: str, expect: int = 0) -> str:
        """Run ``cockpit`` to its end, which must be ``expect``; returns its output."""
        done = run_cockpit.run(words, cwd=self.root, env=self.env, patience_s=PATIENCE_S)
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def decide(self, proposal_id: str, verdict: Decision = "approved", reason: str = "") -> None:
        """A person decides."""
        settings = load_settings(None, env={}).runtime
        with self.store() as store:
            store.write_now(
                lambda tx: decide_proposal(
                    tx, settings, proposal_id, verdict, PERSON, reason=reason
                )
            )

    def waiting(self) -> list[str]:
        """The proposals that nobody has decided."""
        with self.store() as store:
            return [one.proposal_id for one in store.read_now(proposals.select_pending)]

    def actors(self, action: str) -> list[str]:
        """Who did what the journal calls ``action``, in order; its chain must verify."""
        with self.store() as store:
            assert not store.read_now(verify_chain.verify).broken
            return store.read_now(
                lambda connection: [
                    actor
                    for (actor,) in connection.execute(
                        "SELECT actor FROM journal WHERE action=? ORDER BY seq", (action,)
                    )
                ]
            )

    def token(self, namespace: str, *scopes: str) -> str:
        """A new token of ``namespace``."""
        return self.issued(namespace, *scopes)[1]

    def issued(self, namespace: str, *scopes: str) -> tuple[str, str]:
        """The id of a new token, and its secret."""
        with self.store() as store:
            made, secret = store.write_now(
                lambda tx: capability_tokens.issue(
                    tx, namespace=namespace, scopes=frozenset(scopes), by=PERSON
                )
            )
        return made.cap_id, secret

    def revoke(self, cap_id: str) -> None:
        with self.store() as store:
            store.write_now(lambda tx: capability_tokens.revoke(tx, cap_id, PERSON))


def small(folder: Path) -> Project:
    """A new project with one file in it."""
    root = folder / "project"
    root.mkdir()
    (root / "shapes.py").write_text("def area(a, b):\n    return a * b\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return Project(root)


class Client:
    """A server that is spoken to in lines. Use it as a context manager."""

    _number = 0

    def send(self, message: dict[str, Any]) -> None:
        raise NotImplementedError

    def line(self) -> bytes:
        """The next line, as it is on the wire."""
        raise NotImplementedError

    def ask(self, method: str, params: dict[str, Any] | None = None) -> bytes:
        """A request, and its whole answer as it is on the wire."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})
        answer = self.line()
        assert json.loads(answer)["id"] == self._number
        return answer

    def greet(self: C, name: str = "scripted") -> C:
        """The handshake."""
        info = {"name": name, "version": "1"}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": info}
        self.ask("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def tools(self) -> list[str]:
        found = json.loads(self.ask("tools/list"))["result"]["tools"]
        return [tool["name"] for tool in found]

    def answer(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """What a call answers: its text, and whether it is an error."""
        raw = json.loads(self.ask("tools/call", {"name": tool, "arguments": arguments}))
        result = raw["result"]
        return str(result["content"][0]["text"]), bool(result["isError"])

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a call answers, which must not be an error."""
        text, wrong = self.answer(tool, **arguments)
        assert not wrong, text
        return json.loads(text)

    def refused(self, tool: str, **arguments: Any) -> str:
        """The words of a call's error."""
        text, wrong = self.answer(tool, **arguments)
        assert wrong, text
        return text


class Near(Client):
    """A server in a thread of this process, over the lines that it would read and write in one of its own."""

    def __init__(self, project: Project, tier: Tier = "core") -> None:
        self._project, self._tier = project, tier
        self._loop = asyncio.new_event_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._answers: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Near:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, None)
        self._thread.join()

    def send(self, message: dict[str, Any]) -> None:
        self.send_line(json.dumps(message))

    def send_line(self, text: str) -> None:
        """Send a line, whatever it is."""
        self._loop.call_soon_threadsafe(self._lines.put_nowait, f"{text}\n")

    def line(self) -> bytes:
        return self._answers.get(timeout=PATIENCE_S).encode()

    async def lines(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line

    async def write(self, text: str) -> None:
        self._answers.put(text)

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._answer())

    async def _answer(self) -> None:
        env, place = self._project.env, locate_project(self._project.root)
        settings = load_settings(place.folder, env=env).runtime
        with self._project.store() as store:
            dispatcher = Dispatcher(store, place, settings)
            tools, token = ToolServer(dispatcher, self._tier), env.get("COCKPIT_TOKEN", "")
            try:
                await StdioServer(tools, token, cast(ServerWire, self)).serve()
            finally:
                await dispatcher.close()


class Wire(Client):
    """A server in a process of its own, on standard input and output."""

    def __init__(self, project: Project, *words: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "mcp", *words],
            cwd=project.root,
            env=project.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        assert self.process.stdout is not None
        found = self.process.stdout.readline()
        assert found, "the server went away"
        return found

    def leave(self) -> tuple[int, bytes, str]:
        """Close the input and wait for the end; returns the code and what else was written."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err.decode()
