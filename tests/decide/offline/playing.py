"""A session of the offline model played wave by wave: real openings, the real gateway, and the
exchanges as the loop records them. What the person decides is given by the test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cockpit.act.model_tools import TOOLS, parse_call
from cockpit.decide.model import Done, PacketFact, Prompt, TextDelta, ToolCall, ToolSpec
from cockpit.decide.offline.offline_model import OfflineModel
from cockpit.loop.intake.first_message import Opening, opening
from cockpit.loop.intake.intent import resolve
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.intake.task_types import load_task_types
from cockpit.loop.phases.tool_results import Exchange, pinned_text_fact
from cockpit.observe.context_request import parse_request
from cockpit.observe.gateway import ContextGateway
from cockpit.store.context.facts import Fact, Level

TYPES = load_task_types(None, None).types
DISCUSS = (
    "The person wants to discuss before anything happens. Ask what is on their mind; do not reach the"
    " same end another way."
)


class Ground:
    def __init__(self, root: Path) -> None:
        self.root = root


@dataclass
class Said:
    """One answer of the model."""

    words: str
    calls: list[tuple[str, dict[str, Any]]]
    fragments: list[str]

    @property
    def call(self) -> str:
        return self.calls[0][0] if self.calls else ""

    @property
    def arguments(self) -> dict[str, Any]:
        return self.calls[0][1]

    @property
    def review(self) -> str:
        """The review of an action, as Markdown."""
        if self.call == "write_file":
            return str(self.arguments["content"])
        assert self.call == "github", self
        import shlex

        return shlex.split(self.arguments["command"])[-1]


@dataclass
class Play:
    """One session. ``facts`` are what its packets hold."""

    root: Path
    opened: Opening
    task_type: str
    facts: list[PacketFact] = field(default_factory=list)
    wave: int = 0

    @classmethod
    async def start(cls, root: Path, words: str) -> Play:
        task = await resolve(words, TYPES, Repository(root))
        opened = await opening(task, TYPES[task.task_type], Ground(root))
        play = cls(root, opened, task.task_type)
        play.take(
            Fact("task", "task:opening", "situational", Level(opened.text, 1), Level("t", 1)), 1
        )
        return play

    def take(self, fact: Fact, ordinal: int) -> None:
        self.facts.append(
            PacketFact(
                fact_id=fact.fact_id, band=fact.band, source_type=fact.source_type,
                source_ref=fact.source_ref, level="full", text=fact.full.text, tokens=fact.full.tokens,
                pinned=fact.pinned, ordinal=ordinal, provenance=fact.provenance or {},
            )
        )  # fmt: skip

    def prompt(self) -> Prompt:
        return Prompt(
            system="", messages=(),
            tools=tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in TOOLS),
            facts=tuple(self.facts), wave=self.wave, task_type=self.task_type, target=self.opened.target,
        )  # fmt: skip

    async def say(self) -> Said:
        """Let the model answer the packet as it is; every call must be one that the tools read."""
        self.wave += 1
        fragments, calls, ended = [], [], False
        async for event in OfflineModel().stream(self.prompt()):
            assert not ended
            match event:
                case TextDelta(text):
                    fragments.append(text)
                case ToolCall(_, name, arguments):
                    parse_call(name, arguments)
                    calls.append((name, json.loads(arguments)))
                case Done(usage, stop):
                    ended = True
                    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (0, 0, 0.0)
                    assert stop == ("tool" if calls else "end")
        assert ended
        return Said("".join(fragments), calls, fragments)

    def settle(self, said: Said, status: str, result: str = "", *, words: str = "") -> None:
        """Record what came of an answer, and what the person says next."""
        name, arguments = said.calls[0] if said.calls else ("", {})
        told = f"{DISCUSS}{f' The user said: {words}' if words else ''}"
        result = told if status == "discussed" else result
        made = Exchange(self.wave, 1, said.words, name, arguments, result, status)
        self.take(made.fact(), self.wave + 1)

    def hear(self, words: str) -> None:
        self.take(pinned_text_fact("person", f"person:{self.wave + 1}", words), self.wave + 1)

    async def grant(self, said: Said, items: Sequence[str] | None = None) -> None:
        """Approve a request, or narrow it to ``items``: the gateway reads at the reviewed commit."""
        assert said.call == "request_context", said
        request = parse_request(said.arguments, rev=self.opened.rev)
        gateway = ContextGateway.of(root=self.root, rev=self.opened.rev)
        kept = tuple(item for item in request.scope if items is None or str(item) in items)
        from msgspec.structs import replace

        fetched = await gateway.fetch(replace(request, scope=kept))
        for fact in fetched.facts:
            self.take(fact, self.wave + 1)
        errors = [
            f"{out.item}: could not be read: {out.error}" for out in fetched.outcomes if out.error
        ]
        self.settle(said, "approved" if items is None else "narrowed", "\n".join(errors))


async def reviewed(root: Path, words: str) -> Said:
    """Play a review whose request is granted whole; returns the answer that proposes it."""
    play = await Play.start(root, words)
    said = await play.say()
    if said.call == "request_context":
        await play.grant(said)
        said = await play.say()
    return said
