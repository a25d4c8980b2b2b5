"""Metrics and log lines: projections of the journal, by the RFC's names and fields."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import run_cockpit

from cockpit.backlog import service
from cockpit.core.clock import FixedClock
from cockpit.loop.views.log_lines import FIELDS
from cockpit.loop.views.metrics import measured
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals, sessions

NAMES = (
    "orientation_packet_tokens_used",
    "orientation_budget_overflow_total",
    "orientation_fact_drop_total",
    "observation_jobs_total",
    "observation_job_latency_ms",
    "profile_proposal_total",
    "profile_rollback_total",
    "decision_regret_total",
    "planner_estimates_total",
)


def cockpit(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_cockpit.run(arguments, cwd=root, env=dict(os.environ), patience_s=120)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for words in (["init", "-q", "-b", "main"], ["config", "user.name", "T"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    subprocess.run(["git", "config", "user.email", "t@example.invalid"], cwd=root, check=True)
    for text in ("def one():\n    return 1\n", "def one():\n    return 2\n"):
        (root / "one.py").write_text(text)
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        subprocess.run(["git", "commit", "-q", "-m", "change"], cwd=root, check=True)
    return root


def test_a_run_is_logged_row_by_row_and_counted_by_the_rfcs_names(
    project: Path, tmp_path: Path
) -> None:
    log = tmp_path / "steps.jsonl"
    ran = cockpit(project, "review", "HEAD~1..HEAD", "--approve", "all", "--log-json", str(log))
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(set(FIELDS) <= set(line) for line in lines)
    assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
    waves = [line for line in lines if line["wave_id"]]
    assert {line["trace_id"] for line in waves} == {waves[0]["trace_id"]} != {""}
    of_session = [line for line in lines if line["session_id"] == waves[0]["session_id"]]
    assert {line["trace_id"] for line in of_session} == {waves[0]["trace_id"]}
    compiled = {
        line["wave_id"]: line for line in lines if line["action"] == "orientation.packet.compiled"
    }
    later = [line for line in waves if line["seq"] >= compiled[line["wave_id"]]["seq"]]
    assert {"action.confirmed", "plan.committed"} <= {line["action"] for line in later}
    for line in later:
        of = compiled[line["wave_id"]]
        for name in ("packet_id", "profile_id", "profile_version"):
            assert line[name] == of[name], (line["action"], name)
    assert all(isinstance(line["latency_ms"], int) for line in lines)
    first = min(line["seq"] for line in compiled.values())
    assert all(
        line["packet_id"] and line["profile_id"]
        for line in of_session
        if line["seq"] > first and line["action"].startswith("session.")
    )
    assert any(line["latency_ms"] > 0 for line in waves if line["action"] == "wave.acted")
    actions = [line["action"] for line in lines]
    assert "orientation.packet.compiled" in actions
    assert actions[-1] == "session.completed"
    assert log.stat().st_mode & 0o777 == 0o600
    exported = cockpit(project, "journal", "export").stdout.splitlines()
    kept = {row["seq"]: row["action"] for row in map(json.loads, exported)}
    assert all(kept[line["seq"]] == line["action"] for line in lines)
    counted = cockpit(project, "metrics")
    assert counted.returncode == 0
    assert all(f"# TYPE {name}" in counted.stdout for name in NAMES)
    used = next(
        line
        for line in counted.stdout.splitlines()
        if line.startswith("orientation_packet_tokens_used ")
    )
    assert float(used.split()[1]) > 0
    assert 'cockpit_sessions{status="completed"} 1.0' in counted.stdout
    assert 'cockpit_proposals_pending{kind="action"} 0.0' in counted.stdout


def test_totals_are_those_of_the_tables(tmp_path: Path) -> None:
    clock = FixedClock()
    with Store.open(tmp_path / "cockpit.db", clock) as store:

        def fill(tx: Tx) -> None:
            session_id = sessions.create(
                tx, task_type="bug", title="fix", words="fix", target={}, model="offline",
                policy="ask", interactive=True, root=tmp_path, rev=None, profile_id="default",
                limits={}, project="p", branch="",
            ).session_id  # fmt: skip
            tx.connection.execute("UPDATE sessions SET input_tokens=70, cost_usd=0.25")
            for number, kind in enumerate(("action", "action", "context")):
                proposals.create(
                    tx, proposal_id=f"p-{number}", kind=kind, session_id=session_id, wave_id="",
                    title="t", risk="low", body={"number": number},
                )  # fmt: skip
            service.create_task(tx, "one", by="agent")

        store.write_now(fill)
        lines = store.read_now(measured).exposition().splitlines()
    for line in (
        'cockpit_proposals_pending{kind="action"} 2.0',
        'cockpit_proposals_pending{kind="context"} 1.0',
        'cockpit_sessions{status="running"} 1.0',
        'cockpit_tasks{status="todo"} 1.0',
        'cockpit_chains{status="running"} 0.0',
        'cockpit_tokens_total{direction="input"} 70.0',
        "cockpit_cost_usd_total 0.25",
    ):
        assert line in lines


def test_a_log_that_cannot_be_written_is_said_and_nothing_runs(project: Path) -> None:
    ran = cockpit(
        project, "review", "HEAD~1..HEAD", "--approve", "all", "--log-json", "/no/such/dir/x"
    )
    assert ran.returncode != 0
    assert "cannot be written" in ran.stderr
    assert not (project / ".cockpit" / "reviews").exists()
