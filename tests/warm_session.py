"""One whole session, run in the warm server before it forks: what a process works out once is there then.

Among it: which sandbox works on this machine (two programs), the built-in task types and roles, readers of
the journal's details, patterns. None of it comes from an environment or a project.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

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


def run_session() -> None:
    """Run a session that reads, edits, runs a command, commits and finishes."""
    with tempfile.TemporaryDirectory(prefix="warm-session-") as folder:
        asyncio.run(_run_session(Path(folder)))


async def _run_session(folder: Path) -> None:
    root = folder / "calc"
    root.mkdir()
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n", encoding="utf-8")
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    os.environ["COCKPIT_STATE_DIR"] = str(
        folder / "state"
    )  # every process has an environment of its own
    who = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "Add calc")):
        subprocess.run(["git", *words], cwd=root, check=True)
    settings = RuntimeSettings(user_dir=folder / "user")
    async with open_runtime(locate_project(root), settings) as runtime:
        session_id = await runtime.start(
            "fix add", model=f"script:{folder / 'scenario.toml'}", policy="all", interactive=False
        )
        ended = await runtime.run(session_id)
        assert ended.status == "completed", (ended.status, ended.result)
