"""What a later edit needed and the prompt still held, and what that cost, beside cut transcripts.

The recorded runs (SWE-agent/mini-swe-agent, MIT, © 2025 Kilian A. Lieret and Carlos E. Jimenez) are in the
folder that ``COCKPIT_BENCH_DATA`` names. A run's final patch is its last output with ``+++ b/`` and ``@@``;
an edit is a command that changes a file of it. *Changed lines* are the patch's context and removed lines of
that file (eight characters and more) that outputs had shown before the edit; *read lines* are all lines that
commands which only read had shown of it; *own lines* are lines of the agent's earlier commands that it types
again. A line is kept where the prompt of its wave has it. Need and price come from the same run at the same
budget, the answer's reserve outside of it. Constants were tuned on eight runs; the others are reported.

``python bench/needed.py tune`` prints the tuned runs, ``python bench/needed.py images FOLDER`` draws the
curves.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from measure import Row, row
from needed_images import draw_curves
from prompt_cache import Cache, blocks_of
from recorded_sessions import Session, Step, count_fixed, only_reads, opening, recorded_steps

from cockpit.decide.model import Prompt
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.context.packet_epoch import DEFAULT_PRICES
from cockpit.store.context.packets import Packet

BUDGETS = (8_000, 16_000, 24_000, 32_000, 64_000)
TUNED = 8
"""Runs, the first by name, that constants were tuned on."""
LEAST_CHARS = 8
KINDS = ("changed", "read", "own")
RIVALS = ("last-N", "last-N, halved", "trim_messages", "last-N, same size")
BARS = {
    "changed": {8_000: 0.85, 16_000: 0.98, 24_000: 0.99, 32_000: 0.99, 64_000: 0.99},
    "read": {16_000: 0.75, 32_000: 0.95, 64_000: 0.99},
    "own": {16_000: 0.85, 32_000: 0.99, 64_000: 0.99},
}
ABOVE_SAME_SIZE = {"changed": {8_000: 0.15, 16_000: 0.03}, "read": {8_000: 0.05, 16_000: 0.30}}
_PLACE = re.compile(r"^\s*(?:[\w./-]+\.\w+[:-])?\d+[:\t-]|^[+-]")
"""What ``grep -n`` and differences write before a line."""
_WRITES = r"sed -i|\bwrite\(|write_text|git apply|\bpatch -|>\s*\S*{name}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded run."""

    name: str
    task: str
    actions: Sequence[dict[str, Any]]
    steps: Sequence[Step]
    needs: Sequence[dict[str, frozenset[str]]]
    """For each action, the lines that it needs, by kind."""


@dataclass(slots=True)
class Result:
    """One way through a run: lines needed and kept by kind, and the price in cost units."""

    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    needed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    units: int = 0
    sizes: list[int] = field(default_factory=list)
    epochs: int = 0

    def look(self, needs: dict[str, frozenset[str]], lines: Callable[[], set[str]]) -> None:
        """Count the needed lines that are kept."""
        if any(needs.values()):
            held = lines()
            for kind, wanted in needs.items():
                self.needed[kind] += len(wanted)
                self.kept[kind] += len(wanted & held)


def rows() -> list[Row]:
    """The table of this bench."""
    runs = load_runs()[TUNED:]
    return tabulate(measure_all(runs)) if runs else []


def load_runs() -> list[Recorded]:
    """Read the recorded runs; none where there is no data."""
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    folder = Path(data) / "agent-traces"
    if not data or not folder.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with agent-traces")
        return []
    return [run for path in sorted(folder.glob("*.jsonl.gz")) if (run := _read(path)) is not None]


def _read(path: Path) -> Recorded | None:
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    task, actions = lines[0]["task"], lines[1:]
    patches = [a["output"] for a in actions if "+++ b/" in a["output"] and "@@" in a["output"]]
    if not patches:
        return None
    needs = _find_needs(actions, _patched_lines(patches[-1]))
    return Recorded(path.name.split(".")[0], task, actions, recorded_steps(actions), needs)


def _patched_lines(patch: str) -> dict[str, set[str]]:
    """Return the context and removed lines of a patch by file."""
    files: dict[str, set[str]] = {}
    name, in_hunk = "", False
    for line in patch.splitlines():
        if line.startswith("+++ b/"):
            name, in_hunk = line[6:].split("\t")[0], False
            files[name] = set()
        elif line.startswith(("diff --git", "--- ")):
            in_hunk = False
        elif line.startswith("@@"):
            in_hunk = True
        elif name and in_hunk and line[:1] in (" ", "-"):
            files[name] |= lines_of_text(line[1:])
    return files


def _find_needs(
    actions: Sequence[dict[str, Any]], patched: dict[str, set[str]]
) -> list[dict[str, frozenset[str]]]:
    shown = set[str]()
    own = set[str]()
    read: dict[str, set[str]] = {name: set() for name in patched}
    found = []
    for action in actions:
        command, output = str(action["command"]), str(action["output"])
        edited = [name for name in patched if _changes(command, name)]
        typed = lines_of_text(command)
        found.append(
            {
                "changed": frozenset().union(*(patched[name] & shown for name in edited)),
                "read": frozenset().union(*(read[name] for name in edited)),
                "own": frozenset(typed & own),
            }
        )
        own |= typed
        shown |= lines_of_text(output)
        for name in patched:
            if name in command and name not in edited and only_reads(command):
                read[name] |= lines_of_text(output)
    return found


def _changes(command: str, name: str) -> bool:
    writes = _WRITES.format(name=re.escape(name))
    return name in command and re.search(writes, command) is not None


@lru_cache(maxsize=100_000)
def lines_of_text(text: str) -> frozenset[str]:
    """Return the lines of a text that count, without what is written before them."""
    found = set[str]()
    for line in text.splitlines():
        found.update({line.strip(), _PLACE.sub("", line).strip()})
    return frozenset(line for line in found if len(line) >= LEAST_CHARS)


def lines_of_prompt(prompt: Prompt) -> set[str]:
    lines = set[str]()
    for message in prompt.messages:
        lines |= lines_of_text(message.text)
        for call in message.calls:
            for value in json.loads(call.arguments).values():
                lines |= lines_of_text(str(value))
    return lines


Measured = dict[int, list[dict[str, Result]]]
"""By budget: for each run, the result of each way."""


def measure_all(runs: Iterable[Recorded], budgets: Sequence[int] = BUDGETS) -> Measured:
    """Go through each run in each way."""
    measured: Measured = {budget: [] for budget in budgets}
    for run in runs:
        transcript = run_transcript(run)
        for budget in budgets:
            ours = run_packets(run, budget)
            results = {"packets": ours, "transcript": transcript}
            for rival in RIVALS:
                results[rival] = _run_rival(run, budget, rival, ours.sizes)
            measured[budget].append(results)
    return measured


def run_transcript(run: Recorded) -> Result:
    """Go through a run with a growing transcript."""
    session, cache, result = Session.with_budget(BUDGETS[-1]), Cache("breakpoints"), Result()
    for step in [opening(run.task), *run.steps]:
        session.see(step)
        tokens, _, units = cache.send(blocks_of(session.transcript()))
        result.units += units
        result.sizes.append(tokens)
    return result


def run_packets(run: Recorded, budget: int) -> Result:
    """Go through a run with packets of ``budget`` tokens, the answer's reserve outside."""
    session, cache, result = (
        Session.with_budget(budget, answer_outside=True),
        Cache("breakpoints"),
        Result(),
    )
    before: Packet | None = None
    for at, step in enumerate([opening(run.task), *run.steps]):
        session.see(step)
        before, prompt = session.compile(before)
        result.units += cache.send(blocks_of(prompt))[2]
        result.sizes.append(before.rendered_tokens or 0)
        result.epochs += int(bool(before.epoch and before.epoch.begins))
        if at < len(run.needs):
            result.look(run.needs[at], lambda prompt=prompt: lines_of_prompt(prompt))
    return result


def _run_rival(run: Recorded, budget: int, rival: str, sizes: Sequence[int]) -> Result:
    """Cut the transcript; system text, tools and task stay."""
    result, fixed = Result(), count_fixed(run.task)
    parts: list[tuple[int, frozenset[str], bool]] = []
    first = last_first = length = 0
    for at in range(len(run.needs)):
        if at:
            parts += _parts(run.actions[at - 1], apart=rival == "trim_messages")
        room = (sizes[at] if rival == "last-N, same size" else budget) - fixed
        if rival != "last-N, halved":
            first = _last_that_fit(parts, room)
        elif sum(tokens for tokens, _, _ in parts[first:]) > room:
            first = _last_that_fit(parts, room // 2)
        while rival == "trim_messages" and first < len(parts) and not parts[first][2]:
            first += 1
        kept = parts[first:]
        size = sum(tokens for tokens, _, _ in kept)
        cached = fixed + (sum(t for t, _, _ in parts[first:length]) if first == last_first else 0)
        result.units += DEFAULT_PRICES.units(fixed + size, cached if at else 0)
        last_first, length = first, len(parts)
        result.look(
            run.needs[at],
            lambda kept=kept: set().union(
                lines_of_text(run.task), *(lines for _, lines, _ in kept)
            ),
        )
    return result


def _parts(action: dict[str, Any], *, apart: bool) -> list[tuple[int, frozenset[str], bool]]:
    """Return an exchange, or its two messages, as (tokens, lines, whether it is what the agent got)."""
    said, got = f"{action['says']}\n{action['command']}", str(action["output"])
    texts = [(said, False), (got, True)] if apart else [(f"{said}\n{got}", True)]
    return [(count_tokens(text) + 4, lines_of_text(text), is_got) for text, is_got in texts]


def _last_that_fit(parts: Sequence[tuple[int, frozenset[str], bool]], room: int) -> int:
    first = len(parts)
    while first and parts[first - 1][0] <= room:
        first -= 1
        room -= parts[first][0]
    return first


def tabulate(measured: Measured) -> list[Row]:
    """Return the shares of all needed lines of all runs, and the prices, as rows."""
    table, prices = [], []
    for budget, results in measured.items():
        shares = {way: shares_of([r[way] for r in results]) for way in ("packets", *RIVALS)}
        for kind in KINDS:
            name = f"{budget:,}: {kind} lines kept"
            least = BARS[kind].get(budget)
            table.append(row(name, shares["packets"][kind], "of 1", least=least))
            table.append(
                row(
                    f"{name}, worst run",
                    min(shares_of([r["packets"]])[kind] for r in results),
                    "of 1",
                )
            )
            table += [row(f"{name}, {way}", shares[way][kind], "of 1") for way in RIVALS]
            above = ABOVE_SAME_SIZE.get(kind, {}).get(budget)
            gain = shares["packets"][kind] - shares["last-N, same size"][kind]
            table.append(row(f"{name}, above last-N of the same size", gain, "", least=above))
        ours = prices_of(results, "packets")
        prices += ours
        table += [
            row(
                f"{budget:,}: prompts over the budget",
                sum(size > budget for r in results for size in r["packets"].sizes),
                "",
                most=0,
            ),
            row(f"{budget:,}: price / transcript, median", median(ours), "ratio", most=0.92),
            row(f"{budget:,}: price / transcript, worst", max(ours), "ratio", most=1.02),
            *(
                row(
                    f"{budget:,}: price / transcript, {way}",
                    median(prices_of(results, way)),
                    "ratio",
                )
                for way in RIVALS[:3]
            ),
            row(
                f"{budget:,}: epochs a run, median",
                median(r["packets"].epochs for r in results),
                "",
            ),
        ]
    return table


def prices_of(results: Sequence[dict[str, Result]], way: str) -> list[float]:
    """Return the price of each run, of a cached transcript's."""
    return [each[way].units / each["transcript"].units for each in results]


def shares_of(results: Sequence[Result]) -> dict[str, float]:
    """Return the share of needed lines that were kept, by kind."""
    return {
        kind: sum(r.kept[kind] for r in results) / max(sum(r.needed[kind] for r in results), 1)
        for kind in KINDS
    }


def draw_images(measured: Measured, folder: Path) -> None:
    """Draw what was kept and what it cost as ``needed-lines.svg`` and ``needed-price.svg``."""
    budgets = list(measured)
    kept: dict[str, list[float]] = {}
    for way, name in (("packets", "packets"), ("last-N, same size", "last-N, same size")):
        for kind in ("changed", "read"):
            shares = [shares_of([r[way] for r in measured[b]])[kind] for b in budgets]
            kept[f"{name}: {kind}"] = shares
    costs = {
        way: [median(prices_of(measured[b], way)) for b in budgets]
        for way in ("packets", "last-N", "last-N, halved")
    }
    draw_curves(folder / "needed-lines.svg", "Needed lines kept", budgets, kept, 1.0)
    draw_curves(folder / "needed-price.svg", "Price, of a transcript's", budgets, costs, 3.0)


def summarise(measured: Measured) -> None:
    """Print one line a budget."""
    for budget, results in measured.items():
        ours = shares_of([r["packets"] for r in results])
        worst = {
            k: min(shares_of([r["packets"]])[k] for r in results if r["packets"].needed[k])
            for k in KINDS
        }
        same = shares_of([r["last-N, same size"] for r in results])
        last = shares_of([r["last-N"] for r in results])
        price = prices_of(results, "packets")
        size = median(median(r["packets"].sizes) for r in results)
        print(
            f"{budget:>7,} "
            + " | ".join(
                f"{k} {ours[k]:.3f} (worst {worst[k]:.2f}, last-N {last[k]:.3f}, same {same[k]:.3f})"
                for k in KINDS
            )
            + f" | price {median(price):.3f} {max(price):.3f} | {size:,.0f} tokens, "
            f"{median(r['packets'].epochs for r in results)} epochs",
            flush=True,
        )


if __name__ == "__main__":
    verb, *rest = sys.argv[1:] or ["report"]
    all_runs = load_runs()
    if verb == "images":
        reported = measure_all(all_runs[TUNED:])
        draw_images(reported, Path(rest[0]))
        summarise(reported)
    else:
        chosen = all_runs[:TUNED] if verb == "tune" else all_runs[TUNED:]
        summarise(measure_all(chosen, [int(b) for b in rest] or BUDGETS))
