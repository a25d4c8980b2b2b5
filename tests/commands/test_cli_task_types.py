"""Task types from the command line: their context is read before the first model call, all of it."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cli_world import Project, approving
from loop.intake.gh_standin import GhStandIn
from state_for_tests import state_of

pytestmark = pytest.mark.slow

ENDS = """
[[turn]]
text = "I have what I need."
[[turn.call]]
name = "finish"
arguments = { status = "blocked", summary = "Only looking." }
"""
ISSUE = {
    "number": 7,
    "title": "Areas are wrong",
    "body": "area(2, 3) gives 7.",
    "state": "OPEN",
    "author": {"login": "bob"},
    "labels": [],
    "url": "https://github.com/acme/api/issues/7",
    "comments": [],
}
ISSUE_FIELDS = "number,title,body,state,author,labels,url,comments"
OPEN_ISSUES = "issue list --state open --limit 100 --json number,title,labels,url"


@pytest.fixture
def gh(project: Project, tmp_path: Path) -> GhStandIn:
    """A ``gh`` on PATH that knows issue 7 of this project on GitHub."""
    project.git("remote", "add", "origin", "https://github.com/acme/api.git")
    standin = GhStandIn(tmp_path / "bin", {})
    standin.answer("issue view 7 --json body,comments --repo acme/api", json.dumps(ISSUE))
    standin.answer(f"issue view 7 --json {ISSUE_FIELDS} --repo acme/api", json.dumps(ISSUE))
    standin.answer(f"{OPEN_ISSUES} --repo acme/api", '[{"number":7,"title":"Areas are wrong"}]\n')
    project.extra["PATH"] = f"{standin.directory}{os.pathsep}{os.environ['PATH']}"
    return standin


def run(project: Project, task: str, *more: str, script: str = ENDS, expect: int = 1) -> Any:
    words = ["run", task, "--model", project.script(script), *more]
    return project.json(*words, "--output-format", "json", expect=expect)


def fetched(project: Project) -> dict[str, int]:
    """What the journal says was fetched beside the frame: tokens by item, without refused and failed ones."""
    rows = [
        json.loads(line) for line in project.run("journal", "--all", "--json").stdout.splitlines()
    ]
    return {
        item["item"]: item["tokens"]
        for row in rows
        if row["action"] == "context.fetched"
        for item in row["detail"]["items"]
        if not item["error"] and item["item"] != "frame"
    }


def texts(project: Project) -> str:
    """Every fact of the project's sessions, as the store has it."""
    with sqlite3.connect(state_of(project.root) / "cockpit.db") as connection:
        rows = connection.execute("SELECT normalized_json FROM observed_facts").fetchall()
    return "\n".join(row[0] for row in rows)


def test_create_pr_starts_from_what_the_branch_changes(project: Project) -> None:
    document = run(project, "/create-pr")
    assert set(fetched(project)) == {"log:main..HEAD", "diff:main...HEAD"}
    assert "**Branch:** feature, into main" in texts(project)
    assert document["task_type"] == "create_pr"
    project.git("switch", "--quiet", "main")
    done = project.run("run", "/create-pr", "--model", project.script(ENDS), expect=2)
    assert "You are on main" in done.stderr


OPENS = """
[[turn]]
text = "The branch is ready."
[[turn.call]]
name = "github"
arguments = { command = "gh pr create --title 'Areas have a factor' --body 'For boxes.'" }
[[turn]]
when = { called = ["github"] }
text = "It is open."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Opened." }
"""


def test_create_pr_pushes_the_branch_and_opens_the_pull_request(
    project: Project, gh: GhStandIn, tmp_path: Path
) -> None:
    project.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    project.git("config", "remote.origin.pushurl", str(tmp_path / "remote.git"))
    hook = project.root / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch pushed\n")
    hook.chmod(0o755)
    creation = "pr create --title Areas have a factor --head feature --base main --body-file -"
    gh.answer(creation, "https://github.com/acme/api/pull/9\n")
    with approving(project) as shown:
        rows = project.rows("run", "/create-pr", "--model", project.script(OPENS))
    (proposal,) = shown
    assert proposal.title == "gh pr create"
    pushed = f"feature to origin (a new branch, at {tip(project)[:10]})"
    assert ["push", pushed] in proposal.body["fields"]
    assert "pre-push hook runs" in json.dumps(proposal.body["notes"])
    assert (project.root / "pushed").exists()
    assert project.git("ls-remote", str(tmp_path / "remote.git"), "feature").split()[0] == tip(
        project
    )
    assert creation.split()[:2] in [call[:2] for call in gh.calls()]
    assert "pull/9" in json.dumps([row for row in rows if row["action"].startswith("action.")])


def tip(project: Project) -> str:
    return project.git("rev-parse", "feature").strip()


READS_THEN_SAYS_FIXED = """
[[turn]]
text = "I look."
[[turn.call]]
name = "request_context"
arguments = { purpose = "look", question = "what?", scope = ["file:shapes.py"] }
[[turn]]
when = { called = ["request_context"] }
text = "All is well."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Fixed." }
"""
FIXES = READS_THEN_SAYS_FIXED.replace(
    'text = "All is well."',
    """text = "I mend it."
[[turn.call]]
name = "edit_file"
arguments = { path = "shapes.py", old = "a * b * c", new = "a * c * b" }
[[turn]]
when = { called = ["edit_file"] }
text = "Done." """,
)


@pytest.fixture
def bug(project: Project) -> str:
    """A task of the backlog whose title reads like a question."""
    words = ["tasks", "add", "Why are areas wrong?", "--type", "bug"]
    return str(project.json(*words, "--description", "See @room.py.", "--json")["id"])


MIGRATION = """+++
name = "migration"
deterministic = ["file:shapes.py"]
dod = ["**Reversible**: it can be taken back"]
+++
"""


def test_an_issue_is_read_first_and_nothing_starts_without_it(
    project: Project, gh: GhStandIn
) -> None:
    script = project.script(ENDS)
    done = project.run("run", "/fix-issue 8", "--model", script, expect=2)
    assert "/fix-issue starts from issue:8, which cannot be read" in done.stderr
    wrong = project.run("run", "/fix-issue soon", "--model", script, expect=2)
    assert "/fix-issue needs an issue" in wrong.stderr
    assert project.json("sessions", "--json") == []
    document = run(project, "/fix-issue 7")
    assert document["task_type"] == "fix_issue"
    assert fetched(project)["issue:7"] > 0
    assert "area(2, 3) gives 7." in texts(project)
    run(project, "/bug #7 and #9 break @shapes.py, says @nobody")
    assert set(fetched(project)) == {"issue:7", "file:shapes.py"}
    assert "issue:9 was not read" in project.run("sessions", "last").stdout
    (project.root / ".github").mkdir()
    (project.root / ".github" / "ISSUE_TEMPLATE.md").write_text("Steps:\n", encoding="utf-8")
    run(project, "/create-issue areas are wrong")
    assert {f"gh:{OPEN_ISSUES}", "file:.github/ISSUE_TEMPLATE.md"} <= set(fetched(project))


def test_a_type_of_a_file_is_a_type_of_the_backlog(project: Project) -> None:
    """From wherever tasks come, and no other word is; its policy is that of its sessions."""
    refused = project.run("tasks", "add", "Move areas", "--type", "migration", expect=2)
    assert "it can be feature, bug," in refused.stderr
    assert "A file in .cockpit/task-types adds a type" in refused.stderr
    folders = project.root / ".cockpit" / "task-types", project.config / "task-types"
    for folder, name in zip(folders, ("migration", "rehearsal"), strict=True):
        folder.mkdir(parents=True)
        (folder / f"{name}.md").write_text(MIGRATION.replace("migration", name))
    project.run("tasks", "add", "Move areas", "--type", "migration")
    project.run("tasks", "add", "Move rooms")
    project.run("tasks", "edit", "T-2", "--type", "rehearsal")
    line = json.dumps({"kind": "task", "id": "T-3", "title": "Third", "task_type": "migration"})
    project.run("tasks", "import", "-", stdin=line)
    plan = "# Move [P1]\n\n- [ ] Move doors [migration, 2h]\n- [ ] Tell users\n  Type: rehearsal\n"
    planned = project.json("plan", "--json", "--", plan)
    shown = ("--shown", planned["shown_digest"])
    project.run("proposals", "approve", planned["proposal_id"], *shown)
    listed = project.json("tasks", "--fields", "standard", "--json")
    types = {task["id"]: task["type"] for task in listed}
    assert types == {
        **dict.fromkeys(("T-1", "T-3", "T-4"), "migration"),
        **dict.fromkeys(("T-2", "T-5"), "rehearsal"),
    }
    document = run(project, "", "--task", "T-1", "--approve", "all")
    assert document["task_type"] == "migration"
    assert "file:shapes.py" in fetched(project) and "**Reversible**" in texts(project)
    # Without its file the tasks stay, and so does their type; new ones cannot have it.
    (folders[0] / "migration.md").unlink()
    project.run("tasks", "edit", "T-3", "--type", "migration", "--estimate", "2")
    project.run("tasks", "add", "More", "--type", "migration", expect=2)


def test_a_type_s_policy_is_that_of_its_sessions(project: Project) -> None:
    folder = project.config / "task-types"
    folder.mkdir(parents=True)
    (folder / "implement.md").write_text('+++\nname = "implement"\npolicy = "reads"\n+++\n')
    looks = READS_THEN_SAYS_FIXED
    document = run(project, "implement it", script=looks, expect=0)
    assert [each["decided_by"] for each in document["proposals"]] == ["policy:reads"]
    words = ["--approve", "ask", "--deadline", "1"]
    document = run(project, "implement it", *words, script=looks, expect=4)
    assert [each["status"] for each in document["proposals"]] == ["expired"]


def test_a_session_for_a_task_has_its_type_and_ends_it(project: Project, bug: str) -> None:
    """Fixed without a change blocks the task; with one it is done."""
    document = run(project, "", "--task", bug, "--approve", "all", script=READS_THEN_SAYS_FIXED)
    assert (document["task_type"], document["result"]["status"]) == ("bug", "blocked")
    task = project.json("tasks", bug, "--fields", "full", "--json")
    assert task["status"] == "blocked" and "Nothing was changed" in task["blocker"]
    assert project.json("tasks", "handoff", bug, "--json")["status"] == "BLOCKED"
    project.run("tasks", "move", bug, "unblocked")
    run(project, "", "--task", bug, "--approve", "all", script=FIXES, expect=0)
    assert "**Siblings**" in texts(project) and "file:room.py" in fetched(project)
    assert project.json("tasks", bug, "--json")["status"] == "done"
    handoff = project.json("tasks", "handoff", bug, "--json")
    assert (handoff["status"], handoff["summary"]) == ("PASS", "Fixed.")
    assert handoff["files_changed"] == ["shapes.py"]


CHANGES_TYPE = """
[[turn]]
text = "area multiplies by c. I can fix it now."
[[turn.call]]
name = "change_task_type"
arguments = { task_type = "implement", reason = "You asked for the fix itself." }
"""


def test_an_investigation_becomes_a_change_as_its_first_action_would_pass(project: Project) -> None:
    ends = ENDS.replace("[[turn]]", "[[turn]]\nwhen = { called = ['change_task_type'] }")
    script = project.script(CHANGES_TYPE + ends)
    words = ("run", "why are areas wrong?", "--model", script, "--approve")
    with approving(project) as shown:
        rows = project.rows(*words, "reads", expect=1)
    assert [each.title for each in shown] == ["become implement (from investigate)"]
    assert "this session's task type is implement from now on" in texts(project)
    assert "**All green**" in texts(project)
    rows += project.rows(*words, "all", expect=1)
    changed = [row for row in rows if row["action"] == "session.changed"]
    assert [(row["actor"], row["detail"]["task_type"]) for row in changed] == [
        ("person", "implement"),
        ("policy:all", "implement"),
    ]


def test_rules_of_the_project_and_a_type_that_cannot_be_used(
    project: Project, tmp_path: Path
) -> None:
    """Rules are read through a link, not out of the project; a wrong type disables itself alone."""
    (project.root / "CLAUDE.md").write_text("Use tabs.\n")
    (project.root / "AGENTS.md").symlink_to("CLAUDE.md")
    project.run("init")
    folder = project.root / ".cockpit" / "task-types"
    folder.mkdir(parents=True)
    (folder / "audit.md").write_text('+++\nname = "audit"\ncolour = ["x"]\n+++\n')
    run(project, "implement it")
    assert "From the project's AGENTS.md." in texts(project) and "Use tabs." in texts(project)
    assert ".cockpit/context.md" not in texts(project)
    story = project.run("sessions", "last").stdout
    assert "Not used: task type audit.md (project layer): unknown field `colour`" in story
    done = project.run("run", "/audit", "--model", project.script(ENDS), expect=2)
    assert "There is no command /audit" in done.stderr and "unknown field `colour`" in done.stderr
    (tmp_path / "outside.md").write_text("Be sly.\n")
    (project.root / "AGENTS.md").unlink()
    (project.root / "AGENTS.md").symlink_to(tmp_path / "outside.md")
    run(project, "implement it again")
    assert "Be sly." not in texts(project)
    checks = {check["name"]: check for check in project.json("doctor", "--json", expect=1)}
    assert "leads out of the project" in checks["AGENTS.md"]["found"]
    assert "unknown field `colour`" in checks["task types"]["found"]
