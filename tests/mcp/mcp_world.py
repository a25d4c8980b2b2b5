"""``cockpit mcp`` as a client starts it: a process of its own, and one JSON message a line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import run_cockpit
from state_for_tests import kept_variables

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project
from cockpit.loop.decisions.decide_proposal import Decision, decide_proposal
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import proposals

COMMAND = run_cockpit.PROGRAM
PATIENCE_S = 60
VERSION = "2025-11-25"


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


class Wire:
    """A server on standard input and output, spoken to in lines. Use it as a context manager."""

    def __init__(self, project: Project, *words: str, command: tuple[str, ...] = COMMAND) -> None:
        self.process = subprocess.Popen(
            [*command, "mcp", *words],
            cwd=project.root,
            env=project.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._number = 0

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
        """The next line, as it is on the wire."""
        assert self.process.stdout is not None
        found = self.process.stdout.readline()
        assert found, "the server went away"
        return found

    def ask(self, method: str, params: dict[str, Any] | None = None) -> bytes:
        """A request, and its whole answer as it is on the wire."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})
        answer = self.line()
        assert json.loads(answer)["id"] == self._number
        return answer

    def greet(self, name: str = "scripted") -> Wire:
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

    def leave(self) -> tuple[int, bytes, str]:
        """Close the input and wait for the end; returns the code and what else was written."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err.decode()
