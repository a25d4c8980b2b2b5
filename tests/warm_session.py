"""Commands and a session, run in the warm server before it forks: what a process works out once is there.

Among it: which sandbox works on this machine (two programs), the built-in task types and roles, readers of
the journal's details, patterns, modules that commands load when they need them. None of it comes from an
environment or a project. It also leaves the interpreter's own notes on types and code, each of which a
forked process would write into a page of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from cockpit import cli
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings

SCENARIO = """
[[turn]]
when = { not_called = ["request_context"] }
text = "I need the file."
[[turn.call]]
name = "request_context"
arguments = { purpose = "fix add", question = "what does add do?", scope = ["file:calc.py"] }

[[turn]]
when = { not_called = ["git_commit"] }
text = "The sign is wrong."
[[turn.call]]
name = "edit_file"
arguments = { path = "calc.py", old = "a - b", new = "a + b" }
[[turn.call]]
name = "run"
arguments = { argv = ["grep", "-n", "a + b", "calc.py"], reason = "see that it is there" }
[[turn.call]]
name = "git_commit"
arguments = { message = "Add adds", paths = ["calc.py"] }

[[turn]]
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "add adds" }
"""

COMMANDS = (
    ("--version",),
    ("--help",),
    ("tasks", "--help"),
    ("init",),
    ("review", "HEAD~1..HEAD", "--approve", "all", "--output-format", "stream-json"),
    ("run", "fix add", "--approve", "all"),
    ("tasks", "add", "Add tests"),
    ("tasks", "list"),
    ("tasks", "show", "T-1", "--json"),
    ("tasks", "show", "T-99"),
    ("sessions", "list", "--json"),
    ("proposals", "list"),
    ("journal", "verify"),
)
"""Commands of each kind: of what they print and how they end, nothing matters here."""


def run_session() -> None:
    """Run a session that reads, edits, runs a command, commits and finishes, and then the commands."""
    before = Path.cwd()
    on_term = signal.getsignal(signal.SIGTERM)
    with tempfile.TemporaryDirectory(prefix="warm-session-") as folder:
        root = _prepare(Path(folder))
        asyncio.run(_run_session(Path(folder), root))
        os.chdir(root)
        try:
            for words in COMMANDS:
                _run_command(words, Path(folder))
        finally:
            os.chdir(before)
            signal.signal(signal.SIGTERM, on_term)


def _prepare(folder: Path) -> Path:
    """Make the project, and leave the environment as one of no user."""
    root = folder / "calc"
    root.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    # Every process has an environment of its own.
    os.environ.update(
        HOME=str(folder),
        COCKPIT_STATE_DIR=str(folder / "state"),
        COCKPIT_CONFIG_DIR=str(folder / "user"),
        COCKPIT_MODEL=f"script:{folder / 'scenario.toml'}",
    )
    who = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for text in ("def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"):
        (root / "calc.py").write_text(text, encoding="utf-8")
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        subprocess.run(["git", *who, "commit", "-q", "-m", "Add calc"], cwd=root, check=True)
    return root


def _run_command(words: tuple[str, ...], folder: Path) -> None:
    with (
        open(folder / "printed", "a", encoding="utf-8") as printed,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        contextlib.suppress(SystemExit),
    ):
        print(words, cli.main(list(words)))


async def _run_session(folder: Path, root: Path) -> None:
    settings = RuntimeSettings(user_dir=folder / "user")
    async with open_runtime(locate_project(root), settings) as runtime:
        session_id = await runtime.start(
            "fix add", model=f"script:{folder / 'scenario.toml'}", policy="all", interactive=False
        )
        ended = await runtime.run(session_id)
        assert ended.status == "completed", (ended.status, ended.result)
