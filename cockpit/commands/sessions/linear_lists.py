"""The commands of the linear mode, and its lists: one line each, in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from cockpit.commands.sessions.proposal_text import framed
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.backlog import tasks
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.session_states import select_asking, state_of

_MOST = 20
_AT_WORK = ("in_progress", "review", "blocked", "todo")


class LineCommand(msgspec.Struct, frozen=True):
    """A word that a line may begin with: what follows it, and what it does."""

    says: str
    arguments: str = ""

    def takes(self, rest: str) -> bool:
        """Whether the rest of the line fits: ``approve this idea`` is a message."""
        return bool(self.arguments) or not rest.strip()


DECISIONS: Mapping[str, LineCommand] = MappingProxyType(
    {
        "approve": LineCommand(
            "approves the proposal that was printed last; so does an empty line"
        ),
        "discuss": LineCommand("puts it aside and sends your words to the agent", "[WORDS]"),
        "reject": LineCommand("refuses it, with a reason", "[REASON]"),
        "narrow": LineCommand("keeps some items of a context request", "[NUMBERS]"),
        "edit": LineCommand("opens its text in your editor; your edit is the next revision"),
        "answer": LineCommand("answers what an agent asks", "ANSWER [| ANSWER]"),
        "show": LineCommand("prints it again"),
    }
)
COMMANDS: Mapping[str, LineCommand] = MappingProxyType(
    {
        "/new": LineCommand("begins another session", "[TASK]"),
        "/sessions": LineCommand("lists sessions, the last one first"),
        "/session": LineCommand("follows a session and resumes it", "[ID]"),
        "/history": LineCommand("prints the session from its beginning"),
        "/proposals": LineCommand("lists the proposals that wait, in every session"),
        "/proposal": LineCommand("prints a proposal, to decide it", "ID"),
        "/tasks": LineCommand("lists open tasks of the backlog"),
        "/policy": LineCommand("says what is approved without you, or changes it", "[NAME]"),
        "/stop": LineCommand("interrupts the session; Ctrl+C does too"),
        "/help": LineCommand("lists these words"),
        "/quit": LineCommand("leaves; Ctrl+D does too"),
    }
)


def list_sessions(connection: sqlite3.Connection) -> str:
    """Return the last sessions, one line each."""
    rows, asking = sessions.select_recent(connection, _MOST), select_asking(connection)
    words = [state_sign("session", state_of(each, asking)).word for each in rows]
    return _list(
        ((each.session_id, word, each.title) for each, word in zip(rows, words, strict=True)),
        "No sessions yet.",
    )


def list_proposals(connection: sqlite3.Connection) -> str:
    """Return the proposals that wait, one line each."""
    rows = proposals.select_pending(connection)
    return _list(
        ((each.proposal_id, f"{each.risk} risk, {each.kind}", each.title) for each in rows),
        "No proposal waits.",
    )


def list_tasks(connection: sqlite3.Connection) -> str:
    """Return open tasks, those at work first, one line each."""
    rows = [
        task for status in _AT_WORK for task in tasks.select(connection, status=status, limit=_MOST)
    ]
    return _list(
        ((each.task_id, state_sign("task", each.status).word, each.title) for each in rows[:_MOST]),
        "No open tasks.",
    )


def _list(rows: Iterable[tuple[str, str, str]], nothing: str) -> str:
    lines = [line for key, state, title in rows for line in framed(f"{key}, {state}", title)]
    return "\n".join(lines) or nothing
