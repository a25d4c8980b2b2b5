"""One session of an ACP agent while this process drives it: its turns, its choices, its end.

The user's messages wait in the store until the agent can take them, so a message may come from any process
and at any time. Limits of cost and tokens are checked between turns, because many agents say what they spent
when a turn is over, if at all; one that reports its cost as it works is stopped at its limit. See
``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import asyncio
import base64
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.secret_files import is_sensitive
from cockpit.agents.acp_client.acp_session_context import SessionContext
from cockpit.agents.acp_client.agent_connection import (
    SESSION_S,
    Abilities,
    AgentConnection,
    AgentFailed,
    AgentGone,
    Refused,
)
from cockpit.agents.acp_client.serve_files import AgentFiles
from cockpit.agents.acp_client.serve_permissions import (
    ApprovedWork,
    answer_elicitation,
    answer_permission,
)
from cockpit.agents.acp_client.serve_terminals import AgentTerminals
from cockpit.agents.acp_client.session_updates import SessionUpdates
from cockpit.agents.runs.run_rows import (
    complete_session,
    describe_cut_off_calls,
    fail_session,
    stop_session,
)
from cockpit.agents.streams.agent_journal import AgentJournal, AgentRun
from cockpit.agents.streams.final_status import read_status
from cockpit.agents.streams.stream_events import UnreadableLine
from cockpit.core.errors import IllegalTransition
from cockpit.core.json_fields import JsonObject, get_object, get_text
from cockpit.core.text import end_sentence
from cockpit.loop.permissions.withdrawal import (
    AGENT_ENDED,
    STOPPED,
    WENT_ON,
    Ending,
    Withdrawal,
    ending_of,
)
from cockpit.loop.runtime_settings import Limits
from cockpit.loop.skills.agent_skills import give_skills
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import NEEDS_ANSWER, Session

LARGEST_IMAGE = 5 * 1024 * 1024
_MOST_FILES = 20
_NAMED = re.compile(r"(?<!\S)@([^\s@]{1,400})")
_IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


def prompt_blocks(text: str, confined: Confined, abilities: Abilities) -> list[dict[str, Any]]:
    """Return the blocks of a prompt; ``@PATH`` in ``text`` names a file. It reads files, so it blocks."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for match in list(_NAMED.finditer(text))[:_MOST_FILES]:
        path = match[1].rstrip(".,;:!?)")
        if not is_sensitive(path) and (block := _file_block(path, confined, abilities)) is not None:
            blocks.append(block)
    return blocks


def _file_block(path: str, confined: Confined, abilities: Abilities) -> dict[str, Any] | None:
    try:
        real = confined.inside(path)
        if not real.is_file():
            return None
        kind = _IMAGES.get(PurePosixPath(path).suffix.lower(), "")
        if kind and abilities.images:
            with confined.open_read(path) as file:
                data = file.read(LARGEST_IMAGE + 1)
            if len(data) <= LARGEST_IMAGE:
                encoded = base64.b64encode(data).decode("ascii")
                return {"type": "image", "mimeType": kind, "data": encoded}
    except PathRefused:
        return None
    return {"type": "resource_link", "uri": real.as_uri(), "name": path}


LIMIT = "limit"
"""The reason of a turn that is not begun, or not followed by another one."""


def find_reached_limit(session: Session, limits: Limits, title: str, *, after_turn: bool) -> str:
    """Return why the session gets no further turn, as sentences; empty where it gets one.

    ``title`` is the agent's. After a turn an agent that reported nothing cannot be limited, and gets none.
    """
    cost, tokens = session.cost_usd, session.input_tokens + session.output_tokens
    reason = ""
    if limits.max_cost is not None:
        if cost is not None and cost >= limits.max_cost:
            reason = f"The limit of ${limits.max_cost:.2f} is reached (${cost:.2f} spent)."
        elif cost is None and after_turn:
            reason = f"The limit of ${limits.max_cost:.2f} cannot be kept: {title} reports no cost."
    if not reason and limits.max_tokens is not None:
        if tokens >= limits.max_tokens:
            reason = f"The limit of {limits.max_tokens:,} tokens is reached ({tokens:,} spent)."
        elif not tokens and after_turn:
            reason = (
                f"The limit of {limits.max_tokens:,} tokens cannot be kept: {title} reports none."
            )
    if not reason:
        return ""
    return f"{reason} The work is kept; resume the session with a higher limit, or without it."


CANCEL_S = 10.0
"""Seconds that an agent has to end its turn after it was cancelled; then its process is ended."""
_MOST_PROMPT = 1_000_000


class Turn(Struct, frozen=True):
    """How a turn ended."""

    reason: str
    """In the protocol's words, for example ``end_turn``; ``failed`` when the agent failed."""
    message: str = ""
    """What went wrong."""


class AgentSession:
    """A running agent with its session. Made by :func:`open_agent_session`."""

    def __init__(self, engine: Engine, context: SessionContext, run: AgentRun) -> None:
        self.context = context
        self.turn: Turn | None = None
        """The last turn."""
        self.copy_sessions: Callable[[Path], None] = lambda place: None
        """Copies the sessions of an agent in the sandbox, whose home no other run sees."""
        self.watch_checkouts: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
        """Watches the user's checkouts during a turn of an agent outside the sandbox."""
        self.cancel_s: float | None = None
        """Seconds in place of :data:`CANCEL_S`."""
        self._engine = engine
        self._run = run
        self._agent_session = ""
        self._connection: AgentConnection | None = None
        self._abilities: Abilities | None = None
        self._approved = ApprovedWork()
        self._files = AgentFiles(context, self._approved)
        self._terminals = AgentTerminals(context, self._approved)
        self._cancelled = False
        self._is_over_limit = asyncio.Event()
        """Set when the agent reports in a turn that the session costs more than it may."""
        self._own_words = ""
        self._cut_off = ""

    @property
    def is_open(self) -> bool:
        """Whether the agent can take a prompt."""
        return self._connection is not None and not self._connection.gone.is_set()

    @property
    def journal(self) -> AgentJournal:
        """The journal of the run."""
        return self.context.journal

    @property
    def updates(self) -> SessionUpdates:
        """What the agent said so far: its calls, choices and commands."""
        return self.context.updates

    async def note_odd(self, message: str) -> None:
        """Note that something was no message of the protocol; only the first few are journalled."""
        await self.journal.record(UnreadableLine(message))

    async def serve(self, method: str, params: JsonObject) -> Mapping[str, Any]:
        """Answer a request of the agent; one for another of its sessions is refused and noted."""
        if other := self._find_other(params):
            await self.note_odd(f"a request for another session: {other!r}")
            raise Refused(f"This connection serves one session only, not {other!r}.")
        match method:
            case "session/request_permission":
                return await answer_permission(self.context, self._approved, params)
            case "elicitation/create":
                return await answer_elicitation(self.context, params)
            case "fs/read_text_file":
                return await self._files.read(params)
            case "fs/write_text_file":
                return await self._files.write(params)
            case _ if method.startswith("terminal/"):
                return await self._terminals.serve(method, params)
            case _:
                raise NotImplementedError

    async def update(self, params: JsonObject) -> None:
        """Journal one update of the agent; one for another of its sessions is refused and noted."""
        if other := self._find_other(params):
            await self.note_odd(f"an update for another session: {other!r}")
            return
        await self.updates.update(get_object(params, "update"))
        limit, cost = self._engine.settings.limits.max_cost, self.updates.cost_usd
        if limit is not None and cost is not None and cost >= limit:
            self._is_over_limit.set()

    def _find_other(self, params: JsonObject) -> str:
        """Return the session that a message is for, where it is not this one; else empty."""
        named = get_text(params, "sessionId")[:200]
        return named if named and self._agent_session not in ("", named) else ""

    async def join(
        self,
        connection: AgentConnection,
        abilities: Abilities,
        servers: Sequence[Mapping[str, Any]],
    ) -> None:
        """Open the agent's session: the one that it had, where it can, or a new one."""
        self._connection, self._abilities = connection, abilities
        self._agent_session = ""  # not known yet: updates may come before the answer that names it
        session = await self._load()
        place = {"cwd": str(self.context.root), "mcpServers": [dict(each) for each in servers]}
        state: JsonObject | None = None
        self._cut_off = await self._engine.store.read(
            lambda connection: describe_cut_off_calls(connection, session.session_id)
        )
        if session.agent_session:
            state = await self._rejoin(session.agent_session, place)
        if state is None:
            state = await connection.request("session/new", place, SESSION_S)
            self._agent_session = get_text(state, "sessionId")[:200]
            if not self._agent_session:
                raise AgentFailed(f"{connection.agent.title} opened a session without an id.")
            named = self._agent_session
            await self._engine.store.write(
                lambda tx: sessions.set_agent_process(tx, session.session_id, agent_session=named)
            )
        await self.updates.join(self._agent_session, state)
        mode = connection.agent.acp.mode
        if mode and any(
            choice.id == mode
            for kind in ("mode",)
            if kind in self.updates.choices
            for choice in self.updates.choices[kind].choices or ()
        ):
            await self.choose("mode", mode)

    async def _rejoin(self, agent_session: str, place: Mapping[str, Any]) -> JsonObject | None:
        """Take the earlier session up; None where the agent cannot."""
        connection, abilities = self._opened()
        body = {"sessionId": agent_session, **place}
        ways = [("session/resume", abilities.resumes), ("session/load", abilities.loads)]
        why = "it cannot load sessions"
        for method, can in ways:
            if not can:
                continue
            self.updates.ignores = True
            try:
                state = await connection.request(method, body, SESSION_S)
            except AgentGone:
                raise
            except AgentFailed as error:
                why = str(error)
            else:
                self._agent_session = agent_session
                return state
            finally:
                self.updates.ignores = False
        await self.journal.note(
            f"{connection.agent.title} no longer knows its earlier session, and starts a new one: {why}"
        )
        return None

    async def run_until_idle(self) -> Turn | None:
        """Send the user's messages until none is left; returns the last turn.

        Cancelled, it cancels the agent's turn, which then ends within :data:`CANCEL_S` or with the agent. At
        a limit of cost or tokens the messages that are left wait.
        """
        after_turn = False
        while True:
            if limit := await self._find_reached_limit(after_turn):
                self.turn = Turn(LIMIT, limit)
                return self.turn
            prompt = await self._next_prompt()
            if prompt is None:
                return self.turn
            message_ids, text = prompt
            self.turn = await self._take_turn(message_ids, text)
            if self.turn.reason == "failed" or self._cancelled:
                return self.turn
            after_turn = True

    async def _find_reached_limit(self, after_turn: bool) -> str:
        limits = self._engine.settings.limits
        if limits.max_cost is None and limits.max_tokens is None:
            return ""
        title = self.context.agent.title
        return find_reached_limit(await self._load(), limits, title, after_turn=after_turn)

    async def run_prompt(self, text: str) -> Turn:
        """Send a prompt of cockpit's own, and what the user adds meanwhile; returns the last turn."""
        self._own_words = text
        return await self.run_until_idle() or Turn("failed", "The prompt was empty.")

    async def _next_prompt(self) -> tuple[list[str], str] | None:
        words, self._own_words = self._own_words, ""
        waiting = await self._select_unsent()
        if not waiting and not words:
            return None
        texts = [words, *(text for _, text in waiting), self._cut_off]
        self._cut_off = ""
        return [message_id for message_id, _ in waiting], "\n\n".join(filter(None, texts))

    async def _select_unsent(self) -> list[tuple[str, str]]:
        return await self._engine.store.read(
            lambda connection: select_unsent(connection, self.context.session_id)
        )

    async def _take_turn(self, message_ids: list[str], text: str) -> Turn:
        connection, abilities = self._opened()
        context = self.context
        context.withdrawn = Withdrawal()
        context.refusals.clear()
        context.was_refused = False
        context.wave_id = ""
        self._cancelled = False
        self._is_over_limit.clear()
        await self._engine.store.write(
            lambda tx: sessions.set_status(tx, context.session_id, "running")
        )
        await self.journal.begin_turn(message_ids, "" if message_ids else text)
        blocks = await asyncio.to_thread(
            prompt_blocks, text[:_MOST_PROMPT], context.confined, abilities
        )
        if message_ids:  # what cockpit itself asks for brings its skills with it
            skills = await give_skills(self._engine, context.session_id, text, context.turn_wave)
            blocks += [{"type": "text", "text": skills}] if skills else []
        body = {"sessionId": self._agent_session, "prompt": blocks}
        async with self.watch_checkouts():
            asking = asyncio.ensure_future(connection.request("session/prompt", body, None))
            limit = asyncio.ensure_future(self._is_over_limit.wait())
            try:
                await asyncio.wait([asking, limit], return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as error:
                await asyncio.shield(self._cancel(asking, ending_of(error)))
                raise
            finally:
                limit.cancel()
            if asking.done():
                return await self._end_turn(asking)
            turn = await self._cancel(asking, STOPPED)
            self._cancelled = False  # by its limit, which is said instead of a next turn
            return turn

    async def _end_turn(self, asking: asyncio.Future[JsonObject]) -> Turn:
        """Journal the turn's end; words of a rejection become the next prompt."""
        try:
            answer = asking.result()
            turn = Turn(get_text(answer, "stopReason")[:100] or "end_turn")
            usage = get_object(answer, "usage")
        except AgentFailed as error:
            turn, usage = Turn("failed", str(error)), {}
        self.context.withdrawn.withdraw(AGENT_ENDED if turn.reason == "failed" else WENT_ON)
        refusals = list(self.context.refusals)
        if refusals and turn.reason != "failed" and not self._cancelled:
            lines = "\n".join(f"- {title}: {words}" for title, words in refusals)
            self._own_words = f"The user did not allow this, and says:\n{lines}"
        await self.updates.end_turn(turn.reason, usage, turn.message)
        return turn

    async def _cancel(self, asking: asyncio.Future[JsonObject], ending: Ending) -> Turn:
        """Cancel the turn, withdraw what it asked for, and journal its end."""
        connection, _ = self._opened()
        self._cancelled = True
        self.context.withdrawn.withdraw(ending)
        await connection.notify("session/cancel", {"sessionId": self._agent_session})
        timeout_s = self.cancel_s or CANCEL_S
        _, waiting = await asyncio.wait([asking], timeout=timeout_s)
        if waiting:
            await self.journal.note(
                f"{connection.agent.title} did not stop within {timeout_s:g} s, so it was ended."
            )
            await connection.close()
            await asyncio.wait([asking])
        self.turn = await self._end_turn(asking)
        return self.turn

    async def choose(self, kind: str, value: str) -> None:
        """Choose a mode, a model or an option of the agent. Raises ``AgentFailed``, ``IllegalTransition``."""
        connection, _ = self._opened()
        choice = self.updates.choices.get(kind)
        if choice is None:
            names = ", ".join(sorted(self.updates.choices)) or "nothing"
            raise IllegalTransition(
                f"{connection.agent.title} has no {kind!r} to choose; it offers {names}."
            )
        values = [each.id for each in choice.choices or ()]
        if values and value not in values:
            raise IllegalTransition(f"There is no {kind} {value!r}; there are {', '.join(values)}.")
        session = {"sessionId": self._agent_session}
        match kind:
            case "mode" if kind not in self.updates.options:
                await connection.request("session/set_mode", {**session, "modeId": value})
            case "model" if kind not in self.updates.options:
                await connection.request("session/set_model", {**session, "modelId": value})
            case _:
                typed: Any = value == "true" if not values and value in ("true", "false") else value
                body = {**session, "configId": kind, "value": typed}
                if isinstance(typed, bool):
                    body["type"] = "boolean"
                await connection.request("session/set_config_option", body)
        await self.updates.choose(kind, value)

    async def fork(self) -> str:
        """Fork the agent's session; returns the agent's id of the new one. Raises ``IllegalTransition``."""
        connection, abilities = self._opened()
        if not abilities.forks:
            raise IllegalTransition(f"{connection.agent.title} cannot fork a session.")
        body = {"sessionId": self._agent_session, "cwd": str(self.context.root), "mcpServers": []}
        answer = await connection.request("session/fork", body, SESSION_S)
        forked = get_text(answer, "sessionId")[:200]
        if not forked:
            raise AgentFailed(f"{connection.agent.title} forked a session without an id.")
        return forked

    async def finish(self) -> None:
        """End a headless session as its last turn ended."""
        store, session_id = self._engine.store, self.context.session_id
        turn = self.turn or Turn("failed", "There was no message for the agent.")
        text = self.journal.last_message
        status, summary = read_status(text)
        if status == NEEDS_ANSWER and self._run.task_id is None and not self._asks_back(text):
            # The protocol's own end of a turn; a task of the backlog needs its status in words as well.
            status = "done"

        def write(tx: Tx) -> None:
            if turn.reason == "failed":
                fail_session(tx, session_id, "agent_failed", turn.message)
            elif turn.reason == "cancelled":
                stop_session(tx, session_id)
            elif turn.reason == LIMIT:
                complete_session(tx, session_id, "limit", turn.message)
            elif turn.reason == "refusal":
                fail_session(tx, session_id, "refusal", "The model refused to answer.")
            elif turn.reason in ("max_tokens", "max_turn_requests"):
                complete_session(
                    tx, session_id, "limit", f"The agent stopped: {end_sentence(turn.reason)}"
                )
            elif not text.strip() and not self.journal.tools_ended:
                fail_session(
                    tx, session_id, "agent_failed", "The agent ended its turn without a word."
                )
            else:
                complete_session(tx, session_id, status, summary)

        await store.write(write)

    def _asks_back(self, text: str) -> bool:
        """Whether the turn ended with a question, or with something that was not allowed."""
        return self.context.was_refused or text.rstrip(" \t\n*_`\"')").endswith("?")

    async def wait(self) -> None:
        """Let the session wait for the user's next message, or tell that its agent failed."""
        session_id, turn = self.context.session_id, self.turn

        def write(tx: Tx) -> None:
            if turn is not None and turn.reason == "failed":
                fail_session(tx, session_id, "agent_failed", turn.message)
                return
            if turn is not None and turn.reason == LIMIT:
                complete_session(tx, session_id, "limit", turn.message)
                return
            detail = SessionWaiting(for_="person", why="the agent ended its turn")
            sessions.set_status(tx, session_id, "waiting", detail=detail)

        await self._engine.store.write(write)

    async def stop(self) -> None:
        """Mark the session as stopped; it can be resumed."""
        await self._engine.store.write(lambda tx: stop_session(tx, self.context.session_id))

    async def close(self) -> None:
        """Withdraw what waits and end the agent with all of its commands."""
        self.context.withdrawn.withdraw(STOPPED if self.is_open else AGENT_ENDED)
        await self._terminals.close()
        if self._connection is not None:
            await self._connection.close()
        await self.journal.close()

    def _opened(self) -> tuple[AgentConnection, Abilities]:
        if self._connection is None or self._abilities is None:
            raise AgentGone(f"{self.context.agent.title} is not open.")
        return self._connection, self._abilities

    async def _load(self) -> Session:
        return await self._engine.store.read(
            lambda connection: sessions.load(connection, self.context.session_id)
        )


def select_unsent(
    connection: sqlite3.Connection, session_id: str, limit: int = 100
) -> list[tuple[str, str]]:
    """Read the ids and texts of the user's messages that no turn has sent yet, oldest first."""
    rows = connection.execute(
        "SELECT message_id, text FROM messages WHERE session_id=:session AND role='person'"
        " AND rowid > coalesce((SELECT max(m.rowid) FROM journal j, json_each(j.detail_json,"
        " '$.message_ids') each JOIN messages m ON m.message_id=each.value"
        " WHERE j.session_id=:session AND j.action='runner.turn'), 0)"
        " ORDER BY rowid LIMIT :limit",
        {"session": session_id, "limit": limit},
    )
    return [(str(message_id), str(text)) for message_id, text in rows]
