"""What the prompts of sessions cost, beside a growing transcript of the same exchange with the same cache.

Cached tokens cost a tenth of a token without a cache, tokens that are kept in it one and a quarter. The
recorded runs (SWE-agent/mini-swe-agent, MIT, © 2025 Kilian A. Lieret and Carlos E. Jimenez) are in the
folder that ``COCKPIT_BENCH_DATA`` names; each of their actions is one exchange, and what a command read is
needed by later commands that name the same files.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

from measure import Row, row
from session_costs import Costs, Step, invented, run

from cockpit.access.confined_paths import Confined
from cockpit.act.reading.reading_commands import find_reading
from cockpit.loop.phases.tool_results import Exchange
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.outline import outline
from cockpit.observe.scope_items import parse_item
from cockpit.store.context.facts import Fact

BUDGETS = (20_000, 60_000, 150_000)
LENGTHS = (5, 20, 60, 200)
_PATH = re.compile(r"[\w./-]+\.(?:py|txt|cfg|toml|rst|md)\b")


def rows() -> list[Row]:
    """The table of this bench."""
    table: list[Row] = []
    ratios: list[float] = []
    for budget in BUDGETS:
        runs = [run(invented(waves, waves), "Look.", budget) for waves in LENGTHS]
        for waves, ways in zip(LENGTHS, runs, strict=True):
            ratio = ways["epochs"].units / ways["transcript"].units
            ratios.append(ratio)
            table.append(row(f"{waves} waves at {budget:,}: of a transcript", ratio, "ratio"))
        table += _describe(f"invented, {budget:,}", runs)
    for budget in BUDGETS:
        runs = [run(steps, task, budget) for task, steps in _recorded()]
        if runs:
            table += _describe(f"recorded, {budget:,}", runs)
            ratios += [ways["epochs"].units / ways["transcript"].units for ways in runs]
    return [
        *table,
        row("cost of all sessions / cached transcript, median", median(ratios), "ratio", most=0.8),
        row("cost of a session / cached transcript, worst", max(ratios), "ratio", most=1.05),
    ]


def _describe(name: str, runs: Sequence[dict[str, Costs]]) -> list[Row]:
    def of(way: str, base: str) -> list[float]:
        return [ways[way].units / ways[base].units for ways in runs]

    epochs = of("epochs", "transcript")
    any_prefix = of("epochs, any prefix", "transcript, any prefix")
    needed = sum(ways["epochs"].needed for ways in runs)
    table = [
        row(f"{name}: epochs / transcript, median", median(epochs), "ratio"),
        row(f"{name}: epochs / transcript, worst", max(epochs), "ratio"),
        row(f"{name}: the same where any prefix is cached, worst", max(any_prefix), "ratio"),
        row(
            f"{name}: every packet afresh / transcript, median",
            median(of("fresh", "transcript")),
            "ratio",
        ),
        row(
            f"{name}: cut and summarised / transcript, median",
            median(of("summarised", "transcript")),
            "ratio",
        ),
        row(
            f"{name}: prompts over the budget",
            sum(not w["epochs"].within_budget for w in runs),
            "",
            most=0,
        ),
        row(f"{name}: epochs a session, median", median(w["epochs"].epochs for w in runs), ""),
    ]
    if needed:
        share = [sum(w[way].present for w in runs) / needed for way in ("epochs", "fresh")]
        table.append(row(f"{name}: needed facts in the packet", share[0], "of 1"))
        table.append(
            row(
                f"{name}: needed facts, of those when compiled afresh",
                share[0] / share[1],
                "ratio",
                least=1.0,
            )
        )
    return table


def _recorded() -> Iterable[tuple[str, list[Step]]]:
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    folder = Path(data) / "agent-traces"
    if not data or not folder.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with agent-traces")
        return
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        yield lines[0]["task"], _steps(lines[1:])


def _steps(actions: Sequence[dict[str, object]]) -> list[Step]:
    steps: list[Step] = []
    last: dict[str, str] = {}
    for number, action in enumerate(actions, 2):
        command, output = str(action["command"]), str(action["output"])
        exchange = Exchange(
            wave=number, place=1, text=str(action["says"]), call="run", arguments={"command": command},
            result=output, status="failed" if action["returncode"] else "confirmed",
        )  # fmt: skip
        plain, items = exchange.fact(), _items_read(command)
        facts = (plain,) if not items else _as_read(exchange, items)
        named = set(_PATH.findall(command))
        needs = frozenset(last[name] for name in named if name in last)
        steps.append(Step(facts, (plain,), needs))
        for name in {*named, *_PATH.findall(output)}:
            last[name] = facts[-1].fact_id
    return steps


def _items_read(command: str) -> tuple[str, ...]:
    """Return what a command reads, as the items of the context request that cockpit makes of it."""
    inside = command.replace("cd /testbed && ", "").replace("/testbed/", "")
    reading = find_reading(["bash", "-c", inside], _nowhere())
    return reading.items if reading and not reading.refusal else ()


@cache
def _nowhere() -> Confined:
    return Confined(Path(tempfile.mkdtemp(prefix="cockpit-bench-")))


def _as_read(exchange: Exchange, items: tuple[str, ...]) -> tuple[Fact, ...]:
    """Return a command that reads as cockpit stores it: the request's answer, and what was read."""
    answer = (
        f"Approved by rules: {', '.join(items)}.\nWhat was read is in the context under its source."
    )
    item = parse_item(items[0])
    read = make_fact(
        item, exchange.result, reference=f"{item} ({len(exchange.result)} characters)",
        outline=outline(item.ref, exchange.result) if item.kind == "file" else None,
        provenance={"items": list(items)}, key="; ".join(items),
    )  # fmt: skip
    return replace(exchange, result=answer, status="approved").fact(), read
