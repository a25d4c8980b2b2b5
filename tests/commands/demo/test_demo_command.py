"""``cockpit demo`` as a person or a pipeline starts it, without a terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import run_cockpit
from commands.demo.demo_world import MAIN, PATIENCE_S, bare_environment, git

from cockpit.commands.demo.demo_guide import BUG_WORDS, LINES, Guide
from cockpit.commands.demo.demo_headless import POLICY
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals, sessions

pytestmark = pytest.mark.slow


def demo(*words: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_cockpit.run(("demo", *words), cwd=cwd, env=env, patience_s=PATIENCE_S)


def test_the_sample_the_report_and_the_guide(tmp_path: Path) -> None:
    """One demo, run where a key and a wide policy are set and the folder has something in it first."""
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "mine.txt").write_text("mine")
    env = bare_environment(tmp_path / "home", OPENAI_API_KEY="none", ANTHROPIC_API_KEY="none")
    config = tmp_path / "home" / "cockpit"
    config.mkdir()
    (config / "config.toml").write_text('[approval]\npolicy = "all"\n')
    refused = demo("--dir", "sample", env=env, cwd=tmp_path)
    assert refused.returncode == 1 and "is not empty" in refused.stderr
    done = demo(env={**env, "TMPDIR": str(tmp_path)}, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (root,) = tmp_path.glob("cockpit-demo-*")
    told, said = done.stdout, done.stderr
    assert git(root, "rev-list", "--count", f"{MAIN}..main") == "1"
    assert git(root, "rev-parse", "main") in told
    (review,) = (root / ".cockpit" / "reviews").iterdir()
    for words in ("parcel/cli.py:38", "`except:`", "parcel/client.py:43"):
        assert words in review.read_text()
    assert told.index("1 of 2") < told.index(BUG_WORDS) < told.index("── Report")
    assert "exit 1: 26 passed, 1 failed, 1 error" in told
    assert f"cd {root}" in said and "cockpit review BRANCH" in said
    assert "\x1b" not in told + said
    assert "I left out `file:tests/test_client.py`" in told
    report = told.partition("── Report ")[2]
    assert "Ran 28 tests" in report and "9 of 9 the same, byte for byte" in report
    with Store.open(locate_project(root).database) as store:
        both = store.read_now(sessions.select_recent)
        assert {session.task_type for session in both} == {"review_pr", "bug"}
        rows = store.read_now(lambda c: journal.rows(c, limit=5_000))
        for session in both:
            for one in store.read_now(
                lambda c, s=session: proposals.select_for_session(c, s.session_id)
            ):
                assert one.decided_by == POLICY
    guide = Guide()
    steps = [step for row in rows if (step := guide.line(row)) is not None]
    review_steps = ("context", "context.again", "write_file", "completed")
    bug_steps = ("context", "edit_file", "run", "git_commit", "completed")
    names = [f"review.{step}" for step in review_steps] + [f"bug.{step}" for step in bug_steps]
    assert steps == [(name, LINES[name]) for name in names]
