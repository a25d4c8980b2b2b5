"""What short commands load: neither the screen, nor a library of a provider, nor a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow

SDKS = ("pydantic_ai", "anthropic", "openai")
SCREEN = ("textual", "widgets.work.work_pane", "cockpit.app")
SERVERS = ("mcp", "starlette", "uvicorn", "cockpit.api")
WAVE = ("cockpit.loop.wave_context", "cockpit.act.model_tools", "cockpit.loop.intake.roles")
SCENARIO = """
[[turn]]
text = "Nothing to do here."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "looked" }
"""


def loaded_by(*words: str, cwd: Path, stdin: str = "", expect: int = 0) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cockpit", *words],
        cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == expect, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def loads(modules: set[str], *names: str) -> list[str]:
    return [each for each in modules if any(f"{each}.".startswith(f"{name}.") for name in names)]


@pytest.mark.parametrize("command", ["sessions", "proposals", "tasks", "chain"])
def test_a_list_loads_neither_screen_nor_provider_nor_server(tmp_path: Path, command: str) -> None:
    modules = loaded_by(command, cwd=tmp_path)
    assert "cockpit.store.db.connection" in modules
    assert loads(modules, *SCREEN, *SDKS, *SERVERS, *WAVE, "numpy") == []


def test_a_run_without_a_screen_loads_none(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    words = ("run", "investigate this", "--model", "script:scenario.toml", "--approve", "all")
    modules = loaded_by(*words, cwd=tmp_path)
    assert "cockpit.decide.offline.script_model" in modules
    assert loads(modules, *SCREEN, *SDKS) == []


def test_what_watches_over_a_chain_loads_no_session(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    words = ("work", "--all", "--headless", "--approve", "all", "--runner", "nobody")
    modules = loaded_by(*words, cwd=tmp_path, expect=2)
    assert "cockpit.agents.stdio.driven_runners" in modules
    assert loads(modules, "cockpit.loop.session_loop", "numpy") == []


def test_a_hook_call_loads_little_more_than_nothing(tmp_path: Path) -> None:
    place = locate_project(tmp_path)
    place.prepare()
    Store.open(place.database).close()
    event = {"session_id": "s", "hook_event_name": "PermissionRequest"}
    call = {**event, "tool_name": "Bash", "tool_input": {"command": "ls"}}
    modules = loaded_by("hook", cwd=tmp_path, stdin=json.dumps(call))
    assert "cockpit.hook.hook_call" in modules
    slow = ("click", "asyncio", "msgspec", "dataclasses", "subprocess", "logging", "concurrent")
    assert loads(modules, *SCREEN, *SDKS, *SERVERS, *slow, "numpy") == []
