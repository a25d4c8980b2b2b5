"""``cockpit tasks`` as a person or a script runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import run_cockpit
from loop.intake.gh_standin import GhStandIn
from state_for_tests import kept_variables

pytestmark = pytest.mark.slow

PATIENCE_S = 90


@dataclass
class Terminal:
    """A project's folder and the environment that ``cockpit`` is run in there."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, expect: int = 0, stdin: str = "") -> tuple[str, str]:
        """Standard output and error of ``cockpit``, which must end with ``expect``."""
        env = {
            **kept_variables(),
            "HOME": str(self.root),
            "COLUMNS": "100",
            **self.extra,
        }
        done = run_cockpit.run(words, cwd=self.root, env=env, stdin=stdin, patience_s=PATIENCE_S)
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    def out(self, *words: str, **options: Any) -> str:
        return self.run(*words, **options)[0]

    def json(self, *words: str) -> Any:
        return json.loads(self.out(*words, "--json"))


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return Terminal(root)


def test_a_backlog_from_the_command_line(terminal: Terminal) -> None:
    assert (
        terminal.out("tasks", "add", "Login", "--kind", "epic", "--priority", "p0") == "E-1 Login\n"
    )
    assert (
        terminal.out("tasks", "add", "Tokens", "--kind", "story", "--epic", "1") == "S-1 Tokens\n"
    )
    terminal.run(
        "tasks", "add", "Expiry", "--story", "S-1", "--file", "src/a.ts", "--accept", "401"
    )
    made = terminal.json("tasks", "add", "Refresh", "--story", "s1", "--depends-on", "T-1")
    assert made == {"id": "T-2", "title": "Refresh", "status": "todo"}
    assert terminal.json("tasks", "--fields", "minimal")[0] == {
        "id": "T-1",
        "title": "Expiry",
        "status": "todo",
    }
    assert terminal.json("tasks", "1")["acceptance_criteria"] == "401"
    assert [one["id"] for one in terminal.json("tasks", "queue", "--ready")] == ["T-1"]
    why = terminal.out("tasks", "queue", "--why").splitlines()
    assert why[1].split(None, 5) == [
        "T-1",
        "1",
        "P0",
        "1",
        "3,019,999,998",
        "priority P0; unblocks 1; number 1; can begin now",
    ]
    assert "waits for T-1" in why[2]
    _, err = terminal.run("tasks", "dep", "T-1", "T-2", expect=2)
    assert "T-1 → T-2 → T-1" in err
    assert terminal.out("tasks", "move", "1", "in_progress") == "T-1 is in progress\n"
    terminal.run("tasks", "move", "1", "blocked", "--why", "no key")
    assert "Blocked by\nno key" in terminal.out("tasks", "1")
    assert terminal.out("tasks", "move", "1", "unblocked") == "T-1 is in progress\n"
    assert terminal.out("tasks", "move", "1", "2", "done").splitlines() == [
        "T-1 is done",
        "T-2 is done",
        "S-1 is done with it",
        "E-1 is done with it",
    ]
    assert terminal.out("tasks", "move", "2", "todo") == "T-2 is todo\n"
    assert terminal.json("tasks", "E-1")["status"] == "in_progress"
    assert terminal.json("tasks", "--kind", "story", "--status", "in_progress")[0]["id"] == "S-1"
    assert [line.split()[0] for line in terminal.out("tasks", "s1").splitlines()[3:]] == [
        "TASK",
        "T-1",
        "T-2",
    ]
    assert terminal.out("tasks", "edit", "E-1", "--priority", "P3") == "E-1 Login\n"
    assert terminal.json("tasks", "--kind", "epic")[0]["priority"] == "P3"
    assert terminal.out("tasks", "move", "T-2", "S-1", "done").splitlines()[-1] == "S-1 is done"


def test_a_field_of_another_kind_is_refused(terminal: Terminal) -> None:
    terminal.run("tasks", "add", "Login", "--kind", "epic")
    for words, said in (
        (("add", "x", "--kind", "story", "--type", "bug"), "--type is not for a story"),
        (("add", "x", "--priority", "P0"), "--priority is not for a task"),
        (("edit", "E-1", "--estimate", "3"), "--estimate is not for an epic"),
        (("edit", "E-1"), "Nothing to change"),
        (("--kind", "epic", "--story", "S-1"), "--story does not filter --kind epic"),
    ):
        assert said in terminal.run("tasks", *words, expect=2)[1]


ISSUES = [
    {
        "number": 12,
        "title": "Tokens never expire",
        "body": "They should.",
        "labels": [{"name": "bug"}, {"name": "ready"}],
        "url": "https://github.com/acme/shop/issues/12",
    },
    {
        "number": 13,
        "title": "Explain tokens",
        "body": "",
        "labels": [{"name": "documentation"}],
        "url": "https://github.com/acme/shop/issues/13",
    },
]
ASKED = "issue list --state open --limit 1000 --json number,title,body,labels,url"


def test_issues_become_tasks_once(terminal: Terminal, tmp_path: Path) -> None:
    gh = GhStandIn(tmp_path / "bin", {})
    terminal.extra["PATH"] = f"{gh.directory}:{os.environ['PATH']}"
    gh.answer(f"{ASKED} --label ready", json.dumps(ISSUES))
    terminal.run("tasks", "add", "From GitHub", "--kind", "story")
    words = ("tasks", "import", "github", "--label", "ready", "--story", "S-1")
    assert terminal.out(*words) == "2 created, 0 changed, 0 unchanged\n"
    found = terminal.json("tasks", "--fields", "full")
    assert [(one["title"], one["type"], one["source"], one["story"]) for one in found] == [
        ("Tokens never expire", "bug", "github:acme/shop#12", "S-1"),
        ("Explain tokens", "docs", "github:acme/shop#13", "S-1"),
    ]
    terminal.run("tasks", "move", "1", "in_progress")
    gh.answer(f"{ASKED} --label ready", json.dumps([{**ISSUES[0], "title": "Renamed"}, ISSUES[1]]))
    assert terminal.out(*words) == "0 created, 1 changed, 1 unchanged\n"
    assert terminal.json("tasks", "1")["title"] == "Renamed"
    assert terminal.json("tasks", "1")["status"] == "in_progress"


def test_an_agents_token_writes_and_is_named(terminal: Terminal) -> None:
    issued = terminal.out("tokens", "issue", "--namespace", "ci", "--scope", "work.write")
    reader = terminal.out("tokens", "issue", "--namespace", "ci", "--scope", "work.read")
    terminal.extra["COCKPIT_TOKEN"] = issued.strip()
    terminal.run("tasks", "add", "By a machine")
    del terminal.extra["COCKPIT_TOKEN"]
    rows = [json.loads(line) for line in terminal.out("journal", "--all", "--json").splitlines()]
    assert [row["actor"] for row in rows if row["action"] == "task.changed"] == ["ci"]
    terminal.extra["COCKPIT_TOKEN"] = reader.strip()
    _, err = terminal.run("tasks", "move", "1", "in_progress", expect=3)
    assert "needs the scope work.write" in err


def test_a_task_is_edited_by_options_and_in_the_editor(terminal: Terminal) -> None:
    terminal.run("tasks", "add", "Old title", "--description", "-", stdin="From a pipe\n")
    terminal.run("tasks", "add", "A second one")
    terminal.run("tasks", "edit", "1", "--type", "bug", "--estimate", "2.5")
    script = "import sys,pathlib as p;f=p.Path(sys.argv[1]);t=f.read_text();"
    script += "t=t.replace('Old','New').replace('pipe','sheet');"
    script += "t=t.replace('waits_for = \\\"\\\"','waits_for = [\\\"t2\\\"]');"
    script += "f.write_text(t.replace('+++ Done when','+++ Done when' + chr(10) + 'it ran'))"
    terminal.extra["EDITOR"] = f'{sys.executable} -c "{script}"'
    assert terminal.out("tasks", "edit", "1") == "T-1 New title\n"
    found = terminal.json("tasks", "1", "--fields", "full")
    assert (found["type"], found["estimate_hours"]) == ("bug", 2.5)
    assert (found["description"], found["acceptance_criteria"]) == ("From a sheet", "it ran")
    assert "T-2" in terminal.out("tasks", "dep", "1")
    terminal.extra["EDITOR"] = "true"
    assert terminal.run("tasks", "edit", "1") == ("", "Nothing changed.\n")
    terminal.extra["EDITOR"] = "false"
    _, err = terminal.run("tasks", "edit", "1", expect=1)
    assert "nothing changed" in err


def test_what_happened_is_kept_and_cannot_steer_the_terminal(terminal: Terminal) -> None:
    terminal.run("tasks", "add", "red \x1b[31m\x1b]0;owned\x07 alert\u202e")
    terminal.run("tasks", "note", "1", "JWT it is", "--type", "decision")
    terminal.run("tasks", "note", "1", "too", "slow", "--failed", "quality")
    terminal.run("tasks", "edit", "1", "--rework")
    told = terminal.out("tasks", "1")
    assert all(words in told for words in ("needs rework", "too slow", "JWT it is"))
    for out in (told, terminal.out("tasks")):
        assert "\x1b" not in out and "\u202e" not in out
    terminal.run("tasks", "move", "1", "archived", "--why", "not wanted")
    assert terminal.json("tasks") == []
    assert terminal.json("tasks", "--status", "archived")[0]["id"] == "T-1"


def test_several_tasks_come_in_and_end_together_or_not_at_all(
    terminal: Terminal, tmp_path: Path
) -> None:
    assert terminal.run("tasks")[0] == ""
    assert not (terminal.root / ".cockpit").exists(), "looking makes nothing"
    lines = [json.dumps({"kind": "task", "title": f"Task {number}"}) for number in range(5)]
    assert terminal.out("tasks", "import", "-", stdin="\n".join(lines)).startswith("5 created")
    out, err = terminal.run("tasks", "--limit", "2", "--offset", "1")
    assert [line.split()[0] for line in out.splitlines()] == ["TASK", "T-2", "T-3"]
    assert err == "2 more: --offset 3\n"
    terminal.run("tasks", "move", "1", "99", "done", expect=2)
    assert {one["status"] for one in terminal.json("tasks")} == {"todo"}
    assert terminal.out("tasks", "move", "1", "2", "done") == "T-1 is done\nT-2 is done\n"
    terminal.run("tasks", "dep", "T-4", "T-3", "--type", "relates_to")
    assert "Unblocks" not in terminal.out("tasks", "T-3")
    assert "depends on it  T-4" in terminal.out("tasks", "dep", "T-3")
    file = tmp_path / "backlog.jsonl"
    terminal.run("tasks", "export", str(file))
    assert terminal.out("tasks", "export") == file.read_text()
    assert terminal.out("tasks", "import", str(file)) == "0 created, 0 changed, 6 unchanged\n"
    file.write_text('{"kind": "task"}\n')
    assert "Line 1" in terminal.run("tasks", "import", str(file), expect=2)[1]


def test_issues_of_another_repository_are_asked_for_by_name(
    terminal: Terminal, tmp_path: Path
) -> None:
    gh = GhStandIn(tmp_path / "bin", {})
    terminal.extra["PATH"] = f"{gh.directory}:{os.environ['PATH']}"
    folder = terminal.root / ".cockpit" / "task-types"
    folder.mkdir(parents=True)
    (folder / "load.md").write_text('+++\nname = "load_test"\ndod = ["Measured."]\n+++\n')
    load = {**ISSUES[0], "number": 14, "title": "Measure", "labels": [{"name": "Load test"}]}
    load["url"] = "https://github.com/acme/shop/issues/14"
    gh.answer(f"{ASKED} --repo acme/shop", json.dumps([*ISSUES, load]))
    out = terminal.out("tasks", "import", "github", "--repo", "acme/shop")
    assert out == "3 created, 0 changed, 0 unchanged\n"
    types = [one["type"] for one in terminal.json("tasks", "--fields", "full")]
    assert types == ["bug", "docs", "load_test"]
    assert "gh did not list" in terminal.run("tasks", "import", "github", expect=1)[1]
    for answer in ("no json", "{}", "[" * 100_000, json.dumps([{**ISSUES[0], "labels": ["bug"]}])):
        gh.answer(ASKED, answer)
        _, err = terminal.run("tasks", "import", "github", expect=1)
        assert "other than a list of issues" in err
    completing = {
        "_COCKPIT_COMPLETE": "bash_complete",
        "COMP_WORDS": "cockpit tasks add --type lo",
        "COMP_CWORD": "4",
    }
    terminal.extra |= completing
    assert terminal.out() == "plain,load_test\n"
