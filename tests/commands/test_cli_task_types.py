"""Task types from the command line: their context is read before the first model call, all of it."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cli_world import Project
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
    """What the journal says was fetched: tokens by item, refused and failed ones left out."""
    rows = [json.loads(line) for line in project.run("journal", "export").stdout.splitlines()]
    return {
        item["item"]: item["tokens"]
        for row in rows
        if row["action"] == "context.fetched"
        for item in row["detail"]["items"]
        if not item["error"]
    }


def texts(project: Project) -> str:
    """Every fact of the project's sessions, as the store has it."""
    with sqlite3.connect(state_of(project.root) / "cockpit.db") as connection:
        rows = connection.execute("SELECT normalized_json FROM observed_facts").fetchall()
    return "\n".join(row[0] for row in rows)


def test_fix_issue_starts_from_the_issue(project: Project, gh: GhStandIn) -> None:
    document = run(project, "/fix-issue 7")
    assert document["task_type"] == "fix_issue"
    assert fetched(project)["issue:7"] > 0
    assert "area(2, 3) gives 7." in texts(project)


def test_an_issue_that_cannot_be_read_starts_nothing(project: Project, gh: GhStandIn) -> None:
    done = project.run("run", "/fix-issue 8", "--model", project.script(ENDS), expect=2)
    assert "/fix-issue starts from issue:8, which cannot be read" in done.stderr
    assert project.json("sessions", "list", "--json") == []
    wrong = project.run("run", "/fix-issue soon", "--model", project.script(ENDS), expect=2)
    assert "/fix-issue needs an issue" in wrong.stderr


def test_what_the_task_names_is_read_and_the_rest_is_left_out(
    project: Project, gh: GhStandIn
) -> None:
    run(project, "/bug #7 and #9 break @shapes.py, says @nobody")
    read = fetched(project)
    assert set(read) == {"issue:7", "file:shapes.py"}
    assert all(read.values())
    assert "issue:9 was not read" in project.run("sessions", "show").stdout


def test_create_issue_looks_at_open_issues_first(project: Project, gh: GhStandIn) -> None:
    (project.root / ".github").mkdir()
    (project.root / ".github" / "ISSUE_TEMPLATE.md").write_text("Steps:\n", encoding="utf-8")
    run(project, "/create-issue areas are wrong")
    assert set(fetched(project)) == {
        "gh:issue list --state open --limit 100 --json number,title,labels,url",
        "file:.github/ISSUE_TEMPLATE.md",
    }


def test_create_pr_starts_from_what_the_branch_changes(project: Project) -> None:
    document = run(project, "/create-pr")
    assert set(fetched(project)) == {"log:main..HEAD", "diff:main...HEAD"}
    assert "**Branch:** feature, into main" in texts(project)
    assert document["task_type"] == "create_pr"
    project.git("switch", "--quiet", "main")
    done = project.run("run", "/create-pr", "--model", project.script(ENDS), expect=2)
    assert "You are on main" in done.stderr


def test_every_item_that_a_type_declares_is_read(project: Project) -> None:
    """A review's first message has the diff; whatever else its type declares is fetched besides."""
    folder = project.root / ".cockpit" / "task-types"
    folder.mkdir(parents=True)
    (folder / "audit.md").write_text(
        '+++\nname = "audit"\ndod = ["Said"]\n'
        'deterministic = ["diff:{range}", "tree:.", "?file:gone.md"]\n+++\n'
    )
    run(project, "/audit main..feature")
    read = fetched(project)
    assert set(read) == {"diff:main..feature", "tree:."}
    assert all(tokens > 0 for tokens in read.values())


READS_ON_GITHUB = """
[[turn]]
text = "What is open?"
[[turn.call]]
name = "github"
arguments = { command = "gh issue list --label 'good first'" }
[[turn]]
when = { called = ["github"] }
text = "Enough."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Seen." }
"""


def test_a_gh_command_that_reads_is_a_context_request(project: Project, gh: GhStandIn) -> None:
    gh.answer("issue list --label good first --repo acme/api", "7\tOPEN\tAreas are wrong\n")
    document = run(project, "implement it", "--approve", "reads", script=READS_ON_GITHUB, expect=0)
    assert [(each["kind"], each["status"]) for each in document["proposals"]] == [
        ("context", "approved")
    ]
    assert document["actions"] == []
    assert fetched(project)["gh:issue list --label 'good first'"] > 0


def test_an_invalid_type_disables_itself_and_not_every_run(project: Project) -> None:
    folder = project.root / ".cockpit" / "task-types"
    folder.mkdir(parents=True)
    (folder / "audit.md").write_text('+++\nname = "audit"\ncolour = ["x"]\n+++\n')
    run(project, "implement it")
    story = project.run("sessions", "show").stdout
    assert "Not used: task type audit.md (project layer): unknown field `colour`" in story
    done = project.run("run", "/audit", "--model", project.script(ENDS), expect=2)
    assert "There is no command /audit" in done.stderr
    assert "unknown field `colour`" in done.stderr
    checks = {check["name"]: check for check in project.json("doctor", "--json", expect=1)}
    assert "unknown field `colour`" in checks["task types"]["found"]


def test_a_type_s_policy_is_that_of_its_sessions(project: Project) -> None:
    folder = project.config / "task-types"
    folder.mkdir(parents=True)
    (folder / "implement.md").write_text('+++\nname = "implement"\npolicy = "reads"\n+++\n')
    asks = ENDS.replace('"finish"', '"request_context"').replace(
        '{ status = "blocked", summary = "Only looking." }',
        '{ purpose = "look", question = "what?", scope = ["file:room.py"] }',
    )
    script = asks + ENDS.replace("[[turn]]", "[[turn]]\nwhen = { called = ['request_context'] }")
    document = run(project, "implement it", script=script)
    assert [each["decided_by"] for each in document["proposals"]] == ["policy:reads"]
    words = ["--approve", "ask", "--deadline", "1"]
    document = run(project, "implement it", *words, script=script, expect=4)
    assert [each["status"] for each in document["proposals"]] == ["expired"]


def test_rules_are_read_through_a_link_and_a_fresh_template_says_nothing(
    project: Project, tmp_path: Path
) -> None:
    (project.root / "CLAUDE.md").write_text("Use tabs.\n")
    (project.root / "AGENTS.md").symlink_to("CLAUDE.md")
    project.run("init")
    run(project, "implement it")
    assert "From the project's AGENTS.md." in texts(project)
    assert "Use tabs." in texts(project)
    assert ".cockpit/context.md" not in texts(project)
    (tmp_path / "outside.md").write_text("Be sly.\n")
    (project.root / "AGENTS.md").unlink()
    (project.root / "AGENTS.md").symlink_to(tmp_path / "outside.md")
    run(project, "implement it again")
    assert "Be sly." not in texts(project)
    checks = {check["name"]: check for check in project.json("doctor", "--json", expect=1)}
    assert "leads out of the project" in checks["AGENTS.md"]["found"]


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
    project: Project, gh: GhStandIn, tmp_path: Path, watched: Any
) -> None:
    project.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    project.git("config", "remote.origin.pushurl", str(tmp_path / "remote.git"))
    hook = project.root / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch pushed\n")
    hook.chmod(0o755)
    creation = "pr create --title Areas have a factor --head feature --base main --body-file -"
    gh.answer(creation, "https://github.com/acme/api/pull/9\n")
    words = ["/create-pr", "--model", project.script(OPENS)]
    session = watched("run", *words)
    shown = session.until("proposal.created")["detail"]
    assert shown["title"] == "gh pr create"
    assert ["push", f"feature to origin (a new branch, at {tip(project)[:10]})"] in shown["body"][
        "fields"
    ]
    session.until("session.waiting")
    project.run("proposals", "approve", shown["proposal_id"])
    assert session.end() == 0
    assert "pre-push hook runs" in json.dumps(shown["body"]["notes"])
    assert (project.root / "pushed").exists()
    assert project.git("ls-remote", str(tmp_path / "remote.git"), "feature").split()[0] == tip(
        project
    )
    assert creation.split()[:2] in [call[:2] for call in gh.calls()]
    done = [row for row in session.rows if row["action"] == "action.receipt"]
    assert "pull/9" in json.dumps([row["detail"] for row in done or session.rows])


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


def test_a_session_for_a_task_has_its_type_and_ends_it(project: Project, bug: str) -> None:
    document = run(project, "", "--task", bug, "--approve", "all", script=FIXES, expect=0)
    assert document["task_type"] == "bug"
    assert "**Siblings**" in texts(project)
    assert "file:room.py" in fetched(project)
    task = project.json("tasks", "show", bug, "--fields", "full", "--json")
    assert task["status"] == "done"
    handoff = project.json("handoff", "show", bug, "--json")
    assert (handoff["status"], handoff["summary"]) == ("PASS", "Fixed.")
    assert handoff["files_changed"] == ["shapes.py"]


MIGRATION = """+++
name = "migration"
deterministic = ["file:shapes.py"]
dod = ["**Reversible**: it can be taken back"]
+++
"""


def add_type(folder: Path, name: str = "migration") -> Path:
    """A task type of its own in a folder for them."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.md"
    file.write_text(MIGRATION.replace("migration", name))
    return file


def test_a_type_of_a_file_is_a_type_of_the_backlog(project: Project) -> None:
    """From wherever tasks come, and no other word is."""
    refused = project.run("tasks", "add", "Move areas", "--type", "migration", expect=2)
    assert "it can be feature, bug," in refused.stderr
    assert "A file in .cockpit/task-types adds a type" in refused.stderr
    file = add_type(project.root / ".cockpit" / "task-types")
    add_type(project.config / "task-types", "rehearsal")
    project.run("tasks", "add", "Move areas", "--type", "migration")
    project.run("tasks", "add", "Move rooms")
    project.run("tasks", "edit", "T-2", "--type", "rehearsal")
    line = json.dumps({"kind": "task", "id": "T-3", "title": "Third", "task_type": "migration"})
    project.run("tasks", "import", "-", stdin=line)
    plan = "# Move [P1]\n\n- [ ] Move doors [migration, 2h]\n- [ ] Tell users\n  Type: rehearsal\n"
    checked = project.json("plan", "--check", "--json", "--", plan)
    assert [task["task_type"] for task in checked["tasks"]] == ["migration", "rehearsal"]
    planned = project.json("plan", "--json", "--", plan)
    project.run(
        *("proposals", "approve", planned["proposal_id"], "--shown", planned["shown_digest"])
    )
    listed = project.json("tasks", "list", "--fields", "standard", "--json")
    types = {task["id"]: task["type"] for task in listed}
    assert types == {
        **dict.fromkeys(("T-1", "T-3", "T-4"), "migration"),
        **dict.fromkeys(("T-2", "T-5"), "rehearsal"),
    }
    document = run(project, "", "--task", "T-1", "--approve", "all")
    assert document["task_type"] == "migration"
    assert "file:shapes.py" in fetched(project)
    assert "**Reversible**" in texts(project)
    # Without its file the tasks stay, and so does their type; new ones cannot have it.
    exported = project.run("tasks", "export").stdout
    file.unlink()
    project.run("tasks", "edit", "T-3", "--type", "migration", "--estimate", "2")
    project.run("tasks", "import", "-", stdin=exported)
    assert project.json("tasks", "show", "T-3", "--json")["type"] == "migration"
    project.run("tasks", "add", "More", "--type", "migration", expect=2)


def test_fixed_without_a_change_is_said_and_does_not_end_the_task(
    project: Project, bug: str
) -> None:
    script = READS_THEN_SAYS_FIXED
    document = run(project, "", "--task", bug, "--approve", "all", script=script)
    assert document["result"]["status"] == "blocked"
    assert "Nothing was changed" in document["result"]["summary"]
    task = project.json("tasks", "show", bug, "--fields", "full", "--json")
    assert task["status"] == "blocked"
    assert "Nothing was changed" in task["blocker"]
    assert project.json("handoff", "show", bug, "--json")["status"] == "BLOCKED"
    alone = run(project, "fix the areas", "--approve", "all", script=script, expect=0)
    assert alone["result"]["summary"].startswith("Fixed.\n\nNothing was changed")


def test_a_session_that_says_it_is_blocked_blocks_its_task(project: Project, bug: str) -> None:
    run(project, "", "--task", bug)
    assert project.json("tasks", "show", bug, "--json")["blocker"] == "Only looking."


FIX_IT_NOW = """
[[turn]]
text = "area multiplies by c. I can fix it now."
[[turn.call]]
name = "change_task_type"
arguments = { task_type = "implement", reason = "You asked for the fix itself." }
[[turn]]
when = { called = ["change_task_type"] }
text = "I look."
[[turn.call]]
name = "request_context"
arguments = { purpose = "fix", question = "what is there?", scope = ["file:shapes.py"] }
[[turn]]
when = { called = ["request_context"] }
text = "I fix it."
[[turn.call]]
name = "edit_file"
arguments = { path = "shapes.py", old = "a * b * c", new = "a * b" }
[[turn]]
when = { called = ["edit_file"] }
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Fixed." }
"""


def test_an_investigation_becomes_a_change_when_the_user_agrees(
    project: Project, watched: Any
) -> None:
    words = ["why are areas wrong?", "--model", project.script(FIX_IT_NOW), "--approve", "all"]
    session = watched("run", *words)
    shown = session.until("proposal.created")["detail"]
    assert shown["title"] == "become implement (from investigate)"
    session.until("session.waiting")
    project.run("proposals", "approve", shown["proposal_id"])
    changed = session.until("session.changed")
    assert (changed["actor"], changed["detail"]["task_type"]) == ("person", "implement")
    assert session.end() == 0
    assert "return a * b\n" in (project.root / "shapes.py").read_text()
    assert "this session's task type is implement from now on" in texts(project)
    assert "**All green**" in texts(project)
    with sqlite3.connect(state_of(project.root) / "cockpit.db") as connection:
        tools = connection.execute(
            "SELECT normalized_json, superseded_at FROM observed_facts JOIN session_facts USING(fact_id)"
            " WHERE session_facts.source_type='tools' ORDER BY ordinal"
        ).fetchall()
    assert [("`edit_file`" in text, replaced is None) for text, replaced in tools] == [
        (False, False),
        (True, True),
    ]


def test_a_type_change_that_the_user_rejects_changes_nothing(
    project: Project, watched: Any
) -> None:
    script = FIX_IT_NOW.partition('[[turn]]\nwhen = { called = ["request_context"]')[
        0
    ] + ENDS.replace("[[turn]]", "[[turn]]\nwhen = { called = ['request_context'] }")
    words = ["why are areas wrong?", "--model", project.script(script), "--approve", "reads"]
    session = watched("run", *words)
    proposal = session.until("proposal.created")["detail"]["proposal_id"]
    session.until("session.waiting")
    project.run("proposals", "reject", proposal, "--reason", "Not now.")
    assert session.end() != 0
    assert not [row for row in session.rows if row["action"] == "session.changed"]
    assert project.json("sessions", "show", "--json")["task_type"] == "investigate"
