"""Sessions in memory, compiled wave by wave by the real compiler, for the bench of costs."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from msgspec.structs import replace
from prompt_cache import Cache, blocks_of
from quoted import NOTHING, Quoted, ShownText, find_quotes

from cockpit.access.confined_paths import Confined
from cockpit.access.reads.plain_reads import read_line
from cockpit.act.model_tools import TOOLS
from cockpit.act.reading_commands import translate
from cockpit.decide.measure_prompt import count_tools
from cockpit.decide.model import PacketFact, Prompt, ToolSpec
from cockpit.decide.render_prompt import render
from cockpit.loop.intake.baseline_facts import baseline, task_fact
from cockpit.loop.phases.orienting import compile_to_fit
from cockpit.loop.phases.tool_results import Exchange, answer_approved, subject_of
from cockpit.loop.phases.wave_epoch import count_changes, digest_tools
from cockpit.loop.phases.wave_prompt import estimate_overheads, render_packet
from cockpit.observe.count_tokens import count_again
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.outline import outline
from cockpit.observe.scope_items import parse_item
from cockpit.orient.epochs import Standing
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.store.context.facts import Fact, FactText, SessionFact
from cockpit.store.context.packet_epoch import DEFAULT_PRICES
from cockpit.store.context.packets import Packet, Rendering, detail_of
from cockpit.store.context.profile_model import Profile, load_shipped, scale

_PATH = re.compile(r"[\w./-]+\.(?:py|txt|cfg|toml|rst|md)\b")
_READING = frozenset(
    ("cd", "cat", "sed", "grep", "rg", "head", "tail", "nl", "find", "ls", "wc", "sort", "uniq", "awk", "cut",
     "git", "echo", "xargs", "tree")
)  # fmt: skip
VOCABULARY = "o200k_base"
KEPT_SHARE = 16
"""Results that failed stay in at most this part of the budget, as in a session."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one wave adds.

    ``facts`` are cockpit's, ``plain`` is what a transcript gets of the same exchange. ``needs`` are the facts
    seen before, by id, that the wave's action was about; ``quotes`` is what its command quotes of results.
    """

    facts: tuple[Fact, ...]
    plain: tuple[Fact, ...]
    needs: frozenset[str] = frozenset()
    quotes: Quoted = NOTHING


@dataclass(slots=True)
class Costs:
    """What a session cost one way: cost units and tokens of all waves, and the largest prompt."""

    units: int = 0
    tokens: int = 0
    cached: int = 0
    largest: int = 0
    present: int = 0
    needed: int = 0
    lines: tuple[int, int] = (0, 0)
    """Lines that later commands quote: those in the packet, and all of them."""
    names: tuple[int, int] = (0, 0)
    """Identifiers that later commands quote: those in the packet, and all of them."""
    epochs: int = 0
    within_budget: bool = True

    def add(self, sent: tuple[int, int, int]) -> None:
        self.tokens += sent[0]
        self.cached += sent[1]
        self.units += sent[2]
        self.largest = max(self.largest, sent[0])


@cache
def tools() -> tuple[ToolSpec, ...]:
    """The tools of a session that implements."""
    return tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in TOOLS)


@cache
def head() -> tuple[Fact, ...]:
    """The facts that every session begins with, in a project without files of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(baseline(Confined(Path(folder)), Path(folder), TOOLS))


@dataclass(slots=True)
class Session:
    """The facts of a session so far, as a store would link them."""

    profile: Profile
    linked: list[SessionFact] = field(default_factory=list)
    plain: list[tuple[int, Fact]] = field(default_factory=list)
    texts: dict[str, FactText] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    """The facts that the last packet shows whole."""
    ordinal: int = 0

    def see(self, step: Step) -> None:
        """Begin the next wave with these facts; one of the same key replaces an older one.

        What is read again and is not whole in the last packet is linked again, as a store does it.
        """
        self.ordinal += 1
        fresh = list(step.facts)
        self.plain += [(self.ordinal, fact) for fact in step.plain]
        keys = {fact.dedupe_key for fact in fresh if fact.dedupe_key}
        ids = {fact.fact_id for fact in fresh}
        subjects = {_subject(fact) for fact in fresh if fact.source_type == "exchange"}
        again = {fact.fact_id for fact in fresh if fact.source_type != "exchange"} - self.whole
        self.linked = [
            replace(
                old,
                superseded=old.superseded
                or (old.dedupe_key in keys and old.fact_id not in ids)
                or old.fact_id in again,
                pinned=old.pinned and not self._is_replaced(old, subjects),
            )
            for old in self.linked
        ]
        here = {fact.fact_id for fact in self.linked if not fact.superseded}
        for place, fact in enumerate(fresh, 1):
            outline = fact.outline.tokens if fact.outline else 0
            self.texts[fact.fact_id] = FactText(
                fact.fact_id, fact.source_type, fact.source_ref, fact.full.text,
                fact.outline.text if fact.outline else None, fact.reference.text,
                dict(fact.provenance or {}),
            )  # fmt: skip
            if fact.fact_id in here:
                continue
            self.linked.append(
                SessionFact(
                    fact.fact_id, fact.source_type, fact.source_ref, fact.band, self.ordinal, place,
                    fact.pinned, False, fact.utility,
                    (fact.full.tokens, outline, fact.reference.tokens), fact.dedupe_key,
                    costs=(fact.cost.full, fact.cost.outline, fact.cost.reference),
                    pinned_short=fact.pinned_short,
                )
            )  # fmt: skip
        self._release_oldest()

    def _is_replaced(self, old: SessionFact, subjects: set[str]) -> bool:
        if old.source_type != "exchange" or not old.pinned:
            return False
        provenance = self.texts[old.fact_id].provenance
        return subject_of(str(provenance["call"]), provenance["arguments"]) in subjects

    def _release_oldest(self) -> None:
        """Unpin the oldest results that failed, beyond their share of the budget."""
        taken = 0
        for at in range(len(self.linked) - 1, -1, -1):
            old = self.linked[at]
            if old.source_type == "exchange" and old.pinned:
                full, outline, _ = old.costs or old.level_tokens
                taken += outline or full
                if taken > self.profile.total_token_budget // KEPT_SHARE:
                    self.linked[at] = replace(old, pinned=False)

    @classmethod
    def with_budget(cls, budget: int, *, answer_outside: bool = False) -> Session:
        """Return an empty session; ``answer_outside``: the answer's reserve comes on top of the budget."""
        shipped = load_shipped()
        total = budget
        while answer_outside:
            answer = estimate_overheads(scale(shipped, total), tools(), 1).answer
            if total >= budget + answer:
                break
            total = budget + answer
        return cls(scale(shipped, total))

    def compile(self, before: Packet | None) -> tuple[Packet, Prompt]:
        """Compile the wave's packet behind ``before``, as a session does."""
        columns = columns_from_facts(self.linked)
        overheads = estimate_overheads(self.profile, tools(), self.ordinal)

        def load_texts(fact_ids: Sequence[str]) -> Mapping[str, FactText]:
            return {name: self.texts[name] for name in fact_ids}

        standing = Standing(
            before, digest_tools(tools()), False, partial(count_changes, load_texts=load_texts),
            load_texts,
        )  # fmt: skip
        packet, prompt = compile_to_fit(
            columns, self.profile, self.ordinal, Rendering(overheads, VOCABULARY, 1_000),
            self.render, standing,
        )  # fmt: skip
        self.whole = frozenset(
            entry.fact_id for _, entry in packet.in_force().values() if detail_of(entry) == 0
        )
        return packet, prompt

    def render(self, packet: Packet) -> Prompt:
        return render_packet(
            packet, self.texts, tools(), wave=self.ordinal, task_type="implement", target={}
        )

    def transcript(self) -> Prompt:
        """Everything that was seen, whole, in the order in which it was seen."""
        facts = [
            PacketFact(
                f.fact_id, f.band, f.source_type, f.source_ref, "full", f.full.text, 0, f.pinned,
                ordinal, dict(f.provenance or {}),
            )
            for ordinal, f in self.plain
        ]  # fmt: skip
        return _whole(facts, tools())


def as_transcript(
    linked: Iterable[SessionFact], texts: Mapping[str, FactText], specs: Sequence[ToolSpec]
) -> Prompt:
    """These facts as one growing transcript: all of them, whole, in their order."""
    facts = [
        PacketFact(
            f.fact_id, f.band, f.source_type, f.source_ref, "full", texts[f.fact_id].full, 0, f.pinned,
            f.ordinal, texts[f.fact_id].provenance,
        )
        for f in linked
    ]  # fmt: skip
    return _whole(facts, specs)


def _whole(facts: Sequence[PacketFact], specs: Sequence[ToolSpec]) -> Prompt:
    return render(facts, specs, wave=1, task_type="implement", target={}, max_output_tokens=1)


def _subject(fact: Fact) -> str:
    provenance = fact.provenance or {}
    return subject_of(str(provenance["call"]), provenance["arguments"])


def run(steps: Sequence[Step], task: str, budget: int) -> Mapping[str, Costs]:
    """Run a session each way: as a growing transcript, in epochs, and with every packet compiled afresh.

    Costs with breakpoints, and those of ``epochs, any prefix`` and ``transcript, any prefix``.
    """
    profile = scale(load_shipped(), budget)
    ways: dict[str, Costs] = {
        name: Costs()
        for name in ("transcript", "epochs", "fresh", "transcript, any prefix", "epochs, any prefix",
                     "summarised")
    }  # fmt: skip
    caches = {name: Cache("any prefix" if "any" in name else "breakpoints") for name in ways}
    session = Session(profile)
    before: Packet | None = None
    shown = ShownText()
    opening = (*head(), task_fact(task, band="objectives"))
    for number, step in enumerate([Step(opening, opening), *steps]):
        session.see(step)
        fresh, fresh_prompt = session.compile(None)
        packet, prompt = session.compile(before)
        before = packet
        sent = blocks_of(prompt)
        for name in ("epochs", "epochs, any prefix"):
            ways[name].add(caches[name].send(sent))
            ways[name].epochs += int(bool(packet.epoch and packet.epoch.begins))
        grown = blocks_of(session.transcript())
        for name in ("transcript", "transcript, any prefix"):
            ways[name].add(caches[name].send(grown))
        ways["fresh"].add(caches["fresh"].send(blocks_of(fresh_prompt)))
        if number < len(steps):
            for name, seen in (("epochs", packet), ("fresh", fresh)):
                _look_for(ways[name], seen, steps[number].needs)
                _look_for_quotes(ways[name], shown.in_packet(seen, session.texts), steps[number])
        answer = packet.overheads.answer
        ways["epochs"].within_budget &= (packet.rendered_tokens or 0) + answer <= budget
    _summarise(ways["summarised"], session, budget)
    return ways


def _look_for(costs: Costs, packet: Packet, needed: frozenset[str]) -> None:
    shown = {
        fact_id for fact_id, (_, entry) in packet.in_force().items() if entry.level != "reference"
    }
    costs.needed += len(needed)
    costs.present += len(needed & shown)


def _look_for_quotes(costs: Costs, shown: Quoted, step: Step) -> None:
    present = step.quotes & shown
    for name in ("lines", "names"):
        held, of_all = getattr(costs, name)
        quoted = len(getattr(step.quotes, name))
        setattr(costs, name, (held + len(getattr(present, name)), of_all + quoted))


SUMMARY_TOKENS = 2_000


def _summarise(costs: Costs, session: Session, window: int) -> None:
    """A transcript that is summed up when the window is full: the summary is written by one more call."""
    by_wave: dict[int, int] = {}
    for ordinal, fact in session.plain:
        by_wave[ordinal] = by_wave.get(ordinal, 0) + fact.cost.full
    base = by_wave.pop(1) + count_tools(tools(), count_again)
    held, cached = base, 0
    for wave in sorted(by_wave):
        if held + by_wave[wave] > window:
            # The call that sums up reads everything once more.
            costs.units += DEFAULT_PRICES.units(held, cached)
            held, cached = base + SUMMARY_TOKENS, base
        held += by_wave[wave]
        costs.units += DEFAULT_PRICES.units(held, cached)
        costs.tokens += held
        costs.largest = max(costs.largest, held)
        cached = held


_WORDS = (
    "return value index path error test case model field name none true false import class def self token"
    " wave fact band budget cache line file open read write close raise except with yield"
)
WORDS = _WORDS.split()


def invented(waves: int, seed: int) -> list[Step]:
    """A session of ``waves`` waves, of the proportions of the recorded ones, with edits of what was read.

    Half of the waves read a part of a file or run a command; every fourth changes a file that was read before
    and reads it again, which a transcript holds twice.
    """
    dice = random.Random(seed)
    files: list[list[str]] = []
    steps: list[Step] = []
    for wave in range(2, waves + 1):
        words = " ".join(dice.choices(WORDS, k=40))
        kind = dice.choice(("read", "run", "run", "edit")) if files else "read"
        if kind == "run":
            lines = [_sentence(dice) for _ in range(dice.choice((4, 10, 25, 60)))]
            command = f"python -m {dice.choice(WORDS)} {dice.randrange(40)}"
            status = "failed" if dice.random() < 0.3 else "confirmed"
            exchange = _exchange(wave, words, command, "\n".join(lines), status)
            steps.append(Step((exchange.fact(),), (exchange.fact(),)))
            continue
        if kind == "read":
            files.append([_sentence(dice) for _ in range(dice.choice((60, 120, 250)))])
        number = dice.randrange(len(files)) if kind == "edit" else len(files) - 1
        if kind == "edit":
            files[number][dice.randrange(len(files[number]))] = _sentence(dice)
        text = "\n".join(files[number])
        plain = _exchange(wave, words, f"cat part_{number}.py", text, "confirmed").fact()
        item = parse_item(f"file:part_{number}.py")
        read = make_fact(
            item, text, reference=f"part_{number}.py", provenance={"path": item.ref}, key=item.ref
        )
        answer = answer_approved("rules")
        asked = _exchange(wave, words, f"cat part_{number}.py", answer, "approved").fact()
        steps.append(Step((asked, read), (plain,)))
    return steps


def _sentence(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=9))


def _exchange(wave: int, words: str, command: str, result: str, status: str) -> Exchange:
    return Exchange(
        wave=wave, place=1, text=words, call="run", arguments={"command": command}, result=result,
        status=status,
    )  # fmt: skip


def opening(task: str) -> Step:
    """What a session begins with."""
    facts = (*head(), task_fact(task, band="objectives"))
    return Step(facts, facts)


def count_fixed(task: str) -> int:
    """Count the tokens of system text, tools and task."""
    facts = sum(fact.cost.full for fact in opening(task).facts)
    return facts + count_tools(tools(), count_again)


def recorded_steps(task: str, actions: Sequence[dict[str, object]]) -> list[Step]:
    """Return the actions of a recorded run as cockpit stores them."""
    steps: list[Step] = []
    quotes = find_quotes(task, actions)
    last: dict[str, str] = {}
    for number, action in enumerate(actions, 2):
        command, output = str(action["command"]), str(action["output"])
        exchange = Exchange(
            wave=number, place=1, text=str(action["says"]), call="run", arguments={"command": command},
            result=output, status="failed" if action["returncode"] else "confirmed",
            sandbox="reading" if only_reads(command) else "",
        )  # fmt: skip
        plain, items = exchange.fact(), _items_read(command)
        facts = (plain,) if not items else _as_read(exchange, items)
        named = _names(command)
        needs = frozenset(last[name] for name in named if name in last)
        steps.append(Step(facts, (plain,), needs, quotes[number - 2]))
        for name in named | _names(output):
            last[name] = facts[-1].fact_id
    return steps


def only_reads(command: str) -> bool:
    """Whether a command would run in the reading sandbox: each of its programs prints what there is."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"|\s2>&1|\s2>/dev/null|\\\\;", "", command)
    parts = re.split(r"&&|\|\|?|;", bare)
    programs = [part.split()[0] for part in parts if part.split()]
    is_writing = ">" in bare or "<<" in bare or "sed -i" in bare or "-exec sed" in bare
    return not is_writing and set(programs) <= _READING


def _names(text: str) -> set[str]:
    """Return the files that a text names; ``find`` and ``grep`` write ``./`` before the same names."""
    return {name.removeprefix("./") for name in _PATH.findall(text)}


def _items_read(command: str) -> tuple[str, ...]:
    """Return what a command reads, as the items of the context request that cockpit makes of it."""
    inside = command.replace("cd /testbed && ", "").replace("/testbed/", "")
    read = read_line(inside)
    return () if read is None else translate(read, _nowhere())


@cache
def _nowhere() -> Confined:
    return Confined(Path(tempfile.mkdtemp(prefix="cockpit-bench-")))


def _as_read(exchange: Exchange, items: tuple[str, ...]) -> tuple[Fact, ...]:
    """Return a command that reads as cockpit stores it: the request's answer, and what was read."""
    item = parse_item(items[0])
    read = make_fact(
        item, exchange.result, reference=f"{item} ({len(exchange.result)} characters)",
        outline=outline(item.ref, exchange.result) if item.kind == "file" else None,
        provenance={"items": list(items)}, key="; ".join(items),
    )  # fmt: skip
    return replace(exchange, result=answer_approved("rules"), status="approved").fact(), read
