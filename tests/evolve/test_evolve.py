"""A tool that is missing: test first, red, code, red, fixed, green, looked at, adopted, called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from growth_story import GOOD_TEST, RIGHT, WEAK_TEST, WRONG

from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.evolve.evolve import EvolveRefused, begin_evolution, evolve
from cockpit.loop.runtime import Runtime
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.details.evolution import EvolutionTried
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session
from cockpit.store.tools import approved_tools

Opened = Callable[[str], AbstractAsyncContextManager[Runtime]]

WANT = "Parse a .pcab file and extract its IP addresses"


def turn(wave: int, call: str, **arguments: str) -> str:
    lines = [f'[[turn]]\nwhen = {{ wave = {wave} }}\n[[turn.call]]\nname = "{call}"\n']
    lines += [f"arguments.{key} = '''{value}'''\n" for key, value in arguments.items()]
    return "".join(lines)


def test_of(wave: int, source: str, name: str = "parse_pcab") -> str:
    return turn(wave, "write_test", name=name, purpose="IP addresses of .pcab files", source=source)


def codes(source: str) -> str:
    """The same code, round after round."""
    return "".join(turn(wave, "write_code", source=source) for wave in range(2, 9))


test_of.__test__ = False  # type: ignore[attr-defined]

WHOLE = (
    test_of(1, WEAK_TEST)
    + turn(2, "write_code", source=RIGHT)
    + test_of(3, GOOD_TEST)
    + turn(4, "write_code", source=WRONG)
    + turn(5, "write_code", source=RIGHT)
)


async def waits(runtime: Runtime, session_id: str, work: asyncio.Task[Session]) -> Proposal:
    while not work.done():
        for proposal in await runtime.store.read(
            lambda c: proposals.select_for_session(c, session_id)
        ):
            if proposal.status == "pending":
                return proposal
        await asyncio.sleep(0.01)
    raise AssertionError(f"nothing was proposed: {work.result().result}")


async def outcomes(runtime: Runtime, session_id: str) -> list[tuple[str, str]]:
    rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
    return [
        (row.detail.step, row.detail.outcome)
        for row in rows
        if isinstance(row.detail, EvolutionTried)
    ]


async def test_from_a_want_to_a_tool_that_answers(opened: Opened) -> None:
    async with opened(WHOLE) as runtime:
        engine, root = runtime.engine, runtime.place.root
        session_id = await begin_evolution(engine, WANT)
        work = asyncio.create_task(evolve(engine, session_id))
        proposal = await waits(runtime, session_id, work)
        assert not (root / ".cockpit" / "tools").exists()
        assert [diff["path"] for diff in proposal.body["diffs"]] == [
            ".cockpit/tools/parse_pcab.py",
            ".cockpit/tools/tests/test_parse_pcab.py",
        ]
        assert "AssertionError" in proposal.body["body"] or "None" in proposal.body["body"]
        await runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)
        session = await work
        assert session.result["status"] == "done"
        assert session.result["summary"].startswith("The tool parse_pcab is adopted: ")
        assert "is not a git repository" in session.result["summary"]
        assert await outcomes(runtime, session_id) == [
            ("test", "refused"),
            ("code", "refused"),
            ("test", "red"),
            ("code", "red"),
            ("code", "green"),
        ]
        code = (root / ".cockpit" / "tools" / "parse_pcab.py").read_text()
        assert code.startswith("# Written by script:")
        assert session_id in code
        tool = await runtime.store.read(lambda c: approved_tools.find(c, "project:parse_pcab"))
        assert tool is not None
        assert tool.definition["effects"] == "reads"
        # Without a new start, the next session may call it.
        assert engine.added is not None
        definition = engine.added.find_approved("project:parse_pcab")
        assert definition is not None
        assert runtime.store.read_now(verify_chain.verify).ok


async def test_the_user_s_words_begin_a_new_test(opened: Opened) -> None:
    again = GOOD_TEST.replace("come_once", "are_unique")
    async with opened(WHOLE + test_of(6, again) + turn(7, "write_code", source=RIGHT)) as runtime:
        session_id = await begin_evolution(runtime.engine, WANT)
        work = asyncio.create_task(evolve(runtime.engine, session_id))
        first = await waits(runtime, session_id, work)
        await runtime.discuss(first.proposal_id, words="say that they are unique")
        second = await waits(runtime, session_id, work)
        assert second.revises == first.proposal_id
        assert "are_unique" in second.body["diffs"][1]["after"]
        await runtime.reject(second.proposal_id, reason="not needed")
        session = await work
        assert session.result["status"] == "blocked"
        assert "rejected by person: not needed" in session.result["summary"]
        assert not (runtime.place.root / ".cockpit" / "tools").exists()


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (
            test_of(1, GOOD_TEST)
            + "".join(turn(n, "write_code", source=WRONG) for n in range(2, 9)),
            "Two rounds in a row",
        ),
        ("".join(test_of(n, WEAK_TEST) for n in range(1, 9)), "Two rounds in a row"),
        (turn(1, "give_up", reason="no such format"), "The model gave up: no such format"),
        ('[[turn]]\nerror = { code = "auth" }', "The model failed"),
    ],
)
async def test_a_growth_ends_where_no_round_helps(
    opened: Opened, scenario: str, words: str
) -> None:
    async with opened(scenario) as runtime:
        session_id = await begin_evolution(runtime.engine, WANT)
        session = await evolve(runtime.engine, session_id)
        assert session.result["status"] == "blocked"
        assert words in session.result["summary"]
        stored = await runtime.store.read(lambda c: proposals.select_for_session(c, session_id))
        assert [proposal for proposal in stored if proposal.body.get("type") == ADOPT] == []


async def test_a_want_that_says_nothing_starts_nothing(opened: Opened) -> None:
    async with opened(WHOLE) as runtime:
        with pytest.raises(EvolveRefused):
            await begin_evolution(runtime.engine, "  ")
