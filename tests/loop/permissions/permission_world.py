"""A real project and store, with a session of an external agent that asks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loop.stored_session import store_session
from state_for_tests import put_store

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.decisions.decide_proposal import decide_proposal, find_decider
from cockpit.loop.permissions.ask_permission import PermissionAnswer, ask_permission
from cockpit.loop.permissions.edit_permission import edit_permission
from cockpit.loop.permissions.read_tool_request import read_claude_tool
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

# Put together here so that no file of this repository holds anything that looks like a secret.
CANARY = "ghp_" + "A1b2C3d4E5" * 4
SETTINGS = RuntimeSettings()


def begin_session(tx: Tx, root: Path, policy: str = "ask") -> str:
    fields = {
        "task_type": "outside",
        "title": "made by an agent",
        "words": "do it",
        "branch": "main",
    }
    model = {"model": "runner:claude", "policy": policy, "project": "calc"}
    return store_session(tx, root, **fields, **model).session_id


@dataclass
class World:
    """One store, one project, one session."""

    store: Store
    root: Path
    session_id: str
    waiter: ChangeWaiter

    async def ask(
        self, request: ToolRequest, *, policy: str = "ask", **options: Any
    ) -> PermissionAnswer:
        return await ask_permission(
            self.store,
            SETTINGS,
            self.waiter,
            request,
            session_id=options.pop("session_id", self.session_id),
            root=self.root,
            policy=policy,
            **options,
        )

    async def pending(self, count: int = 1) -> list[Proposal]:
        """Wait until ``count`` permissions wait."""
        look = self.waiter.wait_for(lambda: self._pending(count), 0.02)
        return await asyncio.wait_for(look, 60)

    def _pending(self, count: int) -> list[Proposal] | None:
        waiting = self.store.read_now(proposals.select_pending)
        return waiting if len(waiting) == count else None

    def decide(self, proposal: Proposal, decision: str, reason: str = "") -> None:
        self.store.write_now(
            lambda tx: decide_proposal(
                tx,
                SETTINGS,
                proposal.proposal_id,
                decision,  # type: ignore[arg-type]
                find_decider(tx, SETTINGS),
                shown_digest=proposal.shown_digest,
                reason=reason,
            )
        )

    async def edit(self, proposal: Proposal, text: str) -> Proposal:
        return await edit_permission(self.store, SETTINGS, proposal, proposal.shown_digest, text)

    def load(self, proposal_id: str) -> Proposal:
        return self.store.read_now(lambda connection: proposals.load(connection, proposal_id))

    def rows(self, prefix: str = "proposal.") -> list[Row]:
        rows = self.store.read_now(lambda connection: list(journal.rows(connection)))
        return [row for row in rows if row.action.startswith(prefix)]

    async def answered(
        self, request: ToolRequest, decision: str, reason: str = "", **options: Any
    ) -> tuple[PermissionAnswer, Proposal]:
        """Ask, decide what waits, and return the answer with what was shown."""
        asking = asyncio.create_task(self.ask(request, **options))
        (proposal,) = await self.pending()
        await asyncio.to_thread(self.decide, proposal, decision, reason)
        return await asking, proposal


def open_world(root: Path, folder: Path, policy: str = "ask") -> World:
    store = Store.open(put_store(folder / "cockpit.db"), FixedClock(), CountingIds())
    session_id = store.write_now(lambda tx: begin_session(tx, root, policy))
    return World(store, root, session_id, ChangeWaiter(store))


def bash(command: str, **more: Any) -> ToolRequest:
    return read_claude_tool("Bash", {"command": command, "description": "why it runs", **more})


def write(path: Path | str, content: str) -> ToolRequest:
    return read_claude_tool("Write", {"file_path": str(path), "content": content})


def edit(path: Path | str, old: str, new: str, **more: Any) -> ToolRequest:
    return read_claude_tool(
        "Edit", {"file_path": str(path), "old_string": old, "new_string": new, **more}
    )


def mcp(arguments: Mapping[str, Any]) -> ToolRequest:
    return read_claude_tool("mcp__tracker__create_issue", arguments)


def options(*kinds: str) -> Sequence[Mapping[str, str]]:
    return [
        {"optionId": f"o-{kind}", "name": kind.replace("_", " "), "kind": kind} for kind in kinds
    ]
