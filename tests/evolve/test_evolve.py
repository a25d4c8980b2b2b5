"""A tool that is missing: test first, red, code, red, fixed, green, looked at, adopted, called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import growth_story as story
import pytest
from growth_world import outcomes_of, stop, wait_for

from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.core.errors import Stale
from cockpit.evolve.evolve import EvolveRefused, begin_evolution, evolve, find_growth
from cockpit.evolve.growth import WITHHELD_FAILED
from cockpit.loop.runtime import Runtime
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import proposals
from cockpit.store.sessions.hold_session import hold_session
from cockpit.store.tools import approved_tools

pytestmark = pytest.mark.slow

Opened = Callable[[str], AbstractAsyncContextManager[Runtime]]

WANT = "Extract the IP addresses of a .pcab file"
WHOLE = (
    story.test_round(1, story.WEAK_TEST)
    + story.growing(2, "write_code", source=story.RIGHT)
    + story.test_round(3, story.GOOD_TEST)
    + story.growing(4, "write_code", source=story.WRONG)
    + story.growing(5, "write_code", source=story.RIGHT)
)


async def test_from_a_want_to_a_tool_that_answers(opened: Opened) -> None:
    async with opened(WHOLE) as runtime:
        engine, root = runtime.engine, runtime.place.root
        with pytest.raises(EvolveRefused):
            await begin_evolution(engine, "  ")
        session_id = await begin_evolution(engine, WANT)
        work = asyncio.create_task(evolve(engine, session_id))
        proposal = await wait_for(runtime, ADOPT, work)
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
        with pytest.raises(EvolveRefused, match="has ended: The tool parse_pcab"):
            await find_growth(engine, session_id)
        with pytest.raises(EvolveRefused, match="No growth is left"):
            await find_growth(engine)
        assert await outcomes_of(runtime, session_id) == [
            ("test", "refused"), ("code", "refused"), ("test", "red"), ("code", "red"), ("code", "green"),
        ]  # fmt: skip
        code = (root / ".cockpit" / "tools" / "parse_pcab.py").read_text()
        assert code.startswith("# Written by script:") and session_id in code
        tool = await runtime.store.read(lambda c: approved_tools.find(c, "project:parse_pcab"))
        assert tool is not None and tool.definition["effects"] == "reads"
        # Without a new start, the next session may call it.
        assert engine.added is not None
        assert engine.added.find_approved("project:parse_pcab") is not None
        assert runtime.store.read_now(verify_chain.verify).ok


async def test_the_user_s_words_begin_a_new_test_after_an_interruption(opened: Opened) -> None:
    """Interrupted while it waits, then in the rounds that the user's words began."""
    again = story.GOOD_TEST.replace("come_once", "are_unique")
    more = story.test_round(3, again) + story.growing(4, "write_code", source=story.RIGHT)
    async with opened(story.GROWS + more) as runtime:
        engine = runtime.engine
        session_id = await begin_evolution(engine, WANT)
        work = asyncio.create_task(evolve(engine, session_id))
        first = await wait_for(runtime, ADOPT, work)
        await stop(work)
        await runtime.discuss(first.proposal_id, words="say that they are unique")
        work = asyncio.create_task(evolve(engine, (await find_growth(engine)).session_id))
        second = await wait_for(runtime, ADOPT, work)
        assert second.revises == first.proposal_id
        assert "are_unique" in second.body["diffs"][1]["after"]
        await stop(work)
        work = asyncio.create_task(evolve(engine, session_id))
        await runtime.reject(second.proposal_id, reason="not needed")
        session = await work
        assert session.result["status"] == "blocked"
        assert "rejected by person: not needed" in session.result["summary"]
        assert not (runtime.place.root / ".cockpit" / "tools").exists()
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
        assert sum(row.action == "model.completed" for row in rows) == 4
        assert [row.action for row in rows].count("proposal.created") == 2


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (
            story.test_round(1, story.GOOD_TEST)
            + "".join(story.growing(n, "write_code", source=story.CANNED) for n in range(2, 5)),
            WITHHELD_FAILED,
        ),
        (
            "".join(story.test_round(n, story.WEAK_TEST) for n in range(1, 4)),
            "No test was accepted, so no code was written. The last fault: The test passes although",
        ),
        (story.growing(1, "give_up", reason="no such format"), "The model gave up: no such format"),
        ('[[turn]]\nerror = { code = "auth" }', "The model failed"),
    ],
)
async def test_a_growth_ends_where_no_round_helps(
    opened: Opened, scenario: str, words: str
) -> None:
    async with opened(scenario) as runtime:
        session_id = await begin_evolution(runtime.engine, WANT)
        async with hold_session(runtime.store, session_id):
            with pytest.raises(Stale, match="runs session"):
                await evolve(runtime.engine, session_id)
        session = await evolve(runtime.engine, session_id)
        assert session.result["status"] == "blocked"
        assert words in session.result["summary"]
        stored = await runtime.store.read(lambda c: proposals.select_for_session(c, session_id))
        assert [proposal for proposal in stored if proposal.body.get("type") == ADOPT] == []


async def test_a_session_that_grows_nothing_is_none_to_continue(opened: Opened) -> None:
    async with opened(story.ASKS) as runtime:
        session_id = await runtime.start(story.TASK)
        with pytest.raises(EvolveRefused, match="grows no tool"):
            await find_growth(runtime.engine, session_id)
