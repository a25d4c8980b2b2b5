"""Run the benches: a table on stdout, ``results.json`` beside this file.

``python bench/run.py [NAME …]`` runs only those. Ends with 1 when a bar is not met. Figures depend
on the machine and its mood; ratios are taken in one run, with both sides taking turns.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

from measure import Row

HERE = Path(__file__).resolve().parent
BENCHES = (
    "cold_start",
    "journal_latency",
    "durable",
    "wave",
    "fan_out",
    "compile",
    "keypress",
    "rivals",
    "adaptation",
    "capture",
    "hook",
    "work_queue",
    "chain",
)


def main(names: list[str]) -> int:
    """Run the named benches, or all of them; returns the exit code."""
    unknown = set(names) - set(BENCHES)
    if unknown:
        print(f"There is no bench {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}.")
        return 2
    found: list[Row] = []
    for name in names or BENCHES:
        started = time.perf_counter()
        print(f"\n{name}")
        for line in importlib.import_module(name).rows():
            found.append({**line, "bench": name})
            print(_line(line), flush=True)
        print(f"  ({time.perf_counter() - started:.0f} s)")
    if not names:
        (HERE / "results.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    missed = [line["name"] for line in found if not line["ok"]]
    if missed:
        print(f"\nnot met: {'; '.join(missed)}")
    return 1 if missed else 0


def _line(line: Row) -> str:
    bar = "" if line["bar"] is None else f"bar {line['bar']:g}"
    sign = " " if line["bar"] is None else "✔" if line["ok"] else "✘"
    value = f"{line['value']:,.4g} {line['unit']}"
    return f"  {sign} {line['name']:<58} {value:>16}  {bar}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
