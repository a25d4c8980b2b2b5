"""What an agent is handed for one run, in a folder of its own that nobody else reads.

The prompt, a configuration that starts our MCP server with a token of the task's own namespace, and
one with our hooks. The token ends with the run. The folder also says which process it was: what a
killed cockpit left running is ended before anybody else works in the same tree.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cockpit.access import capability_tokens
from cockpit.access.principals import AGENT, PERSON
from cockpit.agents.agent_hooks import hook_groups
from cockpit.core.errors import IllegalTransition
from cockpit.core.processes import is_process_alive, process_name
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

TASK = "COCKPIT_TASK"
"""The variable that tells hooks which task the agent was given."""
WIP = "COCKPIT_WIP"
"""The variable that tells hooks whether what it does is kept as work in progress: ``on`` or ``off``."""
TOKEN = "COCKPIT_TOKEN"  # noqa: S105 - a variable's name
SERVER = "ohno"
"""The name that prompts and plugins for such tools know the server by."""
_SLACK_S = 120.0


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder and the token in it."""

    folder: Path
    cap_id: str
    secret: str

    def values(self, prompt: str, worktree: Path, task_id: str, session_id: str) -> dict[str, str]:
        """What stands for each placeholder of a command."""
        return {
            "prompt": prompt,
            "prompt_file": str(self.folder / "prompt.md"),
            "worktree": str(worktree),
            "task": task_id,
            "mcp_config": str(self.folder / "mcp.json"),
            "hooks": str(self.folder / "hooks.json"),
            "session": session_id,
        }

    def mark(self, pid: int) -> None:
        """Say which process the agent is."""
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
) -> RunFolder:
    """Make the folder and its token, in place of what an earlier run of the session left."""
    folder = place.state / "runs" / session_id
    kill_leftover_agent(folder)
    namespace = f"{AGENT}{task_id or 'run'}/{session_id}".lower()

    def issue(tx: Tx) -> tuple[capability_tokens.Token, str]:
        return capability_tokens.issue(
            tx, namespace=namespace, scopes=scopes, by=PERSON, expires_s=lasts_s + _SLACK_S
        )

    token, secret = await store.write(issue)
    folder.mkdir(mode=0o700, parents=True)
    given = RunFolder(folder, token.cap_id, secret)
    cockpit = (sys.executable, "-P", "-m", "cockpit")
    server = {
        "type": "stdio",
        "command": cockpit[0],
        "args": [*cockpit[1:], "mcp"],
        "env": {TOKEN: secret},
    }
    _write(folder / "prompt.md", prompt)
    _write(folder / "mcp.json", json.dumps({"mcpServers": {SERVER: server}}))
    _write(folder / "hooks.json", json.dumps({"hooks": hook_groups("claude", shlex.join(cockpit))}))
    return given


def cockpit_variables(
    given: RunFolder, environment: Mapping[str, str], *, task_id: str, policy: str, works: bool
) -> dict[str, str]:
    """The variables that make our hooks, server and commands act for the agent and its task.

    ``works`` is False for one that only looks: what it does is no work in progress.
    """
    found = {TOKEN: given.secret, "COCKPIT_APPROVE": policy, WIP: "on" if works else "off"}
    if task_id:
        found[TASK] = task_id
    folder = environment.get("COCKPIT_CONFIG_DIR")
    return {**found, "COCKPIT_CONFIG_DIR": folder} if folder else found


async def remove_run_folder(store: Store, given: RunFolder) -> None:
    """End the token and remove the folder."""

    def revoke(tx: Tx) -> None:
        try:
            capability_tokens.revoke(tx, given.cap_id, PERSON)
        except IllegalTransition:
            return  # a person was faster

    await store.write(revoke)
    shutil.rmtree(given.folder, ignore_errors=True)


def kill_leftover_agent(folder: Path) -> bool:
    """End the agent that an earlier run left behind, and remove its folder; whether one still ran."""
    try:
        named = (folder / "process").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        named = ""
    ran = _end_group(named)
    if folder.exists():
        shutil.rmtree(folder)
    return ran


def _end_group(named: str) -> bool:
    pid = named.partition("/")[0]
    if not pid.isdigit() or not is_process_alive(named):
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
