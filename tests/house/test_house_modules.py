"""The shape of the house: sizes, names, and who may import what at run time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for package in ("cockpit", "widgets", "themes", "bench")
    for path in (ROOT / package).rglob("*.py")
    if "data" not in path.relative_to(ROOT).parts
)
MOST_LINES = 600
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}

SDKS = ("pydantic_ai", "anthropic", "openai")
SCREEN = ("textual", "widgets.work.work_pane", "cockpit.app")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_fits_a_sitting(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MOST_LINES, f"{lines} lines: split it by idea"


def test_every_module_has_a_name_that_says_something() -> None:
    vague = [path for path in SOURCES if EMPTY_NAMES & {path.stem, *path.relative_to(ROOT).parts}]
    assert vague == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        path
        for path in SOURCES
        if path.stat().st_size and not path.read_text(encoding="utf-8").startswith(('"""', 'r"""'))
    ]
    assert silent == []


def test_nothing_is_left_to_do_or_out_of_the_house() -> None:
    found = []
    words = ("TODO", "FIXME", "XXX", "HACK")
    for path in SOURCES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            comment = line.partition("#")[2]
            if any(f"{word}:" in comment or f"{word} " in f"{comment} " for word in words):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert found == []


def loaded_by(code: str, cwd: Path) -> set[str]:
    """The modules that a fresh interpreter has loaded when ``code`` has run."""
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def heavy(modules: set[str], names: tuple[str, ...]) -> set[str]:
    return {
        module
        for module in modules
        for name in names
        if module == name or module.startswith(f"{name}.")
    }


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        ["proposals", "list"],
        ["sessions", "list", "--json"],
        ["journal", "tail"],
        ["profile", "show"],
    ],
    ids=" ".join,
)
def test_a_short_command_loads_neither_screen_nor_sdk_nor_numpy(
    words: list[str], tmp_path: Path
) -> None:
    code = f"from cockpit.cli import main\nassert main({words!r}) == 0"
    modules = loaded_by(code, tmp_path)
    assert "cockpit.cli" in modules
    assert heavy(modules, (*SCREEN, *SDKS, "numpy", "mcp", "fastapi")) == set()


def test_only_what_is_called_is_loaded(tmp_path: Path) -> None:
    modules = loaded_by("from cockpit.cli import main\nmain(['--version'])", tmp_path)
    assert heavy(modules, ("cockpit.commands", "cockpit.store", "msgspec", "asyncio")) == set()


def test_what_opens_the_screen_loads_neither_the_command_line_nor_what_runs_agents(
    tmp_path: Path,
) -> None:
    code = (
        "import cockpit.commands.sessions.open_screen, cockpit.commands.sessions.screen\n"
        "import cockpit.app.application\n"
        "from pathlib import Path; from cockpit.config.load_settings import load_settings\n"
        "load_settings(Path.cwd(), env={})"
    )
    modules = loaded_by(code, tmp_path)
    assert "textual.app" in modules
    late = (
        "click",
        "cockpit.cli",
        "cockpit.config.runners",
        "cockpit.agents",
        "numpy",
        *SDKS,
    )
    assert heavy(modules, late) == set()


HOOKS = {
    "PostToolUse": {"tool_name": "Write", "tool_input": {"file_path": "a.py"}},
    "SessionStart": {"source": "compact"},
    "PermissionRequest": {"tool_name": "Bash", "tool_input": {"command": "ls"}},
}
SLOW = ("click", "asyncio", "msgspec", "dataclasses", "subprocess", "logging", "concurrent")


@pytest.mark.parametrize("event", HOOKS)
def test_a_hook_call_loads_little_more_than_nothing(event: str, tmp_path: Path) -> None:
    place = locate_project(tmp_path)
    place.prepare()
    Store.open(place.database).close()
    told = {"session_id": "s", "hook_event_name": event, **HOOKS[event]}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cockpit", "hook"],
        cwd=tmp_path,
        input=json.dumps(told),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    modules = {line.rpartition("|")[2].strip() for line in lines}
    assert "cockpit.hook.hook_call" in modules
    assert heavy(modules, (*SCREEN, *SDKS, *SLOW, "numpy", "mcp")) == set()
    ours = {module for module in modules if module.startswith(("cockpit.store.", "cockpit.core."))}
    light = {"core.quick_secret_check", "core.text", "core.find_checkout", "core.state_folder"}
    light |= {"core.secret_rules", "core.long_runs"}
    light |= {
        "store.hooks",
        "store.hooks.pending_events",
        "store.backlog",
        "store.backlog.task_rows",
    }
    assert ours <= {f"cockpit.{name}" for name in light}


def test_serving_over_http_loads_neither_screen_nor_sdk_nor_mcp(tmp_path: Path) -> None:
    modules = loaded_by(
        "import cockpit.commands.servers.serve\nimport cockpit.api.server", tmp_path
    )
    assert "fastapi" in modules
    assert heavy(modules, (*SCREEN, *SDKS, "numpy", "mcp", "prometheus_client")) == set()
    lazy = loaded_by("import cockpit.commands.servers.serve", tmp_path)
    assert heavy(lazy, ("fastapi", "starlette", "uvicorn", "cockpit.api")) == set()


def test_serving_editors_loads_neither_screen_nor_sdk_and_the_library_late(tmp_path: Path) -> None:
    code = "import cockpit.commands.servers.acp\nimport cockpit.acp.run_server"
    modules = loaded_by(code, tmp_path)
    assert "cockpit.acp.agent_server" in modules
    assert heavy(modules, (*SCREEN, *SDKS, "mcp", "fastapi", "acp", "pydantic")) == set()


SCENARIO = """
[[turn]]
text = "Nothing to do here."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "looked" }
"""


def test_a_headless_run_loads_neither_screen_nor_sdk(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    words = ["run", "investigate this", "--model", "script:scenario.toml", "--approve", "all"]
    code = f"from cockpit.cli import main\nassert main({words!r}) == 0"
    modules = loaded_by(code, tmp_path)
    assert "cockpit.decide.offline.script_model" in modules
    assert heavy(modules, (*SCREEN, *SDKS)) == set()
