"""The private folder of one agent run: prompt, MCP configuration, hooks, and the agent's process.

The MCP configuration starts our server with a token that is limited to the task and ends with the run.
The recorded process lets a later run kill an agent that a killed cockpit left behind. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access import capability_tokens
from cockpit.access.principals import AGENT, PERSON
from cockpit.access.token_scopes import WORK_WRITE
from cockpit.agents.runs.agent_hooks import hook_groups
from cockpit.agents.runs.run_rows import fail_session, stop_session
from cockpit.core.errors import IllegalTransition, Stale
from cockpit.core.processes import is_process_alive, process_name
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.state_folder import PLACE_VARIABLES
from cockpit.core.state_folder import VARIABLE as STATE_VARIABLE
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions
from cockpit.store.sessions.hold_session import hold_session
from cockpit.store.sessions.sessions import Session

TASK = "COCKPIT_TASK"
"""The variable that names the agent's task to hooks."""
WIP = "COCKPIT_WIP"
"""The variable that tells hooks whether to capture work in progress: ``on`` or ``off``."""
SESSION = "COCKPIT_SESSION"
"""The variable that names cockpit's session of the agent to hooks: what they report belongs to it."""
TOKEN = "COCKPIT_TOKEN"  # noqa: S105 - a variable's name
SERVER = "ohno"
"""The server's name that existing prompts and plugins for such tools use."""
_SLACK_S = 120.0
_COCKPIT = (sys.executable, "-P", "-m", "cockpit")


class RunFolder(Struct, frozen=True):
    """One run's folder and the token in it."""

    folder: Path
    cap_id: str
    secret: str
    variables: Mapping[str, str]
    """The variables by which our hooks, server and commands act for the agent and its task."""
    lost: asyncio.Event
    """Set when another process took the session over."""

    def placeholder_values(
        self, prompt: str, worktree: Path, task_id: str, session_id: str, answer_schema: str = ""
    ) -> dict[str, str]:
        """Return the value of each placeholder of a command."""
        return {
            "answer_schema": answer_schema,
            "mcp_program": json.dumps(_COCKPIT[0]),
            "mcp_arguments": json.dumps([*_COCKPIT[1:], "mcp"]),
            "prompt": prompt,
            "prompt_file": str(self.folder / "prompt.md"),
            "worktree": str(worktree),
            "task": task_id,
            "mcp_config": str(self.folder / "mcp.json"),
            "hooks": str(self.folder / "hooks.json"),
            "session": session_id,
        }

    def record_process(self, pid: int) -> None:
        """Record which process the agent is."""
        (self.folder / "process").write_text(process_name(pid), encoding="ascii")


@asynccontextmanager
async def open_run(
    store: Store,
    place: ProjectPaths,
    session: Session,
    *,
    prompt: str,
    scopes: frozenset[str],
    lasts_s: float,
    policy: str,
    environment: Mapping[str, str],
    asks: bool = False,
) -> AsyncIterator[RunFolder]:
    """Hold the session for one run, with the run's folder and token, which end with the context.

    What an earlier run of the session left is removed. ``asks``: the agent asks for permissions by its
    protocol, so no hook answers them. ``policy`` is what its hooks let pass, ``environment`` this process's
    own. An error of the context ends the session as failed, and a cancellation as stopped. Raises ``Stale``
    when another process holds the session.
    """
    session_id = session.session_id
    async with hold_session(store, session_id) as lost:
        run_folder = await _create(
            store, place, session, prompt, scopes, lasts_s, policy, environment, asks, lost
        )
        try:
            yield run_folder
        except asyncio.CancelledError:
            await asyncio.shield(store.write(partial(_stop_if_running, session_id=session_id)))
            raise
        except Stale:
            raise
        except Exception as error:
            code, words = getattr(error, "code", type(error).__name__), str(error)
            await store.write(lambda tx: fail_session(tx, session_id, code, words))
            raise
        finally:
            await asyncio.shield(_remove(store, run_folder))


def _stop_if_running(tx: Tx, session_id: str) -> None:
    if sessions.load(tx.connection, session_id).status in ("running", "waiting"):
        stop_session(tx, session_id)


async def _create(
    store: Store,
    place: ProjectPaths,
    session: Session,
    prompt: str,
    scopes: frozenset[str],
    lasts_s: float,
    policy: str,
    environment: Mapping[str, str],
    asks: bool,
    lost: asyncio.Event,
) -> RunFolder:
    folder = place.state / "runs" / session.session_id
    kill_leftover_agent(folder)
    principal = f"{AGENT}{session.task_id or 'run'}/{session.session_id}".lower()

    def issue(tx: Tx) -> tuple[capability_tokens.Token, str]:
        return capability_tokens.issue(
            tx, namespace=principal, scopes=scopes, by=PERSON, expires_s=lasts_s + _SLACK_S
        )

    token, secret = await store.write(issue)
    folder.mkdir(mode=0o700, parents=True)
    variables = {
        TOKEN: secret,
        "COCKPIT_APPROVE": policy,
        # The actions of an agent that only reads are not work in progress.
        WIP: "on" if WORK_WRITE in scopes else "off",
        SESSION: session.session_id,
        **({TASK: session.task_id} if session.task_id else {}),
    }
    folders = ("COCKPIT_CONFIG_DIR", STATE_VARIABLE)
    variables |= {name: environment[name] for name in folders if environment.get(name)}
    run_folder = RunFolder(folder, token.cap_id, secret, variables, lost)
    server = our_server(run_folder)
    _write(folder / "prompt.md", prompt)
    _write(folder / "mcp.json", json.dumps({"mcpServers": {SERVER: server}}))
    hooks = hook_groups("claude", shlex.join(_COCKPIT), asks=asks, policy=policy)
    _write(folder / "hooks.json", json.dumps({"hooks": hooks}))
    return run_folder


def our_server(run_folder: RunFolder) -> dict[str, Any]:
    """Return how our MCP server starts with the run's token, in the form of Claude Code's configuration.

    Its variables say where the state is: some agents start servers without their own variables.
    """
    places = {name: os.environ[name] for name in PLACE_VARIABLES if os.environ.get(name)}
    return {
        "type": "stdio",
        "command": _COCKPIT[0],
        "args": [*_COCKPIT[1:], "mcp"],
        "env": {**places, TOKEN: run_folder.secret},
    }


async def _remove(store: Store, run_folder: RunFolder) -> None:
    """Revoke the token and remove the folder."""

    def revoke(tx: Tx) -> None:
        try:
            capability_tokens.revoke(tx, run_folder.cap_id, PERSON)
        except IllegalTransition:
            return  # the user has revoked it already

    await store.write(revoke)
    shutil.rmtree(run_folder.folder, ignore_errors=True)


def kill_leftover_agent(folder: Path) -> bool:
    """Kill the agent that an earlier run left behind and remove its folder; whether one still ran."""
    try:
        name = (folder / "process").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        name = ""
    ran = _kill_group(name)
    if folder.exists():
        shutil.rmtree(folder)
    return ran


def _kill_group(name: str) -> bool:
    pid = name.partition("/")[0]
    if not pid.isdigit() or not is_process_alive(name):
        return False
    try:
        os.killpg(int(pid), signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _write(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
