"""Recorded sessions in memory, compiled wave by wave by the real compiler, for the benches."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from msgspec.structs import replace

from cockpit.access.commands.plain_reads import read_line
from cockpit.access.confined_paths import Confined
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
from cockpit.store.context.packets import Packet, Rendering, detail_of
from cockpit.store.context.profile_model import Profile, load_shipped, scale

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

    ``facts`` are cockpit's, ``plain`` is what a transcript gets of the same exchange.
    """

    facts: tuple[Fact, ...]
    plain: tuple[Fact, ...]


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


def _whole(facts: Sequence[PacketFact], specs: Sequence[ToolSpec]) -> Prompt:
    return render(facts, specs, wave=1, task_type="implement", target={}, max_output_tokens=1)


def _subject(fact: Fact) -> str:
    provenance = fact.provenance or {}
    return subject_of(str(provenance["call"]), provenance["arguments"])


def opening(task: str) -> Step:
    """What a session begins with."""
    facts = (*head(), task_fact(task, band="objectives"))
    return Step(facts, facts)


def count_fixed(task: str) -> int:
    """Count the tokens of system text, tools and task."""
    facts = sum(fact.cost.full for fact in opening(task).facts)
    return facts + count_tools(tools(), count_again)


def recorded_steps(actions: Sequence[dict[str, object]]) -> list[Step]:
    """Return the actions of a recorded run as cockpit stores them."""
    steps: list[Step] = []
    for number, action in enumerate(actions, 2):
        command, output = str(action["command"]), str(action["output"])
        exchange = Exchange(
            wave=number, place=1, text=str(action["says"]), call="run", arguments={"command": command},
            result=output, status="failed" if action["returncode"] else "confirmed",
            sandbox="reading" if only_reads(command) else "",
        )  # fmt: skip
        plain, items = exchange.fact(), _items_read(command)
        facts = (plain,) if not items else _as_read(exchange, items)
        steps.append(Step(facts, (plain,)))
    return steps


def only_reads(command: str) -> bool:
    """Whether a command would run in the reading sandbox: each of its programs prints what there is."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"|\s2>&1|\s2>/dev/null|\\\\;", "", command)
    parts = re.split(r"&&|\|\|?|;", bare)
    programs = [part.split()[0] for part in parts if part.split()]
    is_writing = ">" in bare or "<<" in bare or "sed -i" in bare or "-exec sed" in bare
    return not is_writing and set(programs) <= _READING


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
