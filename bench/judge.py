"""What each policy answers to the commands of recorded agents, and what a verdict costs.

The runs are those of SWE-agent/mini-swe-agent (MIT, © 2025 Kilian A. Lieret and Carlos E. Jimenez) in the
folder that ``COCKPIT_BENCH_DATA`` names. A project with the folders that they read stands for theirs.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from measure import Row, row

from cockpit.hook.event_payload import Event
from cockpit.hook.permission_policy import decide_permission
from cockpit.hook.project_lookup import Checkout

_PROJECT = "/testbed"


def rows() -> Iterator[Row]:
    """Yield, by policy, how many commands are allowed, left to the user and denied."""
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    folder = Path(data, "agent-traces")
    if not data or not folder.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with agent-traces")
        return
    commands = list(_commands(folder))
    with tempfile.TemporaryDirectory() as made:
        root = Path(os.path.realpath(made), "project")
        _make_project(root, commands)
        for policy in ("ask", "reads", "all"):
            os.environ["COCKPIT_APPROVE"] = policy
            started = time.process_time()
            answers = Counter(_answer(command, root) for command in commands)
            spent = time.process_time() - started
            count = len(commands)
            for answer in ("allow", "ask", "deny"):
                yield row(f"{policy}: {answer}, of {count}", answers[answer], "")
            yield row(f"{policy}: a verdict", 1000 * spent / count, "ms CPU")


def _answer(command: str, root: Path) -> str:
    payload = {
        "hook_event_name": "PermissionRequest",
        "session_id": "s",
        "cwd": str(root),
        "tool_name": "Bash",
        "tool_input": {"command": command.replace(_PROJECT, str(root))},
    }
    decision = decide_permission(
        Event("claude", payload), Checkout(str(root), str(root), str(root))
    )
    return "ask" if decision is None else "allow" if decision.allow else "deny"


def _commands(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                if command := json.loads(line).get("command"):
                    yield command


def _make_project(root: Path, commands: list[str]) -> None:
    """Make a repository with the folders that the commands enter; the files need not be there."""
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for command in commands:
        words = command.replace("&&", " ").split()
        for before, word in itertools.pairwise(words):
            if before == "cd" and word.startswith(_PROJECT):
                (root / word.removeprefix(_PROJECT).strip("/")).mkdir(parents=True, exist_ok=True)
