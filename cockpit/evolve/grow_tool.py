"""Grow a tool: ask for a test, see it red, ask for code until it is green, and propose what grew.

Everything that the model wrote runs in the sandbox only. Each round is stored as it ends, so that another
process goes on with it. See ``docs/reference/evolve.md``.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from cockpit.act.model_tools import TOOL_RECORDS
from cockpit.act.own_tools.describe_tools import describe_file
from cockpit.act.own_tools.run_child import NoSandbox, require_sandbox, run_child
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.own_tools.tool_files import ToolFile, ToolFolder, digest_files
from cockpit.act.workspace import Workspace
from cockpit.core.canonical_json import canonical_json, parse_json, text_digest
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import fence_text
from cockpit.core.secrets import mask, mask_value
from cockpit.decide.choose_model import OFFLINE
from cockpit.decide.model import Model, ModelError, Usage
from cockpit.decide.provider_names import provider_name
from cockpit.evolve.growth import (
    MAX_ROUNDS,
    STUB,
    WITHHELD_FAILED,
    Growth,
    SourceRefused,
    SuiteRun,
    check_code,
    check_test,
    judge_code,
    judge_test,
    read_run,
)
from cockpit.evolve.growth_dialogue import Dialogue, GiveUp, Reply, WriteCode, WriteTest
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.evolution import EvolutionAnswered, EvolutionTried
from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages, sessions
from cockpit.store.sessions.sessions import Session
from cockpit.store.tools import approved_tools

TIMEOUT_S = 60.0
"""Seconds after which a run of tests is ended."""


def make_file(ground: Workspace, name: str, code: str) -> ToolFile:
    """Return the tool's file as it would be in the project, with nothing written."""
    files = {f"{name}.py": code.encode()}
    folder = Path(ground.root) / ".cockpit" / "tools"
    return ToolFile(
        ToolFolder("project", folder, Path(ground.root)), f"{name}.py", files, digest_files(files)
    )


async def run_tests(ground: Workspace, name: str, code: str, test: str) -> SuiteRun:
    """Run ``test`` over ``code`` in a fresh process, which may read the project and write nothing of it.

    Raises ``NoSandbox``; nothing ran then.
    """
    answer = await run_child(
        make_file(ground, name, code),
        {"mode": "suite", "name": name, "test": test},
        ground.sandbox,
        ground.root,
        ground.environment,
        timeout_s=TIMEOUT_S,
        writes=False,
    )
    if answer.error:
        return SuiteRun(0, error=mask(answer.error))
    run = read_run(answer.result if isinstance(answer.result, dict) else {})
    return SuiteRun(
        run.ran,
        run.skipped,
        tuple((mask(test_name), mask(trace)) for test_name, trace in run.failed),
        run.error,
    )


_LONGEST_OUTPUT = 4_000

Outcome = Literal["green", "given_up", "stagnated", "rounds", "failed"]


class Grown(Struct, frozen=True):
    """The end of the rounds."""

    outcome: Outcome
    growth: Growth
    reason: str
    run: SuiteRun | None = None
    """The green run in a fresh process."""
    definition: ToolDefinition | None = None
    """The tool as it would be offered."""

    @property
    def why(self) -> str:
        """Why nothing grew, in a sentence; empty for a tool that grew."""
        words = {
            "green": "",
            "given_up": "The model gave up: ",
            "failed": "The model failed: ",
        }.get(self.outcome, "Nothing grew: ")
        return f"{words}{self.reason}"


class Wish(Struct, frozen=True):
    """What is to grow."""

    want: str
    """What the tool has to do, in words."""
    name: str = ""
    """The only name that it may have; empty where the model names it."""
    growth_id: str = ""
    """The key of the call that asked for it; empty for a growth with a session of its own."""
    wave_id: str = ""
    """The wave that waits for it."""
    only_reads: bool = False
    """Whether a tool that can write would be of no use."""


class NoModel(CockpitError):
    """The model writes no code."""

    code = "no_model"


def require_writer(model: Model) -> None:
    """Raise :class:`NoModel` for the offline rules."""
    if model.name == OFFLINE:
        raise NoModel(
            "The offline rules write no code, so nothing can grow. Choose a model: --model PROVIDER:NAME, or"
            " `cockpit doctor` for those that this machine has."
        )


class Grower:
    """Grows one tool in one session. It can go on after the user has discussed what grew."""

    def __init__(
        self,
        engine: Engine,
        model: Model,
        session_id: str,
        wish: Wish,
        *,
        rounds: int = MAX_ROUNDS,
    ) -> None:
        """Takes in the rounds that are stored. Raises :class:`NoModel`, and :class:`NoSandbox` where nothing
        could be tried."""
        require_writer(model)
        require_sandbox(engine.ground.sandbox)
        self._engine, self._model, self._session_id = engine, model, session_id
        self._wish, self._most = wish, rounds
        existing = engine.store.read_now(approved_tools.select_all)
        self._taken = set(TOOL_RECORDS)
        for tool in existing:
            name = str(tool.definition.get("name"))
            self._taken |= {name, provider_name(name), *tool.definition.get("aliases", ())}
        self._dialogue = Dialogue(wish.want, sorted(self._taken - set(TOOL_RECORDS)))
        self._growth = Growth(wish.want)
        self._discussed = set[str]()
        """Proposals that the user discussed; what they said is in the dialogue."""
        self._rounds_before = 0
        """Rounds before the last of them."""
        for row in engine.store.read_now(self._select_rounds):
            self._restore(row)

    async def grow(self) -> Grown:
        """Ask and try until the tests are green, or no further round would help."""
        if self._growth.green:  # a process that died had come so far
            grown = await self._finish_green()
            if grown is not None:
                return grown
        while True:
            growth = self._growth
            if growth.stagnates:
                words = "Two rounds in a row changed nothing."
                return Grown("stagnated", growth, f"{words} {growth.what_is_missing}")
            if growth.rounds >= self._most:
                words = f"All {self._most} rounds passed."
                return Grown("rounds", growth, f"{words} {growth.what_is_missing}")
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
                        await self._take_test(reply, test)
                    case WriteCode() as code:
                        grown = await self._take_code(reply, code)
                        if grown is not None:
                            return grown
                    case None:
                        raise SourceRefused(reply.problem)
            except NoSandbox:
                raise
            except CockpitError as error:
                await self._refuse(reply, str(error))

    async def discuss(self, proposal_id: str, words: str) -> None:
        """Go on from the user's words about what grew, once for each proposal; the rounds begin anew."""
        if proposal_id in self._discussed:
            return
        row = EvolutionAnswered(
            growth=self._wish.growth_id,
            round=0,
            text="",
            call="",
            arguments={},
            answer=mask(words),
            is_taken=False,
            is_green=False,
            unchanged=0,
            last_failure="",
            red="",
            discussed=proposal_id,
        )
        session_id, wave_id = self._session_id, self._wish.wave_id
        await self._engine.store.write(
            lambda tx: tx.journal(row, actor="person", session_id=session_id, wave_id=wave_id)
        )
        self._restore(row)

    def _select_rounds(self, connection: sqlite3.Connection) -> list[EvolutionAnswered]:
        wish = self._wish
        of_wave = "SELECT detail_json FROM journal WHERE wave_id=? AND action=? ORDER BY seq"
        of_session = "SELECT detail_json FROM journal WHERE session_id=? AND action=? ORDER BY seq"
        rows = connection.execute(
            of_wave if wish.growth_id else of_session,
            (wish.wave_id or self._session_id, str(Action.EVOLUTION_ANSWERED)),
        )
        rounds = [read_part(EvolutionAnswered, parse_json(body)) for (body,) in rows]
        return [each for each in rounds if each.growth == wish.growth_id]

    def _restore(self, row: EvolutionAnswered) -> None:
        if row.discussed:
            self._discussed.add(row.discussed)
            self._rounds_before += self._growth.rounds
            self._dialogue.say(row.answer)
            self._growth = Growth(
                self._growth.want, name=self._growth.name, purpose=self._growth.purpose
            )
            return
        arguments = canonical_json(dict(row.arguments))
        number = self._rounds_before + row.round
        self._dialogue.restore(number, row.text, row.call, arguments, row.answer)
        growth = replace(
            self._growth,
            rounds=row.round,
            unchanged=row.unchanged,
            last_failure=row.last_failure,
            green=row.is_green,
            red=row.red,
        )
        if row.is_taken and row.call == "write_test":
            growth = replace(
                growth,
                name=str(row.arguments["name"]),
                purpose=mask(str(row.arguments["purpose"])),
                test=str(row.arguments["source"]),
                withheld=str(row.arguments["withheld"]),
            )
        elif row.is_taken:
            growth = replace(growth, code=str(row.arguments["source"]))
        self._growth = growth

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
        max_cost = session.limits.get("max_cost", limits.max_cost)
        max_tokens = session.limits.get("max_tokens", limits.max_tokens)
        if max_cost is not None and (session.cost_usd or 0) >= max_cost:
            return f"The limit of {max_cost} US dollars is reached."
        tokens = session.input_tokens + session.output_tokens
        if max_tokens is not None and tokens >= max_tokens:
            return f"The limit of {max_tokens:,} tokens is reached."
        return ""

    async def _take_test(self, reply: Reply, test: WriteTest) -> None:
        check_test(self._growth, test.name, test.source, test.withheld)
        if self._wish.name and test.name != self._wish.name:
            raise SourceRefused(f"The user approved a tool named {self._wish.name}, and no other.")
        if test.name in self._taken:
            raise SourceRefused(f"There is a tool {test.name} already. Give yours another name.")
        with_stub = await self._run(test.name, STUB, test.source)
        judge_test(with_stub, await self._run(test.name, "", test.source))
        judge_test(
            await self._run(test.name, STUB, test.withheld),
            await self._run(test.name, "", test.withheld),
            "The withheld test",
        )
        self._growth = replace(
            self._growth,
            name=test.name,
            purpose=mask(test.purpose),
            test=test.source,
            withheld=test.withheld,
            red=with_stub.describe(),
        )
        answer = f"Red, as it must be:\n\n{self._growth.red}\n\nNow write the code."
        await self._conclude(reply, answer, "test", test.source, "red", self._growth.red)

    async def _take_code(self, reply: Reply, code: WriteCode) -> Grown | None:
        check_code(self._growth, code.source)
        name, growth = self._growth.name, self._growth
        run = shown = await self._run(name, code.source, growth.test)
        if run.is_green:
            shown = await self._run(name, code.source, growth.withheld)
            if not shown.is_green:
                run = replace(shown, error=WITHHELD_FAILED)
        self._growth = judge_code(growth, code.source, run)
        if not run.is_green:
            answer = f"Red:\n\n{run.describe()}\n\nChange the code."
            output = run.describe() if run is shown else f"{WITHHELD_FAILED}\n\n{shown.describe()}"
            await self._conclude(reply, answer, "code", code.source, "red", output)
            return None
        answer = "Green. It is described and run once more, and the user looks at it then."
        await self._conclude(reply, answer, "code", code.source, "green", run.describe())
        return await self._finish_green()

    async def _finish_green(self) -> Grown | None:
        """Describe the tool and run its tests once more, each in a fresh process.

        What grew must not depend on the first one. Where it does, the model is told, and None returned.
        """
        try:
            definition, again = await self._try_once_more()
        except NoSandbox:
            raise
        except CockpitError as error:
            self._growth = replace(self._growth, green=False)
            await self._refuse(None, str(error))
            return None
        return Grown("green", self._growth, "", again, definition)

    async def _try_once_more(self) -> tuple[ToolDefinition, SuiteRun]:
        growth, ground = self._growth, self._engine.ground
        definitions = await describe_file(
            make_file(ground, growth.name, growth.code),
            ground.sandbox,
            ground.root,
            ground.environment,
        )
        if [definition.name for definition in definitions] != [growth.name]:
            raise SourceRefused(f"The file must have one tool, named {growth.name}.")
        definition = definitions[0]
        if taken := sorted(set(definition.aliases) & self._taken):
            raise SourceRefused(f"There is a tool {taken[0]} already; it cannot be an alias.")
        if self._wish.only_reads and definition.effects != "reads":
            raise SourceRefused(
                'The task that needs the tool only reads: mark it @tool(effects="reads").'
            )
        again = await self._run(growth.name, growth.code, growth.test)
        if not again.is_green:
            raise SourceRefused(
                f"The tests were green once and red in a fresh process:\n\n{again.describe()}"
            )
        return definition, again

    async def _run(self, name: str, code: str, test: str) -> SuiteRun:
        return await run_tests(self._engine.ground, name, code, test)

    async def _refuse(self, reply: Reply | None, words: str) -> None:
        step = "test" if reply is not None and isinstance(reply.call, WriteTest) else "code"
        growth = self._growth
        is_same = growth.last_failure == words
        self._growth = replace(
            growth, last_failure=words, unchanged=growth.unchanged + 1 if is_same else 0
        )
        await self._conclude(reply, words, step, "", "refused", words)

    async def _conclude(
        self, reply: Reply | None, answer: str, step: str, source: str, outcome: str, output: str
    ) -> None:
        """Tell the model what came of its answer, and store the round, in one transaction.

        ``reply`` is None for what comes after a round that was told already.
        """
        self._dialogue.answer(answer)
        growth, session_id, wish = self._growth, self._session_id, self._wish
        title = {"test": "The test", "code": "The code"}[step]
        name = growth.name or "the tool"
        raw = None if reply is None else reply.raw
        arguments: dict[str, Any] = {}
        if reply is not None and isinstance(reply.call, WriteTest | WriteCode | GiveUp):
            fields = reply.call.__struct_fields__
            arguments = {field: getattr(reply.call, field) for field in fields}

        def write(tx: Tx) -> None:
            tx.journal(
                EvolutionTried(
                    round=growth.rounds,
                    step=step,
                    name=growth.name,
                    outcome=outcome,
                    digest=text_digest(source) if source else "",
                    output=mask(output)[:_LONGEST_OUTPUT],
                    growth=wish.growth_id or UNSET,
                ),
                actor="agent",
                session_id=session_id,
                wave_id=wish.wave_id,
                result="refused" if outcome == "refused" else "ok",
            )
            tx.journal(
                EvolutionAnswered(
                    growth=wish.growth_id,
                    round=growth.rounds,
                    text="" if reply is None else mask(reply.text),
                    call=raw.name if raw is not None and arguments else "",
                    arguments=mask_value(arguments),
                    answer=mask(answer),
                    is_taken=bool(source),
                    is_green=growth.green,
                    unchanged=growth.unchanged,
                    last_failure=mask(growth.last_failure),
                    red=growth.red,
                ),
                session_id=session_id,
                wave_id=wish.wave_id,
            )
            body = f"{title} of {name} is {outcome}."
            if source:
                body += f"\n\n{fence_text(mask(source), 'python')}"
            body += f"\n\n{fence_text(mask(output)[:_LONGEST_OUTPUT])}"
            messages.complete(
                tx, session_id=session_id, wave_id=wish.wave_id, role="agent", text=body
            )

        await self._engine.store.write(write)
