"""``cockpit demo`` as a person or a pipeline starts it, without a terminal."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import run_cockpit
from commands.demo.demo_world import MAIN, PATIENCE_S, bare_environment, git, unittest
from state_for_tests import state_of

from cockpit.commands.demo.demo_guide import BUG_WORDS, DISCUSS_WORDS, LINES, Guide
from cockpit.commands.demo.demo_policy import NAME as POLICY
from cockpit.core.project_paths import locate_project
from cockpit.store.context import packets
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals, sessions

pytestmark = pytest.mark.slow


def demo(*words: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_cockpit.run(("demo", *words), cwd=cwd, env=env, patience_s=PATIENCE_S)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """(the sample, stdout, stderr) of one demo, run where a key and a wide policy are set."""
    folder = tmp_path_factory.mktemp("played")
    env = bare_environment(folder / "home", OPENAI_API_KEY="none", ANTHROPIC_API_KEY="none")
    config = folder / "home" / "cockpit"
    config.mkdir()
    (config / "config.toml").write_text('[approval]\npolicy = "all"\n')
    done = demo("--dir", "sample", env=env, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "sample", done.stdout, done.stderr


def test_the_sample_holds_the_commit_and_its_tests_pass(played: tuple[Path, str, str]) -> None:
    root, told, _ = played
    assert git(root, "rev-list", "--count", f"{MAIN}..main") == "1"
    assert git(root, "rev-parse", "main") in told
    assert unittest(root).returncode == 0
    (review,) = (root / ".cockpit" / "reviews").iterdir()
    words = review.read_text()
    assert "parcel/cli.py:38" in words, "the caller of what was renamed"
    assert "`except:`" in words
    assert "parcel/client.py:43" in words, "the mutable default"


def test_the_report_names_all_that_happened(played: tuple[Path, str, str]) -> None:
    root, told, _ = played
    report = told.partition("── Report ")[2]
    with Store.open(locate_project(root).database) as store:
        both = store.read_now(sessions.select_recent)
        assert {session.task_type for session in both} == {"review_pr", "bug"}
        assert {session.model for session in both} == {
            "offline",
            f"script:{state_of(root)}/bug.toml",
        }
        for session in both:
            assert session.session_id in report
            for stored in store.read_now(
                lambda c, s=session: packets.select_for_session(c, s.session_id)
            ):
                assert stored.digest[:16] in report
            for one in store.read_now(
                lambda c, s=session: proposals.select_for_session(c, s.session_id)
            ):
                assert one.decided_by == POLICY
                assert re.search(rf"{one.proposal_id} .*\n +{one.status} by {POLICY}", report)
            (receipts,) = store.read_now(
                lambda c, s=session: (
                    c.execute(
                        "SELECT receipt_id FROM action_receipts JOIN outbox_actions"
                        " USING (action_id) WHERE session_id=?",
                        (s.session_id,),
                    ).fetchall(),
                )
            )
            assert receipts
            assert all(identity in report for (identity,) in receipts)
    assert f"discussed by {POLICY}: “{DISCUSS_WORDS}”" in report
    assert "Ran 28 tests" in report
    assert "9 of 9 the same, byte for byte" in report
    assert "− file:tests/test_client.py" in report, "what the narrower request left out"


def test_it_is_told_as_it_goes_and_says_what_to_do_next(played: tuple[Path, str, str]) -> None:
    root, told, said = played
    assert told.index("1 of 2") < told.index(BUG_WORDS) < told.index("── Report")
    assert "exit 1: 26 passed, 1 failed, 1 error" in told
    assert f"cd {root}" in said
    assert "cockpit review main..HEAD" in said
    assert "\x1b" not in told + said


def test_the_guide_would_have_led_the_same_way(played: tuple[Path, str, str]) -> None:
    root, _, _ = played
    with Store.open(locate_project(root).database) as store:
        rows = store.read_now(lambda c: journal.rows(c, limit=5_000))
    guide = Guide()
    steps = [step for row in rows if (step := guide.line(row)) is not None]
    assert [name for name, _ in steps] == [
        "review.context",
        "review.context.again",
        "review.write_file",
        "review.completed",
        "bug.context",
        "bug.edit_file",
        "bug.run",
        "bug.git_commit",
        "bug.completed",
    ]
    assert [words for _, words in steps] == [LINES[name] for name, _ in steps]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = demo("--dir", str(tmp_path), env=bare_environment(tmp_path.parent / "h"), cwd=tmp_path)
    assert done.returncode == 1
    assert "is not empty" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_without_a_folder_it_makes_one_and_keeps_it(tmp_path: Path) -> None:
    env = bare_environment(tmp_path / "home", TMPDIR=str(tmp_path))
    done = demo(env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (root,) = tmp_path.glob("cockpit-demo-*")
    assert str(root) in done.stderr
    assert git(root, "rev-list", "--count", f"{MAIN}..main") == "1"
