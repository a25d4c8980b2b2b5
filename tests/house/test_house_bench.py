"""``bench/run.py`` names the bars that it misses, and fails only for a broken bench or with --strict."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
BENCHES = {
    "met": "return [row('a quick thing', 1, 'ms', most=2), row('a figure', 7, 'ms')]",
    "missed": "return [row('a slow thing', 5, 'ms', most=2), row('a rate', 3, '/s', least=1)]",
    "broken": "raise RuntimeError('the bench itself broke')",
}


def test_missed_bars_are_named_and_only_a_broken_bench_fails(tmp_path, monkeypatch, capsys):
    for name, body in BENCHES.items():
        text = f"from measure import row\n\ndef rows():\n    {body}\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.syspath_prepend(str(tmp_path))
    results = tmp_path / "results.json"
    main = runpy.run_path(str(BENCH / "run.py"))["main"]
    main.__globals__.update(BENCHES=tuple(BENCHES), RESULTS=results)

    assert main(["met", "missed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["Bars missed: 1 of 3.", "  missed: a slow thing: 5 ms, bar 2"]
    assert main(["--strict", "met", "missed"]) == 1
    assert main(["--strict", "met"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Bars missed: none of 1."
    with pytest.raises(SystemExit, match="2"):
        main(["none"])
    capsys.readouterr()
    assert main(["broken", "met"]) == 1
    output = capsys.readouterr()
    assert "the bench itself broke" in output.err and "a quick thing" in output.out
    assert output.out.splitlines()[-1] == "Broken benches: broken."
    assert main([]) == 1 and not results.exists()
    main.__globals__.update(BENCHES=("met", "missed"))
    assert main([]) == 0
    rows = json.loads(results.read_text(encoding="utf-8"))
    assert [row["bench"] for row in rows] == ["met", "met", "missed", "missed"]
