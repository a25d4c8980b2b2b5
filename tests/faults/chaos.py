"""Many trials of every kind of fault, as many as one has time for: ``make chaos``.

Prints for each kind how many trials there were, and in how many something was lost, happened twice or was
left unfinished; then each of those with its number, by which it can be played again. Exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import state_for_tests
from chains import chain_kill
from faults import session_trials
from faults.crowd_trials import try_crowd
from faults.injected_faults import SQL_ERRORS, SYSTEM_ERRORS, Fault, Kind
from faults.machine_trials import in_small_disk, try_disk, try_torn_log
from faults.recovery_trials import STATES, try_state
from faults.session_trials import Verdict, World
from faults.simulation import Simulation
from faults.terminal_trials import Trial, try_terminal

OTHERS = (
    *("state", "chain", "crowd", "torn log", "full disk", "read-only disk"),
    *("simulation", "terminal"),
)
KINDS: tuple[Kind, ...] = ("kill", *SQL_ERRORS, *SYSTEM_ERRORS)  # type: ignore[assignment]


@dataclass
class Row:
    """The trials of one kind of fault."""

    kind: str
    trials: int = 0
    lost: int = 0
    doubled: int = 0
    stranded: int = 0
    words: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, name: str, verdict: Verdict) -> None:
        """Count a trial."""
        self.trials += 1
        self.lost += bool(verdict.lost)
        self.doubled += bool(verdict.doubled)
        self.stranded += bool(verdict.stranded)
        if not verdict:
            self.words.append(f"{self.kind} {name}: {verdict}")

    def __str__(self) -> str:
        numbers = (self.trials, self.lost, self.doubled, self.stranded)
        counts = "".join(f"{number:>10}" for number in numbers)
        return f"{self.kind:<28}{counts}{self.seconds:>9.0f} s"


def choose(count: int, trials: int) -> Iterator[int]:
    """Choose ``trials`` of the moments 1 to ``count``, evenly; all of them when there are fewer."""
    step = max(1.0, count / max(trials, 1))
    for turn in range(min(count, trials)):
        yield 1 + int((turn + 0.5) * step)


def try_moments(world: World, folder: Path, kind: Kind, moments: Iterable[int]) -> Row:
    """Let a fault of ``kind`` happen at each of ``moments``."""
    row, began = Row(f"session: {kind}"), time.monotonic()
    for number in moments:
        row.add(
            f"at {number}", session_trials.try_fault(world, folder / "trial", Fault(kind, number))
        )
    row.seconds = time.monotonic() - began
    return row


def try_sessions(folder: Path, kinds: Iterable[Kind], trials: int, at: int | None) -> Iterator[Row]:
    """Let faults of ``kinds`` befall a session, at ``trials`` moments each, or only at ``at``."""
    session_trials.load_everything()
    world = session_trials.make_world(folder / "world")
    moments = session_trials.list_moments(world.copy(folder / "listed"))
    counts = {
        kind: sum(
            kind == "kill" or (moment.kind == "sql") == (kind in SQL_ERRORS) for moment in moments
        )
        for kind in KINDS
    }
    for kind in kinds:
        chosen = choose(counts[kind], trials) if at is None else [at]
        yield try_moments(world, folder, kind, chosen)


def simulate(folder: Path, seed: int, steps: int) -> Row:
    """Simulate ``steps`` steps twice from one seed; that the journals differ counts as lost."""
    row, began = Row(f"simulation of {steps} steps"), time.monotonic()
    digests = []
    for turn in range(2):
        simulation = Simulation(folder / "simulated", seed)
        row.add(f"seed {seed}, turn {turn}", asyncio.run(simulation.run(steps)))
        digests.append(simulation.digest())
    if digests[0] != digests[1]:
        row.lost += 1
        row.words.append(f"seed {seed} gave two journals: {digests}")
    row.seconds = time.monotonic() - began
    return row


def main() -> int:
    """Run the trials that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", choices=[*KINDS, *OTHERS, []], help="faults; all without one"
    )
    parser.add_argument("--disk", type=Path, help="the small disk that this process is to use")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10_000, help="steps of the simulation")
    parser.add_argument("--trials", type=int, default=200, help="trials of each kind")
    parser.add_argument("--at", type=int, help="play only the moment of this number")
    options = parser.parse_args()
    state_for_tests.install()
    kinds = options.kinds or [*KINDS, *OTHERS]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        if options.disk is not None:
            for row in _rows(Path(name), kinds, options):
                print(json.dumps(asdict(row)))
            return 0
        print(f"{'':<28}{'trials':>10}{'lost':>10}{'doubled':>10}{'stranded':>10}", flush=True)
        for row in _rows(Path(name), kinds, options):
            failed += len(row.words)
            print(row, *row.words, sep="\n", flush=True)
    return failed > 0


def _rows(folder: Path, kinds: Sequence[str], options: argparse.Namespace) -> Iterator[Row]:
    session_trials.load_everything()
    befalling = [kind for kind in KINDS if kind in kinds]
    if befalling:
        yield from try_sessions(folder, befalling, options.trials, options.at)
    seeds = range(options.seed, options.seed + max(1, options.trials // 10))
    if "chain" in kinds:
        yield _row("chain: kills at random", seeds, partial(try_chain, folder / "chain"))
    if "crowd" in kinds:
        for processes in (2, 8):
            yield _row(
                f"{processes} processes", seeds, partial(try_crowd, folder / "crowd", processes)
            )
    world = session_trials.make_world(folder / "machine")
    if "state" in kinds:
        row, began = Row("killed in a state"), time.monotonic()
        for number in choose(len(STATES), options.trials) if options.at is None else [options.at]:
            state = STATES[number - 1]
            row.add(f"{number} {state}", try_state(world, folder / "state", state))
        row.seconds = time.monotonic() - began
        yield row
    if "torn log" in kinds:
        moments = len(session_trials.list_moments(world.copy(folder / "listed-log")))
        yield _row("torn log", seeds, partial(try_torn_log, world, folder / "log", moments))
    for kind in ("full disk", "read-only disk"):
        if kind in kinds and options.disk is None:
            words = [kind, "--disk", str(folder / kind), "--seed", str(options.seed)]
            printed = in_small_disk([*words, "--trials", str(options.trials)], folder / kind)
            yield Row(**json.loads(printed))
        elif kind in kinds:
            read_only = kind == "read-only disk"
            yield _row(kind, seeds, partial(try_disk, options.disk, read_only=read_only))
    if "terminal" in kinds:
        seeds = range(options.seed, options.seed + options.trials)
        yield try_terminals(folder / "terminal", seeds)
    if "simulation" in kinds:
        yield simulate(folder, options.seed, options.steps)


def try_chain(folder: Path, seed: int) -> Verdict:
    """Kill the sessions and the supervisor of a chain at random; whoever goes on brings it to its end."""
    try:
        os.environ["COCKPIT_STATE_DIR"] = str(folder / "state")
        project, _ = chain_kill.play(folder, seed)
        chain_kill.check(project)
    except AssertionError as error:
        return Verdict(stranded=[str(error)])
    shutil.rmtree(folder)
    return Verdict()


def try_terminals(folder: Path, seeds: Iterable[int]) -> Row:
    """Take the terminal away from a screen for each seed, and print how long the slowest took to end."""
    row, began = Row("terminals that go away"), time.monotonic()
    ended: list[float] = []
    for seed in seeds:
        verdict = try_terminal(folder, seed, report=lambda trial, seconds: ended.append(seconds))
        row.add(str(Trial(seed)), verdict)
    row.seconds = time.monotonic() - began
    ended.sort()
    print(
        f"terminals: ended after {ended[len(ended) // 2]:.2f} s (median), {ended[-1]:.2f} s (most)"
    )
    return row


def _row(kind: str, seeds: Iterable[int], try_seed: Callable[[int], Verdict]) -> Row:
    row, began = Row(kind), time.monotonic()
    for seed in seeds:
        row.add(f"seed {seed}", try_seed(seed))
    row.seconds = time.monotonic() - began
    return row


if __name__ == "__main__":
    sys.exit(main())
