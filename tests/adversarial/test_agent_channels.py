"""External agents send hostile text wherever a protocol lets them: none of it reaches a terminal raw.

One project and one store take it all: an ACP agent's updates and permissions, the hooks of agents in the
user's own terminals, the socket of an open cockpit, Claude Code over stdio, and the user's own agents'
files. Then every command that shows sessions, and the whole screen, are looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import socket
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
import run_cockpit
from agents.acp_client.acp_world import PATIENCE_S, Acp, open_acp
from agents.runner_world import AGENT, Runs, init, result, says
from app.app_world import settled
from state_for_tests import kept_variables
from tasks.taskrun_world import World

from cockpit.agents.stdio.permissions import ask_in_queue
from cockpit.agents.terminals.serve_hook_questions import answer_hooks
from cockpit.app.actions import decision_actions
from cockpit.app.application import CockpitApp
from cockpit.core import open_cockpits
from cockpit.core.errors import AlreadyDecided
from cockpit.hook.ingest import ingest_all
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings

pytestmark = pytest.mark.slow

RAW = (
    "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b[1A\x9b2J\x9d0;owned\x9c\x1b_apc\x1b\\\x08\x0b\r\x00\x7f"
    "\x85\u2028\u2029\u202e\u2066\u200b\u200f\u00ad\ufeff\U000e0041"
)
FORGED = "FORGED · low risk · approved by you"
"""A line that would pass for one of cockpit's own."""
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)

ACP = (
    "message", "thought", "tool-title", "tool-kind", "tool-id", "location", "output", "diff-path",
    "diff-text", "plan-entry", "plan-priority", "mode", "mode-name", "command-name", "command-help",
    "update-kind", "asked-title", "asked-command", "asked-why", "option-id", "option-name",
    "asked-path", "asked-tool", "terminal-word", "stop-reason", "stderr", "form-message", "form-title",
    "form-text", "form-option", "form-key", "form-address",
)  # fmt: skip
HOOK = ("prompt", "notification", "tool-input", "tool-name", "cwd", "transcript", "model")
SOCKET = ("agent", "session", "tool", "input", "input-name", "cwd")
STDIO = ("text", "tool", "input", "output", "model", "answer")

UNSEEN = {
    "acp:option-id", "acp:asked-path", "acp:stderr", "hook:tool-input", "hook:tool-name", "hook:cwd",
    "hook:model", "socket:session", "acp:form-key",
}  # fmt: skip
"""Channels whose text cockpit shows nowhere."""


def hostile(channel: str) -> str:
    """What is sent through a channel; begins with a word that finds it again."""
    return f"{mark(channel)} {RAW}\n{FORGED}"


def mark(channel: str) -> str:
    return "Mk" + channel.replace(":", "").replace("-", "")


def updates() -> list[dict[str, Any]]:
    """What the ACP agent sends."""

    def text(channel: str) -> dict[str, Any]:
        return {"type": "text", "text": hostile(f"acp:{channel}")}

    def word(channel: str) -> str:
        return hostile(f"acp:{channel}")

    def option(kind: str, at: int) -> dict[str, str]:
        return {"optionId": f"{at}{word('option-id')}", "name": word("option-name"), "kind": kind}

    diff = {
        "type": "diff", "path": f"/{word('diff-path')}", "oldText": "a\n", "newText": word("diff-text"),
    }  # fmt: skip
    options = [option("allow_once", 1), option("reject_once", 2)]
    entry = {"content": word("plan-entry"), "priority": word("plan-priority"), "status": "pending"}
    command = {"name": word("command-name"), "description": word("command-help")}
    mode = {
        "id": "mode", "category": "mode", "type": "select", "name": word("mode-name"),
        "currentValue": "x", "options": [{"value": "x", "name": word("mode-name")}],
    }  # fmt: skip
    return [
        {"update": word("update-kind")},
        {"update": "plan", "entries": [entry]},
        {"update": "available_commands_update", "availableCommands": [command]},
        {"update": "current_mode_update", "currentModeId": word("mode")},
        {"update": "config_option_update", "configOptions": [mode]},
        {"update": "agent_thought_chunk", "content": text("thought")},
        {
            "update": "tool_call", "toolCallId": f"c1{word('tool-id')}", "title": word("tool-title"),
            "kind": word("tool-kind"), "status": "in_progress",
            "locations": [{"path": word("location"), "line": 3}],
        },
        {
            "update": "tool_call_update", "toolCallId": f"c1{word('tool-id')}", "status": "completed",
            "content": [{"type": "content", "content": text("output")}, diff],
        },
        {"update": "agent_message_chunk", "content": text("message")},
        {
            "permission": {
                "toolCallId": "p1", "title": word("asked-title"), "kind": "execute",
                "rawInput": {"command": f"echo {word('asked-command')}", "description": word("asked-why")},
            },
            "options": options,
        },
        {
            "permission": {
                "toolCallId": "p2", "title": word("asked-title"), "kind": "edit", "content": [diff],
                "locations": [{"path": f"/{word('asked-path')}"}],
                "rawInput": {"file_path": f"/{word('asked-path')}", "content": word("diff-text")},
            },
            "options": options,
        },
        {
            "permission": {
                "toolCallId": "p3", "title": f"mcp__{word('asked-tool')}__x", "kind": "other",
                "rawInput": {word("asked-tool"): word("asked-why")},
            },
            "options": options,
        },
        {
            "request": "terminal/create",
            "params": {"command": "echo", "args": [word("terminal-word").replace("\x00", "")]},
        },
        {"request": "fs/read_text_file", "params": {"path": f"/{word('asked-path')}"}},
        {"fail": f"{word('stop-reason')} {word('stderr')}"},
    ]  # fmt: skip


def questions() -> list[dict[str, Any]]:
    """What an ACP agent asks by a form, and by an address."""

    def word(channel: str) -> str:
        return hostile(f"acp:form-{channel}")

    choice = {"const": word("option"), "title": word("option"), "description": word("option")}
    properties = {
        word("key"): {"type": "string", "title": word("title"), "description": word("text")},
        "choice": {"type": "string", "title": word("title"), "oneOf": [choice]},
        "several": {"type": "array", "title": word("title"), "items": {"anyOf": [choice]}},
        "default": {"type": "string", "title": word("title"), "default": word("text")},
    }
    schema = {"type": "object", "title": word("title"), "properties": properties, "required": []}
    form = {"message": word("message"), "mode": "form", "requestedSchema": schema}
    address = {"message": word("message"), "mode": "url", "elicitationId": word("key")}
    return [
        {"request": "elicitation/create", "params": form},
        {
            "request": "elicitation/create",
            "params": {**address, "url": f"https://id.example/{word('address')}"},
        },
    ]


class Played:
    """What was printed by each command, and drawn by each view of the screen."""

    acp: Acp

    def __init__(self, world: World) -> None:
        self.world = world
        self.printed: dict[str, str] = {}
        self.unhandled: list[str] = []
        self.connections: list[socket.socket] = []
        self.proposals: list[str] = []
        self.sessions: list[str] = []
        self.env = {**kept_variables(), "COCKPIT_CONFIG_DIR": str(world.folder / "config")}

    def run(self, *words: str, stdin: bytes = b"", **variables: str) -> None:
        """Run ``cockpit`` as the user does, and keep what it prints."""
        done = run_cockpit.run_bytes(
            words, cwd=self.world.root, env={**self.env, **variables},
            patience_s=PATIENCE_S, stdin=stdin,
        )  # fmt: skip
        self.printed[" ".join(words)] = done.stdout.decode() + done.stderr.decode()

    def hooks(self) -> None:
        """Agents in the user's own terminals report what they do."""

        def word(channel: str) -> str:
            return hostile(f"hook:{channel}")

        root = str(self.world.root)
        common = {"session_id": "hook-session", "cwd": root, "transcript_path": word("transcript")}
        for agent, event, more in (
            ("claude", "SessionStart", {"source": "startup", "model": word("model")}),
            ("claude", "UserPromptSubmit", {"prompt": word("prompt")}),
            ("claude", "Notification", {"message": word("notification")}),
            (
                "claude", "PostToolUse",
                {
                    "tool_name": word("tool-name"), "tool_response": {},
                    "tool_input": {"command": word("tool-input"), "file_path": word("tool-input")},
                },
            ),
            ("claude", "PostToolUse", {"tool_name": "Bash", "tool_input": {"command": word("tool-input")}}),
            ("claude", "Stop", {"cwd": f"{root}/{word('cwd')}"}),
            ("codex", "UserPromptSubmit", {"prompt": word("prompt"), "session_id": "codex-hook"}),
        ):  # fmt: skip
            body = json.dumps({**common, "hook_event_name": event, **more}).encode()
            terminal = {"TMUX": hostile("x").replace("\x00", ""), "TMUX_PANE": "%1\x1b]0;owned\x07"}
            self.run("hook", "--agent", agent, stdin=body, **terminal)
        ingest_all(self.world.store, self.world.place.state)

    async def sockets(self) -> list[socket.socket]:
        """Ask over the socket of the open cockpit, as no hook call of ours would."""

        def word(channel: str) -> str:
            return hostile(f"socket:{channel}")

        (path, *_) = open_cockpits.list_sockets(str(self.world.place.state))
        record = {
            "event": "PermissionRequest", "agent": "claude", "session": "socket-session", "tool": "Bash",
            "input": {"command": word("input"), word("input-name"): 1},
            "cwd": word("cwd"), "root": str(self.world.root),
        }  # fmt: skip
        connections = []
        for changed in (
            {},
            {"agent": word("agent"), "session": word("session")},
            {"tool": word("tool"), "event": word("tool")},
            {"tool": "Write", "input": {"file_path": word("input"), "content": word("input")}},
        ):
            connection = open_cockpits.connect(path)
            assert connection is not None
            connection.sendall(json.dumps({**record, **changed}).encode() + b"\n")
            connections.append(connection)
        return connections

    def drive(self, *steps: dict[str, Any]) -> asyncio.Task[Any]:
        """Start an agent of a chain over stdio."""
        world = self.world
        runs = Runs(world.folder, world.place, world.store, world.task(title="By stdio"))
        session_id = runs.session()
        world.store.write_now(
            lambda tx: tx.execute(
                "UPDATE sessions SET policy='ask' WHERE session_id=?", (session_id,)
            )
        )
        command = (
            sys.executable, str(AGENT.with_name("driven_agent.py")),
            str(runs.scenario(*steps, name="stdio.json")), str(world.folder / "stdio.heard"),
        )  # fmt: skip
        runner = RunnerSettings("claude", command, protocol="stdio", timeout_s=PATIENCE_S)
        ask = ask_in_queue(world.store, RuntimeSettings(), session_id, world.root)
        task = asyncio.create_task(runs.run(runner, session_id, ask=ask))
        self.acp.started.append(task)
        return task

    def claude(self) -> asyncio.Task[Any]:
        def word(channel: str) -> str:
            return hostile(f"stdio:{channel}")

        def asks(number: str, tool: str, **arguments: Any) -> dict[str, Any]:
            request = {
                "subtype": "can_use_tool", "tool_name": tool, "input": arguments, "tool_use_id": "t",
            }  # fmt: skip
            return says({"type": "control_request", "request_id": number, "request": request})

        blocks = [
            {"type": "text", "text": word("text")},
            {"type": "tool_use", "id": "t1", "name": word("tool"), "input": {"command": word("input")}},
        ]  # fmt: skip
        message = {"id": "m", "role": "assistant", "content": blocks}
        returned = [{"type": "tool_result", "tool_use_id": "t1", "content": word("output")}]
        return self.drive(
            {"hear": 2},
            init(model=word("model")),
            says({"type": "assistant", "message": message}),
            says({"type": "user", "message": {"role": "user", "content": returned}}),
            asks("r1", "Bash", command=word("input"), description=word("input")),
            asks("r2", word("tool"), **{word("tool"): word("input")}),
            {"obey": 2},
            result(f"STATUS: done\n{word('answer')}"),
        )

    async def look(self) -> None:
        """Show everything that waits, on the screen; commands show it again later."""
        self.proposals = [proposal.proposal_id for proposal in self.acp.pending()]
        await self._screen()

    def list_all(self) -> None:
        """Print all that is about sessions and agents, when no loop runs."""
        for words in (
            ("sessions"), ("sessions", "--json"), ("proposals", "--all"),
            ("journal", "-n", "1000"), ("journal", "--all", "--json"), ("agents"),
            ("agents", "check", hostile("x")), ("run", "--agent", hostile("x"), "x"),
        ):  # fmt: skip
            self.run(*(word.replace("\x00", "") for word in words))
        for proposal_id in self.proposals:
            self.run("proposals", proposal_id)
        self.run("proposals", self.proposals[0], "--json")
        for session_id in self.sessions:
            self.run("sessions", session_id)
            self.run("sessions", "jump", session_id)
            target = self.world.folder / f"{session_id}.md"
            self.run("sessions", "export", session_id, str(target))
            if target.exists():
                self.printed[f"the export {session_id}"] = target.read_text(encoding="utf-8")

    async def _screen(self) -> None:
        app = CockpitApp(self.acp.runtime)
        async with app.run_test(size=(160, 60)) as pilot:
            await settled(pilot)
            rows = self.world.store.read_now(
                lambda seen: seen.execute("SELECT session_id FROM sessions").fetchall()
            )
            self.sessions = [session_id for (session_id,) in rows]
            for place, session_id in enumerate(self.sessions):
                app.attach(session_id)
                await settled(pilot)
                self.printed[f"screen {place}"] = _drawn(app)
            for keys in ("alt+n", "f6", "escape ctrl+p", "escape ctrl+t", "escape"):
                await pilot.press(*keys.split())
                await settled(pilot)
                self.printed[f"screen {keys}"] = _drawn(app)
            while not (front := app.main.queue.front).questions:
                await pilot.press("alt+n")
                await settled(pilot)
            decision_actions.answer(app, front)
            await settled(pilot)
            self.printed["the form"] = _drawn(app)
            assert mark("acp:form-option") in self.printed["the form"]


def _drawn(app: CockpitApp) -> str:
    return "\n".join(
        "".join(segment.text for segment in strip)
        for strip in app.screen._compositor.render_strips()
    )


async def play(played: Played, folder: Path) -> None:
    """Let every agent send its worst, and draw it."""
    async with open_acp(folder, world=played.world) as acp:
        played.acp = acp
        loop = asyncio.get_running_loop()
        # What nobody handles would be printed over the screen.
        loop.set_exception_handler(lambda _, context: played.unhandled.append(str(context)))
        steps = folder / "updates.json"
        steps.write_text(json.dumps(updates()), encoding="utf-8")
        acp.switch()
        claude = played.claude()
        async with answer_hooks(acp.runtime.engine):
            connections = await played.sockets()
            first = acp.begin(await acp.start(f"play {steps}"))
            asks = folder / "questions.json"
            asks.write_text(json.dumps(questions()), encoding="utf-8")
            second = acp.begin(await acp.start(f"play {asks}"))
            await acp.asked(1 + 1 + 2 + len(connections))
            await played.look()
            for connection in connections:
                connection.close()
            await _refuse_until_done(acp, first, second, claude)
            played.connections = await played.sockets()  # and one more round waits when it closes
            await acp.asked(len(played.connections))
        for connection in played.connections:
            connection.close()
        assert not played.unhandled


async def _refuse_until_done(acp: Acp, *tasks: Awaitable[Any]) -> None:
    """Say no to what is asked until the agents have ended."""
    ended = asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_S):
        while not ended.done():
            for proposal in acp.pending():
                with contextlib.suppress(AlreadyDecided):  # withdrawn meanwhile
                    await acp.reject(proposal, "no")
            await asyncio.wait([ended], timeout=0.05)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What was printed and drawn, by command or view."""
    folder = tmp_path_factory.mktemp("channels")
    played = Played(World.made(folder))
    played.hooks()  # before a loop runs, so that each is a call in this process
    asyncio.run(play(played, folder))
    played.list_all()
    return played.printed


def test_nothing_that_an_agent_sends_reaches_a_terminal_raw(printed: dict[str, str]) -> None:
    assert len(printed) > 30
    found = {
        (name[:80], line[:200])
        for name, text in printed.items()
        for line in text.split("\n")
        if UNSAFE.search(line)
    }
    assert not found


def test_no_line_of_an_agent_passes_for_one_of_ours(printed: dict[str, str]) -> None:
    """What an agent says stands behind a bar, line by line; everything else of it keeps to its line."""
    found = set()
    for name, text in printed.items():
        lines = [line for line in text.split("\n") if line.strip()]
        found |= {
            (name[:80], before[:80])
            for before, line in itertools.pairwise(lines)
            if line.startswith("FORGED") and not before.startswith("- ")
        }
    assert not found


def test_each_channel_was_one(printed: dict[str, str]) -> None:
    seen = "".join(printed.values())
    channels = (
        f"{way}:{channel}"
        for way, channels in (
            ("acp", ACP), ("hook", HOOK), ("socket", SOCKET), ("stdio", STDIO),
        )
        for channel in channels
    )  # fmt: skip
    assert {each for each in channels if mark(each) not in seen} == UNSEEN
