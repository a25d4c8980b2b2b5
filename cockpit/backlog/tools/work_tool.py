"""A work tool: one named operation on the backlog, the same for the command line, MCP and HTTP."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from cockpit.access.principals import Caller, journal_actor, works_on_task
from cockpit.access.token_scopes import WORK_READ, WORK_WRITE, NotAllowed
from cockpit.backlog.response_modes import ANSWER_TOKENS
from cockpit.backlog.validation import BacklogInvalid
from cockpit.store.db.transaction import Tx

Tier = Literal["core", "standard", "all"]


_NOT_FOR_TASK_AGENTS = frozenset(
    [
        *("update_task_status", "set_blocker", "resolve_blocker", "set_needs_rework"),
        *("archive_task", "reopen_task", "record_task_failure", "set_task_handoff"),
        *("update_story", "update_epic", "compact_story_handoffs", "delete_epic_handoffs"),
    ]
)
"""Tools that would move a task which cockpit is just doing, or let go of what its report still needs."""


class ToolCall(Struct, frozen=True):
    """A call of a tool. ``tx`` is None for a tool that only reads."""

    connection: sqlite3.Connection
    writing: Tx | None
    by: str
    session_id: str
    cap_tokens: int

    @property
    def tx(self) -> Tx:
        """The transaction of a tool that writes. Raises ``RuntimeError`` where there is none."""
        if self.writing is None:
            raise RuntimeError("a tool that writes was called on a read connection")
        return self.writing


class WorkTool(Struct, frozen=True):
    """One tool. ``parameters`` is the frozen record that its arguments are read into.

    ``tier`` is the smallest set of tools that it belongs to: ``core`` ⊂ ``standard`` ⊂ ``all``.
    """

    name: str
    tier: Tier
    writes: bool
    description: str
    parameters: type[Any]
    answer: Callable[[ToolCall, Any], Any]

    def run(
        self,
        where: Tx | sqlite3.Connection,
        caller: Caller,
        args: Any,
        *,
        session_id: str = "",
        cap_tokens: int = ANSWER_TOKENS,
    ) -> Any:
        """Run the tool and return a JSON value of at most ``cap_tokens`` tokens.

        ``where`` is the open transaction of a tool that writes, a read connection for any other.
        Raises ``NotAllowed`` without the scope, and the services' ``CockpitError``.
        """
        scope = WORK_WRITE if self.writes else WORK_READ
        caller.require(scope, f"call {self.name}")
        if self.name in _NOT_FOR_TASK_AGENTS and works_on_task(caller.namespace):
            raise NotAllowed(
                f"{caller.namespace} does one task for cockpit, which keeps itself how tasks stand: "
                f"{self.name} is not for it. Say in your last message how your work ended."
            )
        tx = where if isinstance(where, Tx) else None
        connection = where.connection if isinstance(where, Tx) else where
        return self.answer(
            ToolCall(connection, tx, journal_actor(caller), session_id, cap_tokens), args
        )


def changes_in(args: Any, identity: str) -> dict[str, Any]:
    """Return what the arguments change of ``identity``. Raises ``BacklogInvalid`` for nothing."""
    names = [name for name in args.__struct_fields__ if name != identity]
    changes = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if not changes:
        raise BacklogInvalid(
            f"Say what to change of {getattr(args, identity)}: {', '.join(names)}."
        )
    return changes


def work_tool(
    parameters: type[Any], tier: Tier, description: str, *, writes: bool = False
) -> Callable[[Callable[[ToolCall, Any], Any]], WorkTool]:
    """Make a function ``_NAME`` the work tool ``NAME``."""

    def make(answer: Callable[[ToolCall, Any], Any]) -> WorkTool:
        name = answer.__name__.removeprefix("_")
        return WorkTool(name, tier, writes, description, parameters, answer)

    return make
