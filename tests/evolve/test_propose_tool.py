"""A task that lacks a tool: the agent asks, it grows, the user adopts it, and the task succeeds with it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import growth_story as story
import pytest
from copied_repository import begin_repository, git
from growth_world import outcomes_of, wait_for
from msgspec.structs import replace

from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.act.tool_payloads import ProposeTool
from cockpit.loop.growth.propose_tool import GROWTH, find_problem
from cockpit.loop.phases.session_tools import callable_tools
from cockpit.loop.phases.tool_results import read_exchanges
from cockpit.loop.runtime import Runtime
from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import packets
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.details.tools import ToolsOffered
from cockpit.store.sessions import sessions, waves
from cockpit.store.sessions.sessions import Session
from cockpit.store.sessions.waves import Wave
from cockpit.store.tools import approved_tools

pytestmark = pytest.mark.slow

Opened = Callable[[str], AbstractAsyncContextManager[Runtime]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with the capture, and something that the user has staged and changed."""
    files = {"capture.pcab": story.CAPTURE, "notes.txt": "one\n"}
    root = begin_repository(tmp_path / "project", files)
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    (root / "notes.txt").write_text("changed\n")
    return root


async def begin(runtime: Runtime, **options: object) -> tuple[str, asyncio.Task[Session]]:
    session_id = await runtime.start(story.TASK, **options)  # type: ignore[arg-type]
    return session_id, asyncio.create_task(runtime.run(session_id))


async def test_the_task_goes_on_with_the_tool_that_it_lacked(opened: Opened, project: Path) -> None:
    before = git(project, "status", "--porcelain", "--untracked-files=all")
    async with opened(story.ASKS + story.USES + story.ENDS + story.GROWS) as runtime:
        session_id, work = await begin(runtime)
        growth = await wait_for(runtime, GROWTH, work)
        assert growth.body["payload"] == {"name": "parse_pcab"}
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
        assert not any(row.action.startswith("evolution.") for row in rows)
        await runtime.approve(growth.proposal_id, shown_digest=growth.shown_digest)
        adoption = await wait_for(runtime, ADOPT, work)
        assert not (project / ".cockpit" / "tools").exists()
        await runtime.approve(adoption.proposal_id, shown_digest=adoption.shown_digest)
        call = await wait_for(runtime, "own_tool", work)
        await runtime.approve(call.proposal_id)
        session = await work
        assert session.result["status"] == "done", session.result
        assert "172.16.4.2 and 8.8.8.8" in session.result["summary"]
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
        assert await outcomes_of(runtime, session_id) == [("test", "red"), ("code", "green")]
        # The tools changed, so a new epoch begins with the wave that has the new one, and says why.
        second = await runtime.store.read(
            lambda c: packets.load(c, waves.wave_id_of(session_id, 2)).packet
        )
        assert second.epoch is not None
        assert (second.epoch.begins, second.epoch.reason) == (True, "head")
        assert runtime.store.read_now(verify_chain.verify).ok
    # Both files are written, and nothing is committed: what the user staged and changed is as it was.
    after = git(project, "status", "--porcelain", "--untracked-files=all")
    assert set(after.splitlines()) - set(before.splitlines()) == {
        "?? .cockpit/tools/parse_pcab.py",
        "?? .cockpit/tools/tests/test_parse_pcab.py",
    }


async def test_a_file_that_nothing_reads_offers_a_tool_that_would(
    opened: Opened, project: Path
) -> None:
    (project / "capture.pcab").write_bytes(b"PCAB\0\x01\xff\x7f")
    asks = (
        '[[turn]]\n[[turn.call]]\nname = "request_context"\narguments = { purpose = "parse it",'
        ' question = "what is in it?", scope = ["file:capture.pcab"] }\n'
        + story.turn("wave = 2", "finish", status="blocked", summary="no tool")
    )
    async with opened(asks) as runtime:
        session_id = await runtime.start(
            "Parse this .pcab file", model=None, policy="all", interactive=False
        )
        session = await runtime.run(session_id)
        assert session.task_type == "implement"
        sent = [await runtime.rendered_prompt(f"{session_id}-w{each}") for each in (1, 2)]
        offered = ["propose_tool" in {tool.name for tool in prompt.tools} for prompt, _ in sent]
        assert (offered, sent[1][1].epoch.reason) == ([False, True], "head")
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
        (rare,) = [row.detail.rare for row in rows if isinstance(row.detail, ToolsOffered)]
        assert [each.why for each in rare] == ["capture.pcab is no text"]


SAYS_SO = story.turn(
    'task_type = "investigate", called = ["propose_tool"]',
    "finish",
    status="blocked",
    summary="It cannot be read.",
)


async def read_results(runtime: Runtime, session_id: str) -> list[str]:
    """Return what the agent was told about its calls of ``propose_tool``, by wave."""

    def read(connection: sqlite3.Connection) -> list[str]:
        last = waves.find_latest(connection, session_id)
        count = 0 if last is None else last.ordinal
        results = []
        for ordinal in range(1, count + 1):
            wave = waves.load(connection, waves.wave_id_of(session_id, ordinal))
            results += [
                f"{each.status}: {each.result}"
                for each in read_exchanges(connection, wave)
                if each.call == "propose_tool"
            ]
        return results

    return await runtime.store.read(read)


async def test_where_nothing_grows_the_tool_is_not_offered(opened: Opened, project: Path) -> None:
    async with opened(story.ASKS) as runtime:
        none = Sandbox(None, None, missing="bubblewrap (bwrap) is not installed")
        engine = replace(runtime.engine, ground=replace(runtime.engine.ground, sandbox=none))
        session_id = await runtime.start(story.TASK)
        session = await runtime.store.read(lambda c: sessions.load(c, session_id))
        wave = Wave("w", session_id, 1, "observing", "", "", "", None, None, None)
        for each, is_offered in ((runtime.engine, True), (engine, False)):
            names = [tool.name for tool in callable_tools(WaveContext(each, session, wave))]
            assert ("propose_tool" in names) is is_offered


async def test_nothing_grows_before_the_user_agrees_and_the_task_hears_why(
    opened: Opened, project: Path
) -> None:
    async with opened(story.ASKS + SAYS_SO) as runtime:
        session_id, work = await begin(runtime)
        growth = await wait_for(runtime, GROWTH, work)
        await runtime.reject(growth.proposal_id, reason="use tcpdump")
        assert (await work).result["status"] == "blocked"
        (result,) = await read_results(runtime, session_id)
        assert result.startswith("rejected") and "use tcpdump" in result
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
        assert not any(row.action.startswith("evolution.") for row in rows)
    assert not (project / ".cockpit" / "tools").exists()


async def test_a_name_that_cannot_be_is_refused_before_the_user_is_asked(
    opened: Opened, project: Path
) -> None:
    taken = project / ".cockpit" / "tools" / "taken_file.py"
    taken.parent.mkdir(parents=True)
    taken.write_text("mine = 1\n")
    async with opened(story.ASKS) as runtime:
        session_id = await runtime.start(story.TASK)
        session = await runtime.store.read(lambda c: sessions.load(c, session_id))
        wave = Wave("w", session_id, 1, "observing", "", "", "", None, None, None)
        context = WaveContext(runtime.engine, session, wave)
        server = ToolDefinition(
            tool_id="mcp:archive.search", name="archive.search", kind="mcp", place="archive",
            description="Search.", parameters={"type": "object", "properties": {}}, digest="d",
            function="search",
        )  # fmt: skip
        await runtime.store.write(lambda tx: approved_tools.approve(tx, server.body(), by="person"))
        for name, words in (
            # A provider cannot tell it from the server's archive.search.
            ("archive__search", "There is a tool archive__search already: mcp:archive.search"),
            ("run", "is a tool of cockpit's own"),
            ("Parse-pcab", "is not a name of a tool"),
            ("../../policy", "is not a name of a tool"),
            ("taken_file", "exists, and is not approved"),
        ):
            payload = ProposeTool(**{**story.PROPOSED, "name": name})
            assert words in find_problem(context, payload)
