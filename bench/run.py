"""Run the benches and print a table; a full run also writes ``results.json`` beside this file.

Usage: ``python bench/run.py [--strict] [NAME …]``. The exit code is 0 unless a bench itself breaks;
``--strict`` also exits 1 when a bar is missed. Figures depend on the machine and its load; ratios are
measured in one run, with both sides taking turns.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from measure import Row

RESULTS = Path(__file__).resolve().parent / "results.json"
BENCHES = (
    "cold_start",
    "tokenizer",
    "mcp_start",
    "open_screen",
    "all_projects",
    "installed_size",
    "large_journal",
    "journal_latency",
    "http_stream",
    "durable",
    "wave",
    "fan_out",
    "compile",
    "prompt_budget",
    "needed",
    "first_packets",
    "keypress",
    "large_things",
    "large_screens",
    "streaming",
    "large_project",
    "rivals",
    "adaptation",
    "trust",
    "capture",
    "hook",
    "guard",
    "approve",
    "sandbox",
    "judge",
    "retrieval",
    "knowledge_frames",
    "skills",
    "work_queue",
    "chain",
    "remote_workers",
    "many_tasks",
)


def main(arguments: Sequence[str]) -> int:
    """Run the named benches, or all of them; returns the exit code."""
    options = _parse_arguments(arguments)
    rows: list[Row] = []
    broken: list[str] = []
    for name in options.names or BENCHES:
        started = time.perf_counter()
        print(f"\n{name}")
        try:
            for row in importlib.import_module(name).rows():
                rows.append({**row, "bench": name})
                print(_table_line(row), flush=True)
        except Exception:
            traceback.print_exc()
            broken.append(name)
        print(f"  ({time.perf_counter() - started:.0f} s)")
    if not options.names and not broken:
        RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    missed = [row for row in rows if not row["ok"]]
    print(f"\n{_summarise_bars(rows, missed)}")
    if broken:
        print(f"Broken benches: {', '.join(broken)}.")
    return 1 if broken or (options.strict and missed) else 0


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Run the benches.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"run only these: {', '.join(BENCHES)}"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; the benches are {', '.join(BENCHES)}")
    return options


def _summarise_bars(rows: Sequence[Row], missed: Sequence[Row]) -> str:
    with_bar = [row for row in rows if row["bar"] is not None]
    if not missed:
        return f"Bars missed: none of {len(with_bar)}."
    lines = [f"Bars missed: {len(missed)} of {len(with_bar)}."]
    lines += [
        f"  {row['bench']}: {row['name']}: {row['value']:,.4g} {row['unit']}, bar {row['bar']:g}"
        for row in missed
    ]
    return "\n".join(lines)


def _table_line(row: Row) -> str:
    bar = "" if row["bar"] is None else f"bar {row['bar']:g}"
    sign = " " if row["bar"] is None else "✔" if row["ok"] else "✘"
    value = f"{row['value']:,.4g} {row['unit']}"
    return f"  {sign} {row['name']:<58} {value:>16}  {bar}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
