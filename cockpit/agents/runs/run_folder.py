"""The private folder of one agent run: prompt, MCP configuration, hooks, and the agent's process.

The MCP configuration starts our server with a token that is limited to the task and ends with the run.
The recorded process lets a later run kill an agent that a killed cockpit left behind. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access import capability_tokens
from cockpit.access.principals import AGENT, PERSON
from cockpit.agents.runs.agent_hooks import hook_groups
from cockpit.core.errors import IllegalTransition
from cockpit.core.processes import is_process_alive, process_name
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.state_folder import PLACE_VARIABLES
from cockpit.core.state_folder import VARIABLE as STATE_VARIABLE
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

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


async def create_run_folder(
    store: Store,
    place: ProjectPaths,
    *,
    session_id: str,
    task_id: str,
    prompt: str,
    scopes: frozenset[str],
    lasts_s: float,
    policy: str,
    asks: bool = False,
) -> RunFolder:
    """Create the folder and its token, and remove what an earlier run of the session left.

    ``asks``: the agent asks for permissions by its protocol, so no hook answers them. ``policy`` is what
    its hooks let pass.
    """
    folder = place.state / "runs" / session_id
    kill_leftover_agent(folder)
    principal = f"{AGENT}{task_id or 'run'}/{session_id}".lower()

    def issue(tx: Tx) -> tuple[capability_tokens.Token, str]:
        return capability_tokens.issue(
            tx, namespace=principal, scopes=scopes, by=PERSON, expires_s=lasts_s + _SLACK_S
        )

    token, secret = await store.write(issue)
    folder.mkdir(mode=0o700, parents=True)
    run_folder = RunFolder(folder, token.cap_id, secret)
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


def cockpit_variables(
    run_folder: RunFolder,
    environment: Mapping[str, str],
    *,
    session_id: str,
    task_id: str,
    policy: str,
    works: bool,
) -> dict[str, str]:
    """Return the variables by which our hooks, server and commands act for the agent and its task.

    ``works`` is False for an agent that only reads: its actions are not work in progress.
    """
    variables = {
        TOKEN: run_folder.secret,
        "COCKPIT_APPROVE": policy,
        WIP: "on" if works else "off",
        SESSION: session_id,
    }
    if task_id:
        variables[TASK] = task_id
    folders = ("COCKPIT_CONFIG_DIR", STATE_VARIABLE)
    return variables | {name: environment[name] for name in folders if environment.get(name)}


async def remove_run_folder(store: Store, run_folder: RunFolder) -> None:
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
