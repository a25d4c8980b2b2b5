"""What the prompts of sessions cost, beside a growing transcript of the same exchange with the same cache.

Cached tokens cost a tenth of a token without a cache, tokens that are kept in it one and a quarter. The
recorded runs (SWE-agent/mini-swe-agent, MIT, © 2025 Kilian A. Lieret and Carlos E. Jimenez) are in the
folder that ``COCKPIT_BENCH_DATA`` names; each of their actions is one exchange.

Two measures say what packets lack. *Needed facts* are the last ones about each file that a later command
names. *Quoted* lines and identifiers are text that only a result had shown and that a later command repeats
(:mod:`quoted`). Price and need have their bars in :mod:`needed`: a bar on price alone loses what is needed.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from measure import Row, row
from session_costs import Costs, Step, invented, recorded_steps, run
from written_session import run_written

BUDGETS = (20_000, 60_000, 150_000)
LENGTHS = (5, 20, 60, 200)
_PATH = re.compile(r"[\w./-]+\.(?:py|txt|cfg|toml|rst|md)\b")


def rows() -> list[Row]:
    """The table of this bench."""
    written = asyncio.run(run_written())
    table = _describe("written, 12 waves, 4 edits", [written])
    sessions = [written]
    recorded = list(_recorded())
    for budget in BUDGETS:
        invented_runs = []
        for waves in LENGTHS:
            ways = run(invented(waves, waves), "Look.", budget)
            invented_runs.append(ways)
            table.append(
                row(
                    f"invented, {waves} waves at {budget:,}: of a transcript", _ratio(ways), "ratio"
                )
            )
        table += _describe(f"invented, 5 to 200 waves at {budget:,}", invented_runs)
        runs = [run(steps, task, budget) for task, steps in recorded]
        if runs:
            table += _describe(f"recorded, {len(runs)} runs at {budget:,}", runs)
        sessions += [*invented_runs, *runs]
    ratios = [_ratio(ways) for ways in sessions]
    pressed = [_ratio(ways) for ways in sessions if ways["epochs"].epochs > 1]
    table += [
        row("all sessions / their transcripts, median", median(ratios), "ratio"),
        row("sessions that fill their budget / transcript, median", median(pressed), "ratio"),
        row("a session / its transcript, worst of all", max(ratios), "ratio"),
    ]
    return table


def _ratio(ways: Mapping[str, Costs], way: str = "epochs", base: str = "transcript") -> float:
    return ways[way].units / ways[base].units


def _describe(name: str, runs: Sequence[Mapping[str, Costs]]) -> list[Row]:
    epochs = [_ratio(ways) for ways in runs]
    fresh = [_ratio(ways, "fresh") for ways in runs]
    over = sum(not ways["epochs"].within_budget for ways in runs)
    table = [
        row(f"{name}: epochs / transcript, median", median(epochs), "ratio"),
        row(f"{name}: epochs / transcript, worst", max(epochs), "ratio"),
        row(f"{name}: every packet afresh / transcript, median", median(fresh), "ratio"),
        row(f"{name}: prompts over the budget", over, "", most=0),
        row(f"{name}: epochs a session, median", median(w["epochs"].epochs for w in runs), ""),
    ]
    if "summarised" in runs[0]:
        summed = [_ratio(ways, "summarised") for ways in runs]
        anywhere = [_ratio(w, "epochs, any prefix", "transcript, any prefix") for w in runs]
        table += [
            row(f"{name}: cut and summarised / transcript, median", median(summed), "ratio"),
            row(f"{name}: where any prefix is cached, worst", max(anywhere), "ratio"),
        ]
    tokens = [median(w[way].tokens for w in runs) for way in ("epochs", "transcript")]
    table.append(row(f"{name}: tokens sent, of a transcript's", tokens[0] / tokens[1], "ratio"))
    if needed := sum(ways["epochs"].needed for ways in runs):
        held, of_fresh = (sum(w[way].present for w in runs) / needed for way in ("epochs", "fresh"))
        table += [
            row(f"{name}: needed facts in the packet", held, "of 1"),
            row(
                f"{name}: … of those when every packet is afresh",
                held / of_fresh,
                "ratio",
                least=1.0,
            ),
        ]
        for name_of, title in (("lines", "lines of results"), ("names", "identifiers of results")):
            pairs = [[getattr(w[way], name_of) for w in runs] for way in ("epochs", "fresh")]
            here, anew = (sum(n for n, _ in held) / sum(of for _, of in held) for held in pairs)
            table += [
                row(f"{name}: {title} quoted later, in the packet", here, "of 1"),
                row(f"{name}: … of those when every packet is afresh", here / anew, "ratio"),
            ]
    return table


def _recorded() -> Iterable[tuple[str, list[Step]]]:
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    folder = Path(data) / "agent-traces"
    if not data or not folder.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with agent-traces")
        return
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        yield lines[0]["task"], recorded_steps(lines[0]["task"], lines[1:])
