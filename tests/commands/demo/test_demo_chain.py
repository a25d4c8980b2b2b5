"""``cockpit demo --chain``: one run of it, and everything that it left."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file
from pathlib import Path

import pytest
import run_cockpit
from commands.demo.demo_world import MAIN, PATIENCE_S, bare_environment, git
from state_for_tests import state_of

from cockpit.act.model_tools import parse_call
from cockpit.commands.demo.sample_project import shipped
from cockpit.core.project_paths import locate_project
from cockpit.core.secrets import mask_value
from cockpit.decide.offline.scenario import load_scenario
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.chains import chains, task_runs, workers, worktrees
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow

DONE = ("T-1", "T-2", "T-3", "T-4", "T-6")


@dataclass(frozen=True)
class Ended:
    """The sample project after the demo, with what was printed; its store is open."""

    root: Path
    told: str
    said: str
    store: Store

    def show(self, path: str, revision: str = "cockpit/ch-1") -> str:
        return git(self.root, "show", f"{revision}:{path}")


def test_every_call_of_the_script_is_one_that_cockpit_reads() -> None:
    with as_file(shipped("scenario.toml")) as path:
        turns = load_scenario(path).turn
    assert turns
    for turn in turns:
        for call in turn.call:
            read = parse_call(call.name, call.text)
            assert mask_value(dict(read.arguments)) == read.arguments


def test_the_backlog_is_done_in_one_command(tmp_path: Path) -> None:
    """And what it tells, leaves and does not touch is what the guide says."""
    done = run_cockpit.run(
        ("demo", "--chain", "--dir", "sample"),
        cwd=tmp_path,
        env=bare_environment(tmp_path / "home", OPENAI_API_KEY="none"),
        patience_s=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    root = tmp_path / "sample"
    with Store.open(locate_project(root).database) as store:
        ended = Ended(root, done.stdout, done.stderr, store)
        _tasks_end_as_they_should(ended)
        _three_processes_did_it_and_two_ended_full(ended)
        _the_work_is_on_the_chain_s_branch_and_nowhere_else(ended)
    assert git(root, "rev-parse", "HEAD") == MAIN
    assert git(root, "status", "--porcelain", "--untracked-files=all") == ""


def _tasks_end_as_they_should(ended: Ended) -> None:
    known = {task.task_id: task for task in ended.store.read_now(tasks.select)}
    assert {name for name, task in known.items() if task.status == "done"} == set(DONE)
    assert known["T-5"].status == "blocked"
    assert "The fixer changed nothing, and the tests still fail" in known["T-5"].blocker
    taken = {
        name: [
            step.step
            for step in ended.store.read_now(lambda c, n=name: task_runs.select_steps(c, n))
        ]
        for name in known
    }
    reviewed = ["spec_review", "quality_review", "merge", "done"]
    assert taken["T-1"] == ["implement", "test", *reviewed]
    assert taken["T-4"] == ["implement", "test", "fix", "test", "fix", "test", *reviewed]
    assert taken["T-5"] == ["implement", "test", *["fix", "test"] * 2, "blocked"]


def _three_processes_did_it_and_two_ended_full(ended: Ended) -> None:
    (chain,) = ended.store.read_now(chains.select)
    sessions = ended.store.read_now(lambda c: workers.select_for_chain(c, "ch-1"))
    assert chain.status == "completed"
    assert len({session.process for session in sessions}) == len(sessions) >= 3
    assert [session.reason for session in sessions[:2]] == ["pressure", "pressure"]
    assert all(session.status == "clean" for session in sessions)
    assert all(session.tokens >= session.token_limit for session in sessions[:2])
    for words in (
        "--all --headless --approve all",
        "s1 (process",
        "s3 (process",
        "checkout: unchanged",
    ):
        assert words in ended.told
    assert "git merge cockpit/ch-1" in ended.said
    assert "\x1b" not in ended.told + ended.said
    report = (ended.root / ".cockpit" / "reports" / "chain-1-report.md").read_text()
    for words in (*DONE, "T-5", "The limit belongs to the band, as docs/rates.md says"):
        assert words in report
    assert "test_only_what_leaves_the_union_is_declared" in report
    given = ended.store.read_now(lambda c: handoffs.load(c, "T-1"))
    assert given.archived_at is not None, "its epic is complete"
    failed = ended.store.read_now(lambda c: handoffs.load(c, "T-5"))
    assert failed.status == "FAIL" and "the_union_is_declared" in (failed.full_details or "")


def _the_work_is_on_the_chain_s_branch_and_nowhere_else(ended: Ended) -> None:
    form = "--format=%H %(trailers:key=Cockpit-Task,valueonly)"
    merges = git(ended.root, "log", "--merges", form, "cockpit/ch-1")
    merged = dict(reversed(line.split()) for line in merges.splitlines() if line)
    assert set(merged) == set(DONE)
    for name in DONE:
        tree = ended.store.read_now(lambda c, n=name: worktrees.load(c, n))
        assert (tree.status, tree.merged_commit) == ("merged", merged[name])
    kept = ended.store.read_now(lambda c: worktrees.load(c, "T-5"))
    assert (kept.status, kept.branch) == ("kept", "cockpit/T-5")
    assert "BG CH CY" in ended.show("parcel/zones.py", "cockpit/T-5")
    assert "BG CH CY" not in ended.show("parcel/zones.py")
    assert "weight <= band.limit" in ended.show("parcel/rates.py")
    standing = {path.name for path in (state_of(ended.root) / "worktrees").iterdir()}
    assert standing == {"ch-1", "T-5", ".lock"}
