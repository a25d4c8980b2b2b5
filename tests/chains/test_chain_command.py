"""``cockpit work`` and ``cockpit chain``, run as a person runs them, over real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from chains.chain_world import WORK, Chains, slowly
from chains.new_chain import create_chain_row
from commands.cli_world import Project, approving
from state_for_tests import state_of
from tasks.taskrun_world import PASSES, git

from cockpit.store.chains import chains
from cockpit.store.db.database import Store
from cockpit.store.journal import journal

pytestmark = pytest.mark.slow

PRESSED = {"COCKPIT_SESSION_TOKEN_LIMIT": "4000"}


def test_work_that_cannot_begin_is_refused(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    world.project.run("tasks", "add", "Empty", "--kind", "epic")
    world.project.run("tasks", "add", "Apart", "--kind", "story")
    world.project.run("tasks", "add", "Write part2", "--story", "S-1", "--depends-on", "T-1")
    model = world.model(world.scenario(1))
    for words, said in (
        (("--headless",), "--headless needs a scope"),
        (("--headless", "--continue", "--all"), "exclude each other"),
        (("--all", "--epic", "E-1"), "exclude each other"),
        (("--epic", "E-7"), "There is no epic E-7"),
        (("--epic", "1"), "no task in epic E-1"),
        (("--story", "1", "--headless"), "No task in story S-1 can start: 1 waiting for others"),
        (("--all", "-n", "0"), "from 1 to 16"),
        (("--all", "-n", "many"), "'many' is not a batch size"),
        (("--all", "--max-wall", "soon"), "not a duration"),
        (("--all", "--max-cost", "nan"), "not an amount in dollars"),
        (("--chain", "ch-1"), "cockpit work --continue"),
        (("--continue",), "No chain is unfinished"),
    ):
        assert said in world.project.run("work", *words, *model, expect=2).stderr
    for words in (("--all",), ("--task", "T-1")):
        # Without a model every task would be blocked, one after another, for the same reason.
        assert "Set ANTHROPIC_API_KEY" in world.project.run("work", *words, expect=2).stderr
    world.project.extra["COCKPIT_TEST_COMMAND"] = "make lint; make test"
    for words in (("--all",), ("--task", "T-1")):
        told = world.project.run("work", *words, *model, expect=2).stderr
        assert "[work] test_command cannot run" in told
    assert world.project.json("chain", "--json") == []
    assert set(world.statuses().values()) == {"todo"}


def test_a_repository_without_a_commit_is_told_to_make_one(tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    git(root, "init", "--quiet")
    world = Chains(Project(root, tmp_path / "config"))
    world.project.run("tasks", "add", "Begin")
    model = world.model(world.scenario(1))
    assert "Make a first commit" in world.project.run("work", "--all", *model, expect=1).stderr
    assert world.project.json("chain", "--json") == []


def assert_logged_once(world: Chains, log: Path) -> None:
    """The supervisor and its workers log to one file: every row of the chain once, in order."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    rows = world.read(lambda seen: journal.rows(seen, limit=100_000))
    assert {"chain.changed", "batch.changed", "task.run.step"} <= {line["action"] for line in lines}
    first = next(row.seq for row in rows if row.action == "chain.changed")
    sealed = [row.seq for row in rows if row.digest]
    assert [line["seq"] for line in lines] == [seq for seq in sealed if seq >= first]
    model = [line for line in lines if line["action"] == "model.completed"]
    assert all(line["session_id"] and line["wave_id"] and line["trace_id"] for line in model)
    assert all(isinstance(line["latency_ms"], int) for line in lines)


def test_a_full_session_hands_over_to_a_new_process(tmp_path: Path) -> None:
    """Over a checkout with files of the user's own, of which none is loaded as a module."""
    world = Chains.made(tmp_path, 2)
    for name in ("cockpit", "click", "asyncio"):
        (world.root / f"{name}.py").write_text("raise SystemExit('loaded')\n", encoding="utf-8")
    before = git(world.root, "status", "--porcelain"), git(world.root, "rev-parse", "HEAD")
    log = tmp_path / "steps.jsonl"
    world.project.extra |= {**PRESSED, "COCKPIT_LOG_JSON": str(log), "COCKPIT_REPORT": "always"}
    done = world.project.run(*WORK, "--all", *world.model(world.scenario(2)))
    assert_logged_once(world, log)
    assert "reached its token limit" in done.stdout
    assert "Resuming T-" in done.stdout
    assert "ch-1 is completed. 2/2 tasks done" in done.stdout
    assert "git merge cockpit/ch-1" in done.stdout
    assert "3 files in your checkout are not committed" in done.stderr
    assert world.statuses() == {"T-1": "done", "T-2": "done"}
    sessions = world.sessions()
    assert len(sessions) >= 2
    assert len({one.pid for one in sessions}) == len(sessions)
    assert [one.reason for one in sessions][-1] == "empty"
    assert {one.reason for one in sessions[:-1]} == {"pressure"}
    for at in (1, 2):
        assert git(world.root, "show", f"cockpit/ch-1:part{at}.py") == f"x = {at}"
    assert (
        git(world.root, "status", "--porcelain"),
        git(world.root, "rev-parse", "HEAD"),
    ) == before
    (listed,) = world.project.json("chain", "--json")
    assert [one["ordinal"] for one in listed["sessions"]] == [one.ordinal for one in sessions]
    assert sum(one["tasks_done"] for one in listed["sessions"]) == 2
    assert listed["progress"] == {"total": 2, "done": 2, "blocked": 0, "under_way": 0, "ready": 0}
    assert listed["tokens"] == sum(one.tokens for one in sessions) > 4000
    page = world.project.run("chain", "1").stdout
    assert "ch-1 completed" in page
    assert "of 4,000 tokens (" in page
    assert "ch-1" in world.project.run("chain", "watch").stdout
    assert "2/2" in world.project.run("chain").stdout
    path = world.project.json("chain", "last", "--report", "--json")["path"]
    assert path.endswith(".cockpit/reports/chain-1-report.md")


def test_a_chain_is_drained_and_resumed_then_stopped_at_once(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    model = world.model(slowly(world.scenario(1), 1.5))
    running = world.project.start(*WORK, "--all", "-n", "1", *model)
    world.told(running, "T-1 · implement")
    running.send_signal(signal.SIGINT)
    code, told = world.end(running)
    assert code == 130
    assert "Draining" in told
    assert "ch-1 is stopped: drained" in told
    assert "cockpit work --continue ch-1" in told
    (first,) = world.sessions()
    assert (first.status, first.reason) == ("clean", "drained")
    assert world.statuses() == {"T-1": "in_progress"}

    world.model(world.scenario(1).replace(PASSES, slowly(PASSES, 30)))
    running = world.project.start("work", "--continue")
    told = "".join(world.told(running, "T-1 · spec review"))
    assert "Resuming T-1 from: implementing phase, next: run the tests" in told
    assert "stops after its steps" in world.project.run("chain", "stop").stdout
    assert "stops now" in world.project.run("chain", "stop", "ch-1").stdout
    code, told = world.end(running)
    assert code == 130
    assert "Stopping now" in told
    assert [(one.status, one.reason) for one in world.sessions()][1:] == [("stopped", "stopped")]
    assert "stopped already" in world.project.run("chain", "stop", expect=1).stderr


def test_a_chain_is_not_resumed_where_nothing_confines_its_policy(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    with Store.open(state_of(world.root) / "cockpit.db") as store:
        row = store.write_now(lambda tx: create_chain_row(tx, max_chains=3, approve="all"))
        store.write_now(lambda tx: chains.end(tx, row.chain_id, "stopped", "drained"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(str(shutil.which("git")))
    world.project.extra["PATH"] = str(tmp_path / "bin")
    followed = ("work", "--continue", "--headless", "--after", "1")
    for words in (("work", "--continue", "ch-1"), ("work", "--continue"), followed):
        assert "pass --no-sandbox" in world.project.run(*words, expect=3).stderr
    assert world.project.json("chain", "last", "--json")["status"] == "stopped"
    git(world.root, "switch", "--quiet", "-c", "cockpit/ch-1")
    said = world.project.run("work", "--continue", "--no-sandbox", expect=1).stderr
    assert "is checked out in" in said, "it came past the check"


def test_what_is_killed_is_recovered_and_gone_on_with(tmp_path: Path) -> None:
    """A session, whose task the next one resumes, and the process that watches over that one."""
    world = Chains.made(tmp_path, 1)
    model = world.model(slowly(world.scenario(1), 1.5))
    running = world.project.start(*WORK, "--all", *model)
    world.told(running, "T-1 · implement")
    os.kill(world.sessions()[0].pid, signal.SIGKILL)
    world.told(running, "s1 died: its process is gone; the next worker resumes T-1")
    *_, crashed = world.rows("chain.session.changed")
    assert (crashed["status"], crashed["freed"]) == ("crashed", ["T-1"])
    world.told(running, "Resuming T-1 from")
    watcher = world.project.start("chain", "watch", "1")
    world.told(watcher, "ch-1 works on the backlog")  # before it has ended
    assert "runs ch-" in world.project.run("work", "--continue", "last", expect=3).stderr
    running.kill()
    world.end(running)
    (alone,) = world.project.json("chain", "--json")
    assert (alone["status"], alone["watched"]) == ("running", False)
    assert (
        "ch-1 is completed"
        in world.project.run("work", "--continue", "ch-1", "--max-chains", "3").stdout
    )
    found = [(one.status, one.reason) for one in world.sessions()]
    assert [status for status, _ in found] == ["crashed", "clean"] and found[1][1] == "empty"
    assert world.statuses() == {"T-1": "done"}
    # It handed nothing over: it is none of the sessions that a chain may have.
    assert "workers    1 of 3" in world.project.run("chain", "last").stdout
    code, told = world.end(watcher)
    assert code == 0 and told.rstrip().endswith("ch-1 is completed. 1/1 task done, 0 ready")


def test_a_person_elsewhere_approves_what_it_waits_with(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    with approving(world.project) as shown:
        done = world.project.run("work", *world.model(world.scenario(1)))
    assert "T-1 implementer waits for you" in done.stdout and len(shown) == 1
    assert git(world.root, "show", "cockpit/ch-1:part1.py") == "x = 1"
