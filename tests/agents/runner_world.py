"""Scenarios of small agents in the formats of real ones, and sessions for them to take."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cockpit.agents.runs.run_agent import RunnerOutcome, run_agent
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.context import profiles
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.sessions import messages, sessions

AGENT = Path(__file__).with_name("agent.py")

Step = dict[str, Any]


def says(body: dict[str, Any]) -> Step:
    """A line of JSON."""
    return {"say": body}


def init(session: str = "a1", model: str = "m-1") -> Step:
    """How Claude Code begins."""
    return says({"type": "system", "subtype": "init", "session_id": session, "model": model})


def assistant(*blocks: dict[str, Any], identity: str = "msg_1", **usage: int) -> Step:
    """A message of Claude Code's, or a part of one."""
    message = {"id": identity, "role": "assistant", "content": list(blocks), "usage": usage}
    return says({"type": "assistant", "message": message, "parent_tool_use_id": None})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool(identity: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def tool_result(identity: str, content: Any, *, is_error: bool = False) -> Step:
    """What Claude Code tells of a tool's end."""
    block = {"type": "tool_result", "tool_use_id": identity, "content": content}
    if is_error:
        block["is_error"] = True
    return says({"type": "user", "message": {"role": "user", "content": [block]}})


def result(words: str, **changes: Any) -> Step:
    """How Claude Code ends."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 20}
    body = {"type": "result", "subtype": "success", "is_error": False, "result": words}
    return says({**body, "total_cost_usd": 0.25, "usage": usage, **changes})


@dataclass
class Runs:
    """A project with a session whose agent is the small one."""

    folder: Path
    place: ProjectPaths
    store: Store
    task_id: str

    def scenario(self, *steps: Step, name: str = "scenario.json") -> Path:
        path = self.folder / name
        path.write_text(json.dumps(list(steps)), encoding="utf-8")
        return path

    def runner(self, *steps: Step, words: Iterable[str] = (), **changed: Any) -> RunnerSettings:
        command = (sys.executable, "-S", str(AGENT), str(self.scenario(*steps)), *words)
        is_text = any("raw" in step for step in steps) and "protocol" not in changed
        return RunnerSettings(
            "small", command, **{"format": "text" if is_text else "claude", **changed}
        )

    def session(self, **limits: float) -> str:
        """A new session for a runner."""

        def step(tx: Tx) -> str:
            made = sessions.create(
                tx, task_type="implement", title="T", words="do it", target={}, model="runner:small",
                policy="all", interactive=False, root=self.place.root, rev=None,
                profile_id=profiles.ensure_default(tx, 150_000).profile_id,
                limits=limits, project="p", branch="main", role="implementer", task_id=self.task_id,
            )  # fmt: skip
            return made.session_id

        return self.store.write_now(step)

    async def run(
        self, runner: RunnerSettings, session_id: str = "", **given: Any
    ) -> RunnerOutcome:
        """Run the agent in the project's own folder."""
        fields: dict[str, Any] = {
            "prompt": "Please.", "worktree": self.place.root, "environment": dict(os.environ), **given,
        }  # fmt: skip
        session = session_id or self.session()
        return await run_agent(self.store, self.place, runner, session_id=session, **fields)

    def rows(self, prefix: str = "") -> list[journal.Row]:
        found = self.store.read_now(lambda seen: journal.rows(seen, limit=100_000))
        return [row for row in found if row.action.startswith(prefix)]

    def last(self) -> sessions.Session:
        (newest, *_) = self.store.read_now(lambda seen: sessions.select_recent(seen, 1))
        return newest

    def said(self) -> list[str]:
        session_id = self.last().session_id
        found = self.store.read_now(lambda seen: messages.select_for_session(seen, session_id))
        return [message.text for message in found]
