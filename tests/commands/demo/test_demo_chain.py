"""``cockpit demo --chain``: one run of it, and everything that it left."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file
from pathlib import Path

import pytest
import run_cockpit
from commands.demo.demo_world import MAIN, PATIENCE_S, bare_environment, git
from state_for_tests import state_of

from cockpit.act.model_tools import parse_call
from cockpit.commands.demo import demo_chain
from cockpit.commands.demo.demo_chain_report import Checkout
from cockpit.commands.demo.sample_project import make_sample, shipped
from cockpit.commands.exit_codes import Exit
from cockpit.core.project_paths import locate_project
from cockpit.core.secrets import mask_value
from cockpit.decide.offline.scenario import load_scenario
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.chains import chains, task_runs, worker_metrics, workers, worktrees
from cockpit.store.db.database import Store
from cockpit.store.journal import journal

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


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder = tmp_path_factory.mktemp("chain")
    done = run_cockpit.run(
        ("demo", "--chain", "--dir", "sample"),
        cwd=folder,
        env=bare_environment(folder / "home", OPENAI_API_KEY="none"),
        patience_s=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    with Store.open(locate_project(folder / "sample").database) as store:
        yield Ended(folder / "sample", done.stdout, done.stderr, store)


def test_every_call_of_the_script_is_one_that_cockpit_reads() -> None:
    with as_file(shipped("chain.toml")) as path:
        turns = load_scenario(path).turn
    assert turns
    for turn in turns:
        for call in turn.call:
            read = parse_call(call.name, call.text)
            assert mask_value(dict(read.arguments)) == read.arguments


def test_every_task_ends_as_it_should(ended: Ended) -> None:
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


def test_three_processes_did_it_and_context_pressure_ended_two(ended: Ended) -> None:
    (chain,) = ended.store.read_now(chains.select)
    sessions = ended.store.read_now(lambda c: workers.select_for_chain(c, "ch-1"))
    assert chain.status == "completed"
    assert len({session.process for session in sessions}) == len(sessions) >= 3
    assert [session.reason for session in sessions[:2]] == ["pressure", "pressure"]
    assert all(session.status == "clean" for session in sessions)
    assert all(session.tokens >= session.token_limit for session in sessions[:2])
    metrics = ended.store.read_now(lambda c: worker_metrics.select_for_chain(c, "ch-1"))
    assert sum(one.tasks_done for one in metrics) == len(DONE)
    assert sum(one.tasks_blocked for one in metrics) == 1
    assert [one.tokens for one in metrics] == [session.tokens for session in sessions]


def test_two_tasks_in_one_file_are_not_done_at_once(ended: Ended) -> None:
    rows = ended.store.read_now(lambda c: journal.rows(c, limit=100_000))
    begun = [
        row.raw_detail()["task_id"]
        for row in rows
        if row.action in ("task.run.started", "task.run.ended")
    ]
    assert begun.index("T-2") > len(begun) - 1 - begun[::-1].index("T-1")
    batches = [row.raw_detail()["task_ids"] for row in rows if row.action == "batch.started"]
    assert ["T-1", "T-4"] in batches
    assert not any({"T-1", "T-2"} <= set(batch) for batch in batches)
    assert "def room(weight: int)" in ended.show("parcel/rates.py")
    assert "weight <= band.limit" in ended.show("parcel/rates.py")


def test_the_next_steps_begin_in_the_sample_project(tmp_path: Path) -> None:
    for end in (Exit.DONE, Exit.INTERRUPTED):
        assert f"\n  cd {tmp_path}\n" in demo_chain.next_steps(tmp_path, "cockpit", end)


def test_what_was_made_is_on_the_chain_s_branch_and_nowhere_else(ended: Ended) -> None:
    root = ended.root
    merges = git(
        root,
        "log",
        "--merges",
        "--format=%H %(trailers:key=Cockpit-Task,valueonly)",
        "cockpit/ch-1",
    )
    merged = dict(reversed(line.split()) for line in merges.splitlines() if line)
    assert set(merged) == set(DONE)
    for name in DONE:
        tree = ended.store.read_now(lambda c, n=name: worktrees.load(c, n))
        assert (tree.status, tree.merged_commit) == ("merged", merged[name])
    kept = ended.store.read_now(lambda c: worktrees.load(c, "T-5"))
    assert (kept.status, kept.branch) == ("kept", "cockpit/T-5")
    assert Path(kept.path).is_dir()
    assert "BG CH CY" in ended.show("parcel/zones.py", "cockpit/T-5")
    assert "BG CH CY" not in ended.show("parcel/zones.py")
    assert git(root, "diff", "--name-only", kept.base_commit, "cockpit/T-5") == "parcel/zones.py"
    standing = {path.name for path in (state_of(root) / "worktrees").iterdir()}
    assert standing == {"ch-1", "T-5", ".lock"}


async def test_the_person_s_checkout_is_what_it_was(ended: Ended, tmp_path: Path) -> None:
    fresh = await make_sample(tmp_path / "fresh")
    assert await Checkout.of(ended.root) == await Checkout.of(fresh.root)
    assert git(ended.root, "rev-parse", "HEAD") == MAIN
    assert git(ended.root, "status", "--porcelain", "--untracked-files=all") == ""


def test_handoffs_and_work_in_progress_are_kept_as_they_should(ended: Ended) -> None:
    store = ended.store
    given = {name: store.read_now(lambda c, n=name: handoffs.find(c, n)) for name in (*DONE, "T-5")}
    assert {name: found.status for name, found in given.items() if found} == {
        **dict.fromkeys(DONE, "PASS"),
        "T-5": "FAIL",
    }
    failed = given["T-5"]
    assert failed is not None
    assert "test_only_what_leaves_the_union_is_declared" in (failed.full_details or "")
    wip = store.read_now(lambda c: tasks.load(c, "T-4")).wip or {}
    assert wip["test_results"]["failed"] == 0
    assert set(wip["files_modified"]) >= {"parcel/weight.py", "tests/test_weight.py"}


def test_the_report_has_what_decayed_before_it_was_written(ended: Ended) -> None:
    report = (ended.root / ".cockpit" / "reports" / "chain-1-report.md").read_text()
    for name in (*DONE, "T-5"):
        assert name in report
    assert "The limit belongs to the band, as docs/rates.md says" in report
    assert "test_only_what_leaves_the_union_is_declared" in report
    assert "git merge cockpit/ch-1" in report
    (chain,) = ended.store.read_now(chains.select)
    assert chain.report_path == ".cockpit/reports/chain-1-report.md"
    given = ended.store.read_now(lambda c: handoffs.load(c, "T-1"))
    assert given.archived_at is not None, "its epic is complete"
    assert "A band's limit belongs to the band now; two tests show it." in report


def test_it_is_told_as_it_goes_and_says_what_to_do_next(ended: Ended) -> None:
    assert "cockpit work --all --headless --approve all" in ended.told
    assert "s1  process" in ended.told
    assert "s3  process" in ended.told
    assert "files, unchanged" in ended.told
    assert "CHANGED" not in ended.told
    assert "git merge cockpit/ch-1" in ended.said
    assert "\x1b" not in ended.told + ended.said


def test_it_is_stopped_by_one_ctrl_c_and_gone_on_with(tmp_path: Path) -> None:
    env = bare_environment(tmp_path / "home")
    running = subprocess.Popen(
        [*run_cockpit.PROGRAM, "demo", "--chain", "--dir", "sample"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert running.stdout is not None
    told = ""
    while "T-1 · implement" not in told:
        line = running.stdout.readline()
        assert line, told
        told += line
    running.send_signal(signal.SIGINT)
    told += running.communicate(timeout=PATIENCE_S)[0]
    assert running.returncode == 130, told
    assert "work --continue" in told
    assert "Traceback" not in told
    done = run_cockpit.run(
        ("work", "--continue", "--headless"),
        cwd=tmp_path / "sample",
        env=env,
        patience_s=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with Store.open(locate_project(tmp_path / "sample").database) as store:
        known = store.read_now(tasks.select)
    assert {task.task_id for task in known if task.status == "done"} == set(DONE)
