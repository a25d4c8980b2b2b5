"""``bench/run.py`` names the bars that it misses, and fails only for a broken bench or with --strict."""

from __future__ import annotations

import gzip
import importlib
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
FAKES = {
    "met": "return [row('a quick thing', 1, 'ms', most=2), row('a figure', 7, 'ms')]",
    "missed": "return [row('a slow thing', 5, 'ms', most=2), row('a rate', 3, '/s', least=1)]",
    "broken": "raise RuntimeError('the bench itself broke')",
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The runner with three fake benches; its results go to ``tmp_path``."""
    for name, body in FAKES.items():
        text = f"from measure import row\n\ndef rows():\n    {body}\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.syspath_prepend(str(tmp_path))
    runner: dict[str, Any] = runpy.run_path(str(BENCH / "run.py"))
    main: Callable[[list[str]], int] = runner["main"]

    def run(*arguments: str, benches: tuple[str, ...] = tuple(FAKES)) -> int:
        monkeypatch.setitem(main.__globals__, "BENCHES", benches)
        monkeypatch.setitem(main.__globals__, "RESULTS", tmp_path / "results.json")
        return main(list(arguments))

    return run


def test_a_missed_bar_is_named_at_the_end_and_fails_only_when_strict(
    bench: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("met", "missed") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["Bars missed: 1 of 3.", "  missed: a slow thing: 5 ms, bar 2"]
    assert bench("--strict", "met", "missed") == 1
    assert bench("--strict", "met") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Bars missed: none of 1."


def test_only_the_named_benches_run(
    bench: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench("met") == 0
    assert "slow thing" not in capsys.readouterr().out
    assert not (tmp_path / "results.json").exists()
    with pytest.raises(SystemExit) as ended:
        bench("none")
    assert ended.value.code == 2
    assert "the benches are met, missed, broken" in capsys.readouterr().err


def test_a_broken_bench_fails_and_the_others_still_run(
    bench: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench("broken", "met") == 1
    output = capsys.readouterr()
    assert "the bench itself broke" in output.err
    assert "a quick thing" in output.out
    assert output.out.splitlines()[-1] == "Broken benches: broken."
    assert bench() == 1
    assert not (tmp_path / "results.json").exists()
    assert bench(benches=("met", "missed")) == 0
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [row["bench"] for row in results] == ["met", "met", "missed", "missed"]


def test_the_bench_of_policies_answers_recorded_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It calls what hooks call: this shows when that changes."""
    commands = ["cd /testbed/src && ls", "touch out", "sudo ls", "rm -rf /testbed"]
    lines = [json.dumps({"schema": 1}), *(json.dumps({"command": each}) for each in commands)]
    (tmp_path / "agent-traces").mkdir()
    with gzip.open(tmp_path / "agent-traces" / "run.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    monkeypatch.setenv("COCKPIT_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("COCKPIT_APPROVE", "ask")
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "judge", raising=False)
    counts = {
        row["name"]: row["value"]
        for row in importlib.import_module("judge").rows()
        if row["unit"] == ""
    }
    expected = {"ask": (0, 3, 1), "reads": (1, 2, 1), "all": (2, 1, 1)}
    for policy, numbers in expected.items():
        answers = ("allow", "ask", "deny")
        assert tuple(counts[f"{policy}: {each}, of 4"] for each in answers) == numbers, policy
