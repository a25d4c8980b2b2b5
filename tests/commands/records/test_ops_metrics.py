"""Metrics and log lines: projections of the journal, by the RFC's names and fields."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import run_cockpit

from cockpit.loop.views.log_lines import FIELDS

NAMES = """orientation_packet_tokens_used orientation_budget_overflow_total
orientation_fact_drop_total observation_jobs_total observation_job_latency_ms profile_proposal_total
profile_rollback_total decision_regret_total planner_estimates_total"""


def cockpit(root: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return run_cockpit.run(arguments, cwd=root, env={**os.environ, **extra}, patience_s=120)


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


def test_a_run_is_logged_row_by_row_and_counted(project: Path, tmp_path: Path) -> None:
    review = ("review", "HEAD~1..HEAD", "--approve", "all")
    refused = cockpit(project, *review, COCKPIT_LOG_JSON="/no/such/dir/x")
    assert refused.returncode != 0 and "cannot be written" in refused.stderr
    assert not (project / ".cockpit" / "reviews").exists(), "nothing ran"
    log = tmp_path / "steps.jsonl"
    ran = cockpit(project, *review, COCKPIT_LOG_JSON=str(log))
    assert ran.returncode == 0, ran.stderr
    assert log.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(set(FIELDS) <= set(line) for line in lines)
    assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
    waves = [line for line in lines if line["wave_id"]]
    of_session = [line for line in lines if line["session_id"] == waves[0]["session_id"]]
    assert {line["trace_id"] for line in of_session} == {waves[0]["trace_id"]} != {""}
    compiled = {
        line["wave_id"]: line for line in lines if line["action"] == "orientation.packet.compiled"
    }
    later = [line for line in waves if line["seq"] >= compiled[line["wave_id"]]["seq"]]
    assert {"action.confirmed", "plan.committed"} <= {line["action"] for line in later}
    for line in later:
        for name in ("packet_id", "profile_id", "profile_version"):
            assert line[name] == compiled[line["wave_id"]][name], (line["action"], name)
    assert any(line["latency_ms"] > 0 for line in waves if line["action"] == "wave.advanced")
    assert lines[-1]["action"] == "session.completed"
    exported = cockpit(project, "journal", "--all", "--json").stdout.splitlines()
    kept = {row["seq"]: row["action"] for row in map(json.loads, exported)}
    assert all(kept[line["seq"]] == line["action"] for line in lines)
    counted = cockpit(project, "debug", "show", "metrics").stdout
    assert all(f"# TYPE {name}" in counted for name in NAMES.split())
    assert "\norientation_packet_tokens_used 0.0" not in counted
    assert 'cockpit_sessions{status="completed"} 1.0' in counted
    assert 'cockpit_proposals_pending{kind="action"} 0.0' in counted
