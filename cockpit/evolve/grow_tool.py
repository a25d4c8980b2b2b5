"""Grow a tool: ask for a test, see it red, ask for code until it is green, and propose what grew.

Everything that the model wrote runs in the sandbox only. See ``docs/reference/evolve.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from cockpit.act.own_tools.describe_tools import describe_file
from cockpit.act.own_tools.run_child import NoSandbox, require_sandbox
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.tools import TOOL_RECORDS
from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import fence_text
from cockpit.core.secrets import mask
from cockpit.decide.model import Model, ModelError, Usage
from cockpit.evolve.dialogue import Dialogue, GiveUp, WriteCode, WriteTest
from cockpit.evolve.growth import (
    MAX_ROUNDS,
    STUB,
    Growth,
    SourceRefused,
    SuiteRun,
    check_code,
    check_test,
    judge_code,
    judge_test,
)
from cockpit.evolve.try_sources import make_file, run_tests
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.evolution import EvolutionTried
from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.sessions import messages, sessions
from cockpit.store.sessions.sessions import Session
from cockpit.store.tools import approved_tools

_LONGEST_OUTPUT = 4_000

Outcome = Literal["green", "given_up", "stagnated", "rounds", "failed"]


@dataclass(frozen=True, slots=True)
class Grown:
    """The end of the rounds."""

    outcome: Outcome
    growth: Growth
    reason: str
    run: SuiteRun | None = None
    """The green run in a fresh process."""
    definition: ToolDefinition | None = None
    """The tool as it would be offered."""


class Grower:
    """Grows one tool in one session. It can go on after the user has discussed what grew."""

    def __init__(
        self, engine: Engine, model: Model, session_id: str, want: str, *, rounds: int = MAX_ROUNDS
    ) -> None:
        """Raises :class:`NoSandbox` where nothing could be tried."""
        require_sandbox(engine.ground.sandbox)
        self._engine, self._model, self._session_id = engine, model, session_id
        self._most = rounds
        existing = engine.store.read_now(approved_tools.select_all)
        self._taken = {str(tool.definition.get("name")) for tool in existing} | set(TOOL_RECORDS)
        self._dialogue = Dialogue(want, sorted(self._taken - set(TOOL_RECORDS)))
        self._growth = Growth(want)

    async def grow(self) -> Grown:
        """Ask and try until the tests are green, or no further round would help."""
        while True:
            growth = self._growth
            if growth.stagnates:
                words = "Two rounds in a row changed neither the code nor what failed."
                return Grown("stagnated", growth, words)
            if growth.rounds >= self._most:
                words = f"{self._most} rounds passed, and the tests are not green."
                return Grown("rounds", growth, words)
            self._growth = replace(growth, rounds=growth.rounds + 1)
            try:
                reply = await self._dialogue.ask(self._model)
            except ModelError as error:
                return Grown("failed", self._growth, str(error))
            limit = await self._count(reply.usage)
            if limit:
                return Grown("rounds", self._growth, limit)
            try:
                match reply.call:
                    case GiveUp(reason=reason):
                        return Grown("given_up", self._growth, mask(reason))
                    case WriteTest() as test:
                        await self._take_test(test)
                    case WriteCode() as code:
                        grown = await self._take_code(code)
                        if grown is not None:
                            return grown
                    case None:
                        raise SourceRefused(reply.problem)
            except NoSandbox:
                raise
            except CockpitError as error:
                await self._refuse(reply.call, str(error))

    def discuss(self, words: str) -> None:
        """Go on from the user's words about what grew; the rounds begin anew."""
        self._dialogue.say(words)
        self._growth = replace(
            self._growth, rounds=0, unchanged=0, green=False, code="", last_failure="", test=""
        )

    async def _count(self, usage: Usage) -> str:
        """Add a call's usage to the session; returns why the growth ends, where a limit is reached."""
        session_id, name = self._session_id, self._model.name
        spent: dict[str, Any] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": usage.cost_usd,
        }

        def write(tx: Tx) -> Session:
            sessions.add_usage(tx, session_id, **spent)
            tx.journal(
                ModelCompleted(model=name, stop="tool", **spent),
                actor="agent",
                session_id=session_id,
            )
            return sessions.load(tx.connection, session_id)

        session = await self._engine.store.write(write)
        limits = self._engine.settings.limits
        if limits.max_cost is not None and (session.cost_usd or 0) >= limits.max_cost:
            return f"The limit of {limits.max_cost} US dollars is reached."
        tokens = session.input_tokens + session.output_tokens
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            return f"The limit of {limits.max_tokens:,} tokens is reached."
        return ""

    async def _take_test(self, test: WriteTest) -> None:
        check_test(self._growth, test.name, test.source)
        if test.name in self._taken:
            raise SourceRefused(f"There is a tool {test.name} already. Give yours another name.")
        ground = self._engine.ground
        with_stub = await run_tests(ground, test.name, STUB, test.source)
        without = await run_tests(ground, test.name, "", test.source)
        self._growth = judge_test(
            self._growth, test.name, mask(test.purpose), test.source, with_stub, without
        )
        await self._report("test", test.source, "red", self._growth.red)
        self._dialogue.answer(f"Red, as it must be:\n\n{self._growth.red}\n\nNow write the code.")

    async def _take_code(self, code: WriteCode) -> Grown | None:
        check_code(self._growth, code.source)
        ground, name = self._engine.ground, self._growth.name
        run = await run_tests(ground, name, code.source, self._growth.test)
        self._growth = judge_code(self._growth, code.source, run)
        await self._report("code", code.source, "green" if run.is_green else "red", run.describe())
        if not run.is_green:
            self._dialogue.answer(f"Red:\n\n{run.describe()}\n\nChange the code.")
            return None
        # Described and run once more, each in a fresh process: what grew must not depend on the first one.
        definitions = await describe_file(
            make_file(ground, name, code.source), ground.sandbox, ground.root, ground.environment
        )
        if [definition.name for definition in definitions] != [name]:
            self._growth = replace(self._growth, green=False)
            raise SourceRefused(f"The file must have one tool, named {name}.")
        again = await run_tests(ground, name, code.source, self._growth.test)
        if not again.is_green:
            self._growth = replace(self._growth, green=False)
            raise SourceRefused(
                f"The tests were green once and red in a fresh process:\n\n{again.describe()}"
            )
        self._dialogue.answer("Green, twice. The user looks at it now.")
        return Grown("green", self._growth, "", again, definitions[0])

    async def _refuse(self, call: object, words: str) -> None:
        step = "test" if isinstance(call, WriteTest) else "code"
        growth = self._growth
        is_same = growth.last_failure == words
        self._growth = replace(
            growth, last_failure=words, unchanged=growth.unchanged + 1 if is_same else 0
        )
        await self._report(step, "", "refused", words)
        self._dialogue.answer(words)

    async def _report(self, step: str, source: str, outcome: str, output: str) -> None:
        growth, session_id = self._growth, self._session_id
        title = {"test": "The test", "code": "The code"}[step]
        name = growth.name or "the tool"

        def write(tx: Tx) -> None:
            tx.journal(
                EvolutionTried(
                    round=growth.rounds,
                    step=step,
                    name=growth.name,
                    outcome=outcome,
                    digest=text_digest(source) if source else "",
                    output=mask(output)[:_LONGEST_OUTPUT],
                ),
                actor="agent",
                session_id=session_id,
                result="refused" if outcome == "refused" else "ok",
            )
            body = f"{title} of {name} is {outcome}."
            if source:
                body += f"\n\n{fence_text(mask(source), 'python')}"
            body += f"\n\n{fence_text(mask(output)[:_LONGEST_OUTPUT])}"
            messages.complete(tx, session_id=session_id, role="agent", text=body)

        await self._engine.store.write(write)
