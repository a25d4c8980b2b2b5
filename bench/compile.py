"""Orient under load: 50,000 facts into 150,000 tokens.

Times are CPU milliseconds of this process, the median of several runs. Quality is the value of the
selected facts over a bound that is worked out here, item by item, without the compiler's code;
bounds without its rules show what those rules cost.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from measure import Row, row
from msgspec.structs import replace

from cockpit.core.canonical_json import text_digest
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.orient.compile_packet import compile_packet, select_for_packet
from cockpit.orient.fact_columns import columns_from_facts, load_columns
from cockpit.orient.select_facts import Selection
from cockpit.store.context import facts as store_facts
from cockpit.store.context import packets, profiles
from cockpit.store.context.facts import Fact, Level, SessionFact
from cockpit.store.context.profile_model import BANDS, Profile, load_shipped
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions, waves

FACTS = 50_000
WAVES = 8
RUNS = 9
KINDS = ("file", "diff", "search", "symbol", "exchange", "docs", "note", "log")


def rows() -> list[Row]:
    """The table of this bench."""
    linked = made()
    columns = columns_from_facts(linked)
    profile = load_shipped()
    table = []
    for ranking in ("utility", "density"):
        shape = replace(profile, ranking=ranking)
        table.append(
            row(
                f"compile 50,000 facts ({ranking})",
                cpu_ms(lambda shape=shape: compile_packet(columns, shape, WAVES)),
                "ms CPU",
                most=60,
            )
        )
    table.append(
        row(
            "compile 50,000 facts, from records",
            cpu_ms(lambda: compile_packet(linked, profile, WAVES), 3),
            "ms CPU",
        )
    )
    for ranking in ("utility", "density"):
        table += quality(linked, replace(profile, ranking=ranking))
    return table + from_store(linked)


def cpu_ms(work: Callable[[], object], runs: int = RUNS) -> float:
    """Median CPU time of ``work``, in milliseconds, after one run that does not count."""
    work()
    took = []
    for _ in range(runs):
        before = time.process_time()
        work()
        took.append((time.process_time() - before) * 1000)
    return median(took)


def made() -> list[SessionFact]:
    """Facts of 20 to 200 tokens, of eight kinds and 2,000 files, seen in eight waves."""
    dice = random.Random(7)
    return [
        SessionFact(
            f"f-{text_digest(str(number))[:24]}",
            kind := dice.choice(KINDS),
            f"{kind}:src/part_{dice.randrange(2_000)}.py:{dice.randrange(90)}",
            BANDS[dice.randrange(5)],
            1 + number * WAVES // FACTS,
            number,
            False,
            dice.randrange(20) == 0,
            dice.randrange(1, 1_000_001),
            (dice.randrange(20, 201), dice.randrange(5, 60), dice.randrange(4, 14)),
            f"place-{number}" if dice.randrange(2) else "",
        )
        for number in range(FACTS)
    ]


@dataclass(frozen=True, slots=True)
class Item:
    """A fact that could be selected: worth per token, tokens in full, and what limits it."""

    each: float
    tokens: int
    band: int
    source_type: tuple[int, int]
    source_ref: tuple[int, int]


def quality(linked: Sequence[SessionFact], profile: Profile) -> list[Row]:
    """Value over the bound, and whether every floor, ceiling and the budget held."""
    chosen = select_for_packet(linked, profile, WAVES)
    value, items = worth(chosen, profile)
    broken = sum(chosen.used) > profile.total_token_budget
    for used, band in zip(chosen.used, profile.bands, strict=True):
        broken |= used > band.max_tokens
        # There was more than enough for every band but the reserve: each floor must be full but
        # for less than one fact.
        broken |= band.name != "reserve" and used <= band.min_tokens - 200
    name = profile.ranking
    return [
        row(f"quality ({name}) of the bound", value / bound(items, profile), "ratio", least=0.98),
        row(
            f"quality ({name}), bound without source caps",
            value / bound(items, profile, caps=False),
            "ratio",
        ),
        row(
            f"quality ({name}), bound without caps and targets",
            value / bound(items, profile, caps=False, targets=False),
            "ratio",
        ),
        row(f"limits broken ({name})", int(broken), "", most=0),
    ]


def worth(chosen: Selection, profile: Profile) -> tuple[float, list[Item]]:
    """What was selected is worth, and everything that could have been, best first."""
    columns = chosen.columns
    value = 0.0
    items = []
    for score, tokens, full, band, kind, ref, out in zip(
        chosen.scores.worth.tolist(),
        chosen.tokens.tolist(),
        columns.full.tolist(),
        columns.band.tolist(),
        columns.source_type.tolist(),
        columns.source_ref.tolist(),
        columns.superseded.tolist(),
        strict=True,
    ):
        each = score if profile.ranking == "utility" else score / full
        value += each * tokens
        if not out:
            items.append(Item(each, full, band, (kind, band), (ref, band)))
    return value, sorted(items, key=lambda item: -item.each)


def bound(
    items: Sequence[Item], profile: Profile, *, caps: bool = True, targets: bool = True
) -> float:
    """The most that facts cut anywhere are worth within the budget, floors and ceilings.

    The limits nest (source reference in source type in band in budget), so the best first is exact.
    ``caps``: a reference holds a third and a type three quarters of its band's target, or its largest
    fact. ``targets``: no band grows beyond its target while another has not reached its own.
    """
    shared = profile.total_token_budget - sum(band.min_tokens for band in profile.bands)
    used: Counter[object] = Counter()
    total = 0.0
    left = [item.tokens for item in items]
    goals = [band.target_tokens for band in profile.bands]
    largest: dict[object, int] = {}
    for item in items:
        for source in (item.source_type, ("ref", item.source_ref)):
            largest[source] = max(largest.get(source, 0), item.tokens)
    stages = [[band.min_tokens for band in profile.bands], goals]
    stages.append([band.max_tokens for band in profile.bands])
    for stage, limits in enumerate(stages):
        if stage == 1 and not targets:
            continue
        for place, item in enumerate(items):
            take = min(left[place], limits[item.band] - used[item.band])
            if caps:
                for source, share in (
                    (item.source_type, goals[item.band] * 3 // 4),
                    (("ref", item.source_ref), goals[item.band] // 3),
                ):
                    take = min(take, max(share, largest[source]) - used[source])
            if stage:
                take = min(take, shared)
            if take <= 0:
                continue
            if stage:
                shared -= take
            left[place] -= take
            for limit in (item.band, item.source_type, ("ref", item.source_ref)):
                used[limit] += take
            total += item.each * take
    return total


def from_store(linked: Sequence[SessionFact]) -> list[Row]:
    """The stage as it runs: read, compile, digest, insert with its journal row, commit."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "cockpit.db", FixedClock(step_s=1), CountingIds()) as store,
    ):
        profile = store.write_now(lambda tx: profiles.ensure_default(tx, 150_000))
        session = store.write_now(lambda tx: begin(tx, Path(folder), profile.profile_id))
        took: dict[str, list[float]] = {"read": [], "all": []}
        for ordinal in range(1, 6):
            wave_id = store.write_now(
                lambda tx, new=linked if ordinal == 1 else (): observed(tx, session, new)
            )
            before = time.process_time()
            columns = store.read_now(lambda c, now=ordinal: load_columns(c, session, now))
            took["read"].append((time.process_time() - before) * 1000)
            packet = compile_packet(columns, profile, ordinal)
            store.write_now(
                lambda tx, wave=wave_id, made=packet: packets.insert(
                    tx, wave, made, pinned_now="", session_id=session
                )
            )
            took["all"].append((time.process_time() - before) * 1000)
            store.write_now(lambda tx, wave=wave_id: through(tx, wave))
    return [
        row("read 50,000 facts into columns", median(took["read"]), "ms CPU"),
        row("orient from the store, end to end", median(took["all"]), "ms CPU", most=200),
    ]


def begin(tx: Tx, root: Path, profile_id: str) -> str:
    """A session to hang the facts on."""
    return sessions.create(
        tx,
        task_type="implement",
        title="bench",
        words="bench",
        target={},
        model="offline",
        policy="ask",
        interactive=False,
        root=root,
        rev=None,
        profile_id=profile_id,
        limits={},
        project="bench",
        branch="main",
    ).session_id


def observed(tx: Tx, session_id: str, linked: Sequence[SessionFact]) -> str:
    """The next wave, with facts of the given shape; their words are short."""
    wave = waves.create(tx, session_id=session_id, trace_id="t-bench")
    store_facts.record(
        tx,
        session_id=session_id,
        wave_id=wave.wave_id,
        ordinal=wave.ordinal,
        pinned_now=wave.pinned_now,
        facts=[
            Fact(
                fact.source_type,
                fact.source_ref,
                fact.band,
                Level(fact.fact_id, fact.level_tokens[0]),
                Level(fact.source_ref, fact.level_tokens[2]),
                Level(fact.fact_id, fact.level_tokens[1]),
                utility=fact.utility,
                dedupe_key=fact.dedupe_key,
            )
            for fact in linked
        ],
    )
    return wave.wave_id


def through(tx: Tx, wave_id: str) -> None:
    """Walk the wave to its end, so that the next may begin."""
    for phase in waves.PHASES[1:]:
        waves.advance(tx, wave_id, phase)


if __name__ == "__main__":
    for line in rows():
        sign = "ok" if line["ok"] else "MISSED"
        print(f"{line['name']:52s}{line['value']:>12} {line['unit']:7s}{line['bar']!s:>8} {sign}")
