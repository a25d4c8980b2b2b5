"""Many trials of every kind of fault, as many as one has time for: ``make chaos``.

Prints for each kind how many trials there were, and in how many something was lost, happened twice or was
left unfinished; then each of those with its number, by which it can be played again. Exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults import session_trials
from faults.injected_faults import SQL_ERRORS, SYSTEM_ERRORS, Fault, Kind
from faults.session_trials import Verdict, World

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
        yield 1 + int(turn * step)


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


def main() -> int:
    """Run the trials that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], help="faults; all without one")
    parser.add_argument("--trials", type=int, default=200, help="trials of each kind")
    parser.add_argument("--at", type=int, help="play only the moment of this number")
    options = parser.parse_args()
    rows = []
    print(f"{'':<28}{'trials':>10}{'lost':>10}{'doubled':>10}{'stranded':>10}", flush=True)
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        for row in try_sessions(Path(name), options.kinds or KINDS, options.trials, options.at):
            rows.append(row)
            print(row, *row.words, sep="\n", flush=True)
    return any(row.words for row in rows)


if __name__ == "__main__":
    sys.exit(main())
