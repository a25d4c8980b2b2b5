"""Histories of real agents: what is done while one is recorded and played, and what must come of it.

``make test-agents`` records and plays them with the programs that are installed, and
``COCKPIT_RECORD=1 make test-agents FILTER=histories`` keeps what it recorded in ``recorded/``.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.acp_client.acp_world import Acp
from agents.runner_world import Runs
from loop.permissions.permission_world import World as Queue
from msgspec.structs import replace

from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.agents.registry.known_agents import Agent, load_agents
from cockpit.agents.stdio.driven_runners import driven_command
from cockpit.agents.stdio.permissions import ask_in_queue
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals, sessions

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
ACP = ("claude", "codex", "opencode", "vibe")
DRIVEN = "claude-stdio"
"""The run over Claude Code's own protocol."""
PATIENCE_S = 180.0
STEPS = ("edit now 1", "command now 2", "command now 3", "edit now 4")
"""The prompts: approved; refused with words; interrupted while it asks; after a new start, approved."""
DRIVEN_PROMPT = "edit now 1, then command now 2"
NO = "use the Makefile"
_WORDY = frozenset(("description", "argumentHint", "hint"))
_LONG = frozenset(
    (
        *("commands", "slash_commands", "availableCommands", "availableModels", "models"),
        *("options", "tools", "agents", "skills", "capabilities"),
    )
)
_MOST_WORDS, _MOST_ENTRIES = 20, 4
_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_OWN_ID = re.compile(
    r"\b(?:call|ses|msg|prt|per|toolu|resp|req|item)_(?=[A-Za-z]*\d)[A-Za-z0-9]{1,40}\b"
)
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_OURS = re.compile(r"\b(?:p|s|m)-[a-z2-9]{8}\b")
_STABLE = re.compile(r"(?:runner\.(?!tool_updated|context|commands|choices)|proposal\.)")
"""Rows whose number says nothing of how fast the machine was."""
_VARIES = frozenset(
    ("pid", "waiter", "expires_at", "shown_digest", "digest", "created_at", "usage")
)


class Plain:
    """Replaces what differs by machine and by run: paths, ids, moments."""

    def __init__(self, *places: tuple[str | Path, str]) -> None:
        self._places = sorted(
            ((str(path), name) for path, name in places), key=lambda place: -len(place[0])
        )
        self._ids: dict[str, str] = {}

    def text(self, text: str) -> str:
        for place, name in self._places:
            text = text.replace(place, name)
        text = _UUID.sub(lambda match: self._number("id", match[0]), text)
        text = _OWN_ID.sub(lambda match: self._number("call", match[0]), text)
        text = _OURS.sub(lambda match: self._number("ours", match[0]), text)
        return _TIME.sub("2026-01-01T00:00:00Z", text)

    def value(self, value: Any) -> Any:
        return json.loads(self.text(json.dumps(value)))

    def _number(self, kind: str, text: str) -> str:
        # Each kind is numbered by itself: a history that is played has its own already.
        count = sum(name.startswith(kind) for name in self._ids.values())
        return self._ids.setdefault(text, f"{kind}-{count + 1:03}")


def write_plain(raw: Path, plain: Plain) -> str:
    """Return a recorded history as it is kept, one entry a line."""
    lines = []
    for line in raw.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        message = entry.get("client")
        if isinstance(message, dict):
            params = message.get("params") or {}
            for holder, name in (
                (params, "mcpServers"),
                (params, "clientCapabilities"),
                (params.get("clientInfo") or {}, "version"),
            ):
                if name in holder:
                    holder[name] = "{any}"
        entry = plain.value(entry)
        entry = shorten(entry) if "agent" in entry else entry
        lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(lines) + "\n"


def shorten(value: Any) -> Any:
    """Return a message without ``_meta``, its descriptions and lists of commands, models and tools cut."""
    if isinstance(value, list):
        return [shorten(each) for each in value]
    if not isinstance(value, dict):
        return value
    short = {}
    for name, each in value.items():
        if name == "_meta" and "claudeCode" not in each:
            continue  # cockpit reads only the name of Claude Code's tool there
        if name in _WORDY and isinstance(each, str) and len(each) > _MOST_WORDS:
            each = each[:_MOST_WORDS] + "…"
        elif name in _LONG and isinstance(each, list):
            each = each[:_MOST_ENTRIES]
        short[name] = shorten(each)
    return short


def recorder(raw: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that records what ``command`` and cockpit say."""
    return (sys.executable, "-S", str(HERE / "record_agent.py"), str(raw), "--", *command)


def player(history: Path, counter: Path) -> tuple[str, ...]:
    """Return the command that plays a history."""
    program = str(HERE / "play_history.py")
    return (sys.executable, "-S", "-E", program, str(history), str(counter))


def write_agent(acp: Acp, name: str, command: Sequence[str], granted: Sequence[str] = ()) -> Agent:
    """Let the agent ``name`` of the registry be ``command``; it gets the ``granted`` variables."""
    ways = load_agents().agents[name].acp
    body = {
        "command": list(command),
        "mode": ways.mode,
        "rejection_ends_turn": ways.rejection_ends_turn,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in body.items()]
    variables = ", ".join(f"{key} = {json.dumps(value)}" for key, value in ways.environment.items())
    lines += [f"environment = {{ {variables} }}", "[login]"]
    lines.append(f"variables = {json.dumps(list(granted))}")
    text = "\n".join([f'title = "{name}"', "[acp]", *lines, ""])
    folder = acp.config / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return load_agents(acp.config).find(name)


async def converse(acp: Acp, name: str) -> str:
    """Have the conversation of every history over ACP; returns the session."""
    edit, command, interrupted, again = STEPS
    session_id = await acp.runtime.start_agent(name, edit, interactive=True)
    async with asyncio.timeout(PATIENCE_S):
        await decide(acp, session_id)
        await acp.runtime.say(session_id, command)
        await decide(acp, session_id, NO)
        await acp.runtime.say(session_id, interrupted)
        task = acp.begin(session_id)
        await acp.asked()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await acp.runtime.agents().close()
        await acp.runtime.say(session_id, again)
        await decide(acp, session_id)
        await acp.runtime.agents().close()
    return session_id


async def decide(acp: Acp, session_id: str, words: str = "") -> None:
    """Approve what the session's turn asks for, or reject it with ``words``."""
    task = acp.begin(session_id)
    asking = asyncio.ensure_future(acp.asked())
    await asyncio.wait([task, asking], return_when=asyncio.FIRST_COMPLETED)
    assert asking.done(), (acp.rows(session_id)[-5:], acp.said(session_id))
    (proposal,) = asking.result()
    await (acp.reject(proposal, words) if words else acp.approve(proposal))
    await task


async def drive(runs: Runs, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Have the run of the history over Claude Code's own protocol; returns the session.

    Its edit is changed and approved; its command is refused with words.
    """
    words = driven_command(command)
    runner = RunnerSettings("claude", words, protocol="stdio", timeout_s=PATIENCE_S)
    session_id = runs.session()
    store, root = runs.store, runs.place.root
    store.write_now(
        lambda tx: tx.execute("UPDATE sessions SET policy='ask' WHERE session_id=?", (session_id,))
    )
    queue = Queue(store, root, session_id, ChangeWaiter(store))
    ask = ask_in_queue(store, RuntimeSettings(), session_id, root)
    running = asyncio.create_task(
        runs.run(
            replace(runner, env=_VARIABLES), session_id, prompt=DRIVEN_PROMPT, ask=ask,
            choices=SandboxChoices(agents=False),
            environment=environment,
        )
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        (edit,) = await queue.pending()
        edit = await queue.edit(edit, "changed before it was approved\n")
        await asyncio.to_thread(queue.decide, edit, "approved")
        (command_asked,) = await queue.pending()
        await asyncio.to_thread(queue.decide, command_asked, "rejected", NO)
        outcome = await running
    assert outcome.status == "finished", outcome
    return session_id


def read_outcome(store: Store, session_id: str, plain: Plain, said: Iterable[str]) -> Any:
    """Return what came of a session: proposals, journal, words, end."""

    def read(connection: Any) -> dict[str, Any]:
        rows = connection.execute(
            "SELECT proposal_id FROM proposals WHERE session_id=? ORDER BY rowid", (session_id,)
        ).fetchall()
        asked = [proposals.load(connection, identity) for (identity,) in rows]
        seen = journal.rows(connection, after=0, session_id=session_id, limit=100_000)
        session = sessions.load(connection, session_id)
        return {
            "proposals": [
                {
                    "title": each.title, "kind": each.kind, "risk": each.risk, "status": each.status,
                    "by": each.decided_by, "reason": each.reason, "body": without(each.body),
                }
                for each in asked
            ],
            "journal": [
                [row.action, without(row.raw_detail())] for row in seen if _STABLE.match(row.action)
            ],
            "said": list(said),
            "end": [session.status, session.input_tokens, session.output_tokens],
        }  # fmt: skip

    return plain.value(store.read_now(read))


def without(value: Any) -> Any:
    """Return ``value`` without the fields that vary from run to run."""
    if isinstance(value, dict):
        return {name: without(each) for name, each in value.items() if name not in _VARIES}
    return [without(each) for each in value] if isinstance(value, list) else value


def lines_of(outcome: Any) -> list[str]:
    """Return an outcome as lines, of which a failed comparison shows those that differ."""
    return json.dumps(outcome, indent=1, ensure_ascii=False, sort_keys=True).splitlines()
