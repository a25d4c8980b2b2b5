"""The other commands, run as processes in a real project."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from cli_world import PATIENCE_S, Project, make_branches
from copied_repository import copy_repository
from state_for_tests import copy_project, state_of

from cockpit import __version__

pytestmark = pytest.mark.slow

REVIEW = "review main..feature"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ended")
    project = Project(copy_repository(make_branches, folder / "project"), folder / "config")
    project.run("run", REVIEW, "--model", project.script(), "--approve", "all")
    return project.root


@pytest.fixture
def played(ended: Path, tmp_path: Path) -> Project:
    """A project in which a session of three waves has ended."""
    copy_project(ended, tmp_path / "project")
    return Project(tmp_path / "project", tmp_path / "config")


def database(project: Project) -> Path:
    return state_of(project.root) / "cockpit.db"


def test_the_journal_is_followed_from_another_process(project: Project) -> None:
    words = ("run", REVIEW, "--model", project.script(), "--approve", "all")
    project.run(*words)
    follower = project.start("journal", "--follow", "--json", "-n", "1")
    assert follower.stdout is not None
    first = json.loads(follower.stdout.readline())
    assert first["action"] == "session.completed"
    rows = project.rows(*words)
    seen = [first]
    while seen[-1]["seq"] < rows[-1]["seq"]:
        seen.append(json.loads(follower.stdout.readline()))
    sealed = [row for row in seen[1:] if row["session_id"] and row["digest"]]
    assert sealed == [row for row in rows if row["digest"]]
    follower.send_signal(signal.SIGINT)
    assert follower.communicate(timeout=PATIENCE_S)[1].strip() == ""
    assert follower.returncode == 130


def test_a_tampered_row_is_found(played: Project) -> None:
    assert "each follows from the one before" in played.run("debug", "journal").stdout
    with sqlite3.connect(database(played)) as connection:
        connection.execute("UPDATE journal SET actor='nobody' WHERE seq=9")
    connection.close()
    verdict = played.json("debug", "journal", "--json", expect=1)
    assert (verdict["ok"], verdict["broken_at"]) == (False, 9)
    checks = {check["name"]: check for check in played.json("doctor", "--json", expect=1)}
    assert checks["journal"]["state"] == "broken"


def test_init_writes_templates_and_overwrites_nothing(project: Project) -> None:
    written = project.run("init").stderr
    assert [Path(line.split()[1]).name for line in written.splitlines()] == [
        "config.toml",
        "context.md",
    ]
    config = project.root / ".cockpit" / "config.toml"
    assert set(tomllib.loads(config.read_text(encoding="utf-8"))) >= {"model", "approval", "limits"}
    config.write_text("[limits]\nmax_waves = 3\n", encoding="utf-8")
    assert project.run("init").stderr.count("it exists") == 2
    assert config.read_text(encoding="utf-8") == "[limits]\nmax_waves = 3\n"


def test_doctor_says_what_is_missing_and_how_to_mend_it(played: Project) -> None:
    played.extra["ANTHROPIC_API_KEY"] = "sk-ant-api03-not-to-be-shown"
    done = played.run("doctor")
    assert "sk-ant" not in done.stdout + done.stderr
    database(played).chmod(0o644)
    checks = {check["name"]: check for check in played.json("doctor", "--json", expect=1)}
    assert checks["privacy"]["mend"].startswith("chmod 600"), "others may read the store"
    assert set(checks) >= {"git", "project", "settings", "keys", "model", "gh", "sandbox", "store"}
    assert checks["keys"]["found"] == "ANTHROPIC_API_KEY"
    assert all(check["mend"] for check in checks.values() if check["state"] != "ok")
    assert all(word in done.stdout for word in ("✔ git", "✔ store", "✔ journal"))


def test_a_project_without_git_has_sessions_too(project: Project, tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    project.root = loose
    model = project.script(
        '[[turn]]\ntext = "Nothing to see."\n[[turn.call]]\nname = "finish"\n'
        'arguments = { status = "done", summary = "Nothing to see." }\n'
    )
    document = project.json("run", "investigate", "--model", model, "--output-format", "json")
    assert document["status"] == "completed"
    assert (state_of(loose) / "cockpit.db").stat().st_mode & 0o777 == 0o600


def test_a_linked_worktree_shares_the_store(played: Project, tmp_path: Path) -> None:
    played.git("worktree", "add", "--quiet", str(tmp_path / "tree"), "main")
    played.root = tmp_path / "tree"
    assert len(played.json("sessions", "--json")) == 1
    assert not (played.root / ".cockpit").exists()
    # Nothing of it is committed from there: no state is in a checkout, and the first review is ignored.
    (played.root / "extra.py").write_text("def f(x=[]):\n    return x\n", encoding="utf-8")
    played.git("add", "--all")
    played.git("commit", "--quiet", "-m", "Extra")
    played.run("review", "HEAD~1..HEAD", "--model", "offline", "--approve", "all")
    assert list((played.root / ".cockpit" / "reviews").iterdir())
    assert not (played.root / ".cockpit" / "state").exists()
    assert played.git("status", "--porcelain", "--untracked-files=all") == ""


def test_version_help_and_the_newest_rows(played: Project) -> None:
    assert played.run("--version").stdout == f"cockpit {__version__}\n"
    help_text = played.run("-h").stdout
    assert "proposals" in help_text and "Enter approves" in help_text
    newest = played.run("journal", "-n", "2", "--session", "last").stdout.splitlines()
    more = played.run("journal", "-n", "20", "--session", "last").stdout.splitlines()
    assert "session.completed" in newest[1]
    assert (len(newest), newest) == (2, more[-2:])
    assert any("wave.completed" in line for line in more)
    assert played.run("journal", "-n", "0").stdout == ""
    (session,) = played.json("sessions", "--json")
    assert session["session_id"] in played.run("sessions").stdout
    document = played.json("sessions", session["session_id"][:5], "--json")
    assert (document["session_id"], session["status"]) == (session["session_id"], "completed")
    played.run("sessions", "s-none", expect=2)


def test_packets_are_shown_explained_verified_and_compared(played: Project) -> None:
    listed = played.json("packet", "--json")
    assert [packet["wave_id"].rpartition("-w")[2] for packet in listed] == ["1", "2", "3"]
    whole = played.json("packet", "2", "--json")
    assert whole["digest"] == listed[1]["digest"]
    facts = played.json("debug", "packet", "explain", "--wave", "2", "--json")
    kept = [fact for fact in facts if fact["verdict"] != "dropped"]
    assert len(kept) == listed[1]["facts"]
    around = sum(whole["rendering"][part] for part in ("tools", "answer", "frames", "margin"))
    assert sum(fact["tokens"] for fact in kept) + around == listed[1]["token_used"]
    prompt = played.json("packet", "2", "--prompt", "--json")
    assert prompt["as_sent"]
    assert prompt["rendered_tokens"] == listed[1]["rendered_tokens"] < listed[1]["token_used"]
    assert "def area" in json.dumps(prompt["messages"])
    changes = played.json("debug", "packet", "diff", "--wave", "2", "--json")
    added = {change["source_ref"] for change in changes if change["change"] == "added"}
    assert {"file:room.py", "file:shapes.py"} <= added
    for words in (
        ("packet",),
        ("packet", "last", "--prompt"),
        ("debug", "packet", "explain"),
        ("debug", "packet", "diff"),
    ):
        assert played.run(*words).stdout
    for words in (
        ("packet", "9"),
        ("debug", "packet", "diff", "--wave", "1"),
        ("debug", "packet", "explain", "--session", "none"),
    ):
        played.run(*words, expect=2)


def test_every_packet_is_verified_and_a_changed_fact_is_told(played: Project) -> None:
    played.run("run", REVIEW, "--model", "offline", "--approve", "all")
    listed = played.json("sessions", "--json")
    verified = played.json("debug", "packet", "verify", "--all", "--json")
    assert all(one["ok"] for one in verified)
    by_session = {one["wave_id"].rpartition("-w")[0] for one in verified}
    assert by_session == {session["session_id"] for session in listed} and len(listed) == 2
    exported = played.run("journal", "--all", "--json").stdout
    assert exported.count("orientation.packet.replay_verified") == len(verified)
    played.run("debug", "packet", "verify", "--all", "--wave", "1", expect=2)
    with closing(sqlite3.connect(database(played))) as connection, connection:
        connection.execute("UPDATE session_facts SET utility=1, cost_full=cost_full+1")
    (outcome,) = played.json("debug", "packet", "verify", "--wave", "2", "--json", expect=1)
    assert outcome["ok"] is False
    whole = played.json("debug", "packet", "verify", "--all", "--json", expect=1)
    assert [one["ok"] for one in whole].count(False) == len(whole)


def test_list_and_show_may_stand_before_what_they_mean(project: Project) -> None:
    project.run("tasks", "add", "Fix add")
    assert project.json("tasks", "list", "--json") == project.json("tasks", "--json")
    assert project.json("tasks", "show", "T-1", "--json") == project.json("tasks", "T-1", "--json")


def test_profiles_before_and_after_the_first_session(project: Project) -> None:
    before = project.json("profile", "current", "--json")
    assert project.json("profile", "--json") == []
    project.run("run", REVIEW, "--model", "offline", "--approve", "all")
    assert project.json("profile", "current", "--json")["digest"] == before["digest"]
    assert [one["version"] for one in project.json("profile", "--json")] == [1]
    assert "situational" in project.run("profile", "current").stdout
    project.run("profile", "current", "none", expect=2)
    project.run("profile", "9", expect=2)


def test_a_damaged_or_newer_store_is_told_in_a_sentence(project: Project) -> None:
    project.run("tasks", "add", "One")
    with closing(sqlite3.connect(database(project))) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES ('9999_future', 'x', 'x')")
    done = project.run("proposals", expect=1)
    assert "written by a newer cockpit (it has 9999_future)" in done.stderr
    for content in (b"not a database at all" * 100, b"SQLite format 3\0" * 90):
        for path in database(project).parent.glob("cockpit.db*"):
            path.unlink()
        database(project).write_bytes(content)
        done = project.run("sessions", expect=1)
        assert "is damaged or not a cockpit database" in done.stderr
        assert done.stderr.count("\n") == 1


def test_retention_prunes_the_journal_too_and_everything_still_answers(played: Project) -> None:
    assert "[retention]" in played.run("prune", expect=2).stderr
    metrics = played.run("debug", "show", "metrics").stdout
    rows = played.json("debug", "journal", "--json")["rows"]
    done = played.json("prune", "--older-than", "2999-01-01", "--journal", "--json")
    assert done["jobs"] >= 2 and done["journal_rows"] > rows / 2
    verdict = played.json("debug", "journal", "--json")
    assert verdict["ok"] and verdict["pruned_until"] >= rows
    assert played.run("debug", "show", "metrics").stdout == metrics
    assert "journal.pruned" in played.run("journal").stdout
    played.run("sessions", "last")
    refused = played.run("run", "--continue", "last", "and now?", expect=1).stderr
    assert "cockpit prune --restore ARCHIVE" in refused and "Resume with" not in refused
    archive = next((state_of(played.root) / "archive").glob("journal-*"))
    assert "not put back" in played.run("prune", "--restore", str(archive), expect=1).stderr
    # Work goes on where the journal continues, under the user's settings and not the project's.
    played.config.mkdir(exist_ok=True)
    settings = "[retention]\nsessions_days = 30\njournal_days = 30\n"
    (played.config / "config.toml").write_text(settings)
    assert played.json("prune", "--json")["journal_rows"] == 0
    (played.root / ".cockpit").mkdir(exist_ok=True)
    (played.root / ".cockpit" / "config.toml").write_text("[retention]\njournal_days = 1\n")
    assert "how long your records" in played.run("prune", expect=2).stderr


def test_a_dry_run_of_work_refuses_what_the_work_would(project: Project, tmp_path: Path) -> None:
    words = ("work", "--dry-run", "--epic", "E-1")
    project.run("tasks", "add", "Nothing in it", "--kind", "epic")
    assert "E-9" in project.run("work", "--dry-run", "--epic", "E-9", expect=2).stderr
    assert "No open task" in project.run(*words, expect=2).stderr
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    project.extra["PATH"] = str(tmp_path)  # without bubblewrap
    assert "Nothing was started" in project.run(*words, "--approve", "all", expect=3).stderr
    project.run(*words, "--approve", "all", "--no-sandbox", expect=2)
