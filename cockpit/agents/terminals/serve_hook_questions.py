"""Answering hook calls that wait: the cockpit's end of :mod:`cockpit.hook.ask_open_cockpit`.

Each request is a proposal in the one queue. The agent's own dialog stays usable: when the hook call ends
before the answer, or the agent reports that it went on, the question is withdrawn. See
``docs/reference/hooks.md``, approving.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from cockpit.agents.terminals.follow_events import (
    ANSWERED_THERE,
    end_dead_sessions,
    follow_event,
    list_dead_sessions,
)
from cockpit.agents.terminals.terminal_sessions import TerminalAgent, ensure_session
from cockpit.core import open_cockpits
from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError
from cockpit.core.find_checkout import find_checkout
from cockpit.core.json_fields import get_object, get_text, parse_object
from cockpit.loop.permissions.ask_permission import PermissionAnswer, ask_permission
from cockpit.loop.permissions.read_tool_request import read_claude_tool
from cockpit.loop.permissions.withdrawal import (
    ALLOWED_THERE,
    ASKS_THERE,
    LEFT_THERE,
    SESSION_ENDED,
    WENT_ON,
    WROTE_THERE,
    Withdrawal,
)
from cockpit.loop.wave_context import Engine

_LARGEST = 16_000_000
_LOOK_S = 10.0
_SEND_S = 10.0
"""Seconds that a call may take to send its request."""
_MOST_AT_ONCE = 200
"""Questions that wait at the same time; the agent of one more asks by itself."""
_MOST_CALLS = 300
"""Calls that are connected at the same time."""
_EDITED_EVENTS = {"claude": ("PreToolUse", "PermissionRequest")}
"""Events whose answer may change the input, by agent."""
_ENDS_TURN = {
    "Stop": WENT_ON,
    "UserPromptSubmit": WROTE_THERE,
    "SessionEnd": SESSION_ENDED,
}
"""Reports after which nothing of the turn waits any more."""


class _Call(Struct, frozen=True):
    """One message of a hook call."""

    event: str
    agent: TerminalAgent
    tool: str
    input: Mapping[str, Any]
    cwd: str
    reports: bool

    @property
    def key(self) -> str:
        """What a question and the report that its tool was used have in common."""
        return canonical_json([self.tool, dict(self.input)])


class _Question(Struct):
    """One question that waits."""

    call: _Call
    withdrawn: Withdrawal = field(default_factory=Withdrawal)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the agent ended the hook call."""


@asynccontextmanager
async def answer_hooks(engine: Engine) -> AsyncIterator[None]:
    """Answer hook calls of the project's agents while the context is open.

    What still waits at its end has no answer, so each agent asks by itself.
    """
    hooks = _HookServer(engine)
    listener, path = await asyncio.to_thread(open_cockpits.listen, str(engine.place.state))
    server = await asyncio.start_unix_server(hooks.serve, sock=listener, limit=_LARGEST)
    looking = asyncio.create_task(hooks.end_dead_sessions())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        server.close()
        await hooks.close()
        await asyncio.to_thread(open_cockpits.stop_listening, listener, path)


class _HookServer:
    """The questions that wait in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._questions: list[_Question] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one hook call."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            # An agent that only connects must not use up this process's files.
            reply = await self._answer(reader) if len(self._tasks) <= _MOST_CALLS else None
            if reply is not None:
                writer.write(json.dumps(reply).encode("ascii") + b"\n")
                await writer.drain()
        except asyncio.CancelledError:
            pass  # the cockpit closes; asyncio would print this at the end of a connection's task
        except (OSError, ValueError, TimeoutError, CockpitError):
            pass  # the call is gone or says nonsense, or the store is closed: the agent asks by itself
        finally:
            writer.close()
            if task is not None:
                self._tasks.discard(task)

    async def close(self) -> None:
        """Withdraw all questions."""
        for question in self._questions:
            question.withdrawn.withdraw(ASKS_THERE)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader) -> Mapping[str, Any] | None:
        async with asyncio.timeout(_SEND_S):
            line = await reader.readline()
        call = _read_call(line)
        if call is None or not await asyncio.to_thread(self._is_of_project, call.agent.root):
            return None
        if call.reports:
            self._withdraw_answered(call)
            return None
        if len(self._questions) >= _MOST_AT_ONCE:
            return None
        question = _Question(call)
        self._questions.append(question)
        gone = asyncio.create_task(_until_closed(reader, question))
        try:
            answer = await self._ask(question)
        finally:
            self._questions.remove(question)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        if answer.end == "withdrawn" and question.gone.is_set():
            await self._note_left(call)
        if answer.end != "decided":
            return None
        return {
            "allow": answer.allowed,
            "words": answer.message,
            "input": answer.input and dict(answer.input),
        }

    def _is_of_project(self, root: str) -> bool:
        """Whether ``root`` is a worktree of this project: what is inside it is judged less risky."""
        checkout = find_checkout(root)
        mine = str(self._engine.place.state)
        return checkout is not None and checkout.root == root and checkout.state == mine

    async def _ask(self, question: _Question) -> PermissionAnswer:
        call, engine = question.call, self._engine
        session = await engine.store.write(
            lambda tx: ensure_session(tx, call.agent, policy=engine.settings.policy)
        )
        request = read_claude_tool(
            call.tool,
            call.input,
            agent=call.agent.agent,
            transport="hook",
            cwd=call.cwd or call.agent.root,
            editable=call.event in _EDITED_EVENTS.get(call.agent.agent, ()),
        )
        return await ask_permission(
            engine.store,
            engine.settings,
            engine.change_waiter,
            request,
            session_id=session.session_id,
            root=Path(call.agent.root),
            policy=session.policy,
            deadline_s=engine.settings.hook_wait_s,
            withdrawn=question.withdrawn,
        )

    async def _note_left(self, call: _Call) -> None:
        """Record that the user has the turn: an agent that is told no in its terminal reports nothing."""
        await self._engine.store.write(lambda tx: follow_event(tx, call.agent, ANSWERED_THERE, {}))

    async def end_dead_sessions(self) -> None:
        """End the sessions of agents whose process is gone, every few seconds."""
        while True:
            dead = await self._engine.store.read(list_dead_sessions)
            if dead:
                await self._engine.store.write(partial(end_dead_sessions, dead=dead))
            await asyncio.sleep(_LOOK_S)

    def _withdraw_answered(self, call: _Call) -> None:
        """Withdraw what the agent went on with: the oldest equal call, or all at the end of its turn."""
        open_questions = [each for each in self._questions if _same_session(each.call, call)]
        if call.event not in _ENDS_TURN:
            open_questions = [each for each in open_questions if each.call.key == call.key][:1]
        for each in open_questions:
            each.withdrawn.withdraw(_ENDS_TURN.get(call.event, ALLOWED_THERE))


def _same_session(call: _Call, other: _Call) -> bool:
    return (call.agent.agent, call.agent.agent_session) == (
        other.agent.agent,
        other.agent.agent_session,
    )


async def _until_closed(reader: asyncio.StreamReader, question: _Question) -> None:
    """Withdraw the question when the hook call ends; it sends nothing after its request."""
    try:
        while await reader.read(4_096):
            continue
    except OSError:
        pass  # reset: it is gone
    question.gone.set()
    question.withdrawn.withdraw(LEFT_THERE)


def _read_call(line: bytes) -> _Call | None:
    body = parse_object(line.decode("utf-8", "replace")) if line.endswith(b"\n") else None
    if body is None:
        return None
    agent = TerminalAgent(
        " ".join(get_text(body, "agent").split())[:100],
        get_text(body, "session")[:200],
        get_text(body, "root"),
    )
    if not agent.agent or not agent.agent_session or not Path(agent.root).is_absolute():
        return None
    return _Call(
        event=get_text(body, "event"),
        agent=agent,
        tool=get_text(body, "tool"),
        input=get_object(body, "input"),
        cwd=get_text(body, "cwd"),
        reports=body.get("reports") is True,
    )
