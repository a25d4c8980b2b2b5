"""However a session is ended from outside: it says so, loses nothing, and goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import run_cockpit
from commands.cli_world import COLD, PATIENCE_S, Project

pytestmark = pytest.mark.slow

SPEECH = """
[[turn]]
pace = 0.5
text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Notes\\n" }
[[turn]]
when = { contains = ["was interrupted"] }
text = "I begin again."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Notes\\n" }
[[turn]]
when = { called = ["write_file"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Notes written." }
"""


def test_interrupted_while_the_model_speaks_the_work_is_done_on_continuing(
    project: Project, watched: Any
) -> None:
    run = watched("run", "fix the notes", "--model", project.script(SPEECH), "--approve", "all")
    run.until("message.delta")
    run.process.send_signal(signal.SIGHUP)
    assert run.end() == 130
    session = run.rows[0]["session_id"]
    assert f"cockpit run --continue {session}" in run.errors()
    assert not (project.root / "notes.md").exists()
    document = project.json("run", "--continue", session, "--output-format", "json")
    assert document["result"] == {"status": "done", "summary": "Notes written."}
    assert (project.root / "notes.md").read_text("utf-8") == "# Notes\n"
    project.run("debug", "journal")


def test_a_signal_while_the_program_loads_ends_it_without_a_traceback(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "click.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", "utf-8"
    )
    project.extra["PYTHONPATH"] = str(tmp_path / "early")
    done = subprocess.run(
        [*COLD, "sessions"], cwd=project.root, env=project.env, capture_output=True
    )
    assert (done.returncode, done.stderr) == (130, b"")


def closed(project: Project, *words: str, keep: str) -> subprocess.CompletedProcess[str]:
    """Run ``cockpit`` with stdout or stderr closed from the start, as ``>&-`` does it."""
    shell = 'exec "$@" >&-' if keep == "stderr" else 'exec "$@" 2>&-'
    return subprocess.run(
        ["sh", "-c", shell, "sh", *COLD, *words],
        cwd=project.root,
        env=project.env,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
    )


def test_without_a_stdout_there_is_no_reader(project: Project) -> None:
    words = ["run", "fix it", "--model", project.script(), "--output-format", "stream-json"]
    done = closed(project, *words, "--approve", "all", keep="stderr")
    assert done.returncode == 141
    assert "cockpit:" not in done.stderr and "Traceback" not in done.stderr


def test_without_a_stderr_the_exit_code_still_tells(project: Project) -> None:
    assert closed(project, "review", "main..gone", keep="stdout").returncode == 2


def test_a_full_disk_under_stdout_is_told(project: Project) -> None:
    words = ["run", "fix it", "--model", project.script(), "--output-format", "stream-json"]
    with open("/dev/full", "w") as full:
        running = project.start(*words, "--approve", "all", stdout=full)
        _, told = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 4, "a fault that passes"
    assert "The output cannot be written: No space left on device." in told
    listed = project.json("sessions", "--json")
    assert [one["status"] for one in listed] in (["stopped"], ["completed"])
    project.run("debug", "journal")


def test_an_error_does_not_repeat_a_secret(project: Project) -> None:
    token = "ghp_" + "a1B2" * 9
    for words in (
        ["run", "hello", "--model", f"anthropic:{token}"],
        ["sessions", token],
        ["review", token],
    ):
        done = run_cockpit.run(words, cwd=project.root, env=project.env, patience_s=PATIENCE_S)
        assert done.returncode in (1, 2)
        assert token not in done.stderr
        assert "[masked:github-token]" in done.stderr
    assert json.loads(project.run("sessions", "--json").stdout) == []
