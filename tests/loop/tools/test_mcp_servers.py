"""Tools of MCP servers in sessions: listed when approved, started by a call, compared before each call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tool_world import calling, read_proposals, read_results, run_session

from cockpit.act.mcp_servers.server_connection import ServerFailed
from cockpit.loop.tools.approve_tools import ToolChanged, approve_server_tools
from cockpit.store.journal.event_types import Action

pytestmark = pytest.mark.slow

SEARCH = calling("archive.search", '{ query = "ooda", limit = 3 }')


async def approve(runtime, names=("search",)):
    listing = await runtime.engine.added.servers.list_tools("archive")
    chosen = [tool for tool in listing.tools if tool.function in names]
    await approve_server_tools(runtime.engine.added, "archive", chosen, by="person")
    return chosen


def calls(project: Path) -> list[dict[str, object]]:
    file = project / "calls.txt"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def phases(runtime, session_id):
    return await runtime.store.read(
        lambda c: c.execute(
            "SELECT action_type, outbox_actions.phase FROM outbox_actions JOIN wave_runs USING(wave_id)"
            " WHERE wave_runs.session_id=?",
            (session_id,),
        ).fetchall()
    )


async def events(runtime, action):
    return await runtime.store.read(
        lambda c: [
            json.loads(text)
            for (text,) in c.execute(
                "SELECT detail_json FROM journal WHERE action=? ORDER BY seq", (str(action),)
            )
        ]
    )


async def test_a_call_is_an_action_and_the_server_ends_with_the_runtime(
    opened, script, project, stand_in
):
    async with opened(mcp=stand_in(allow=("search",))) as runtime:
        await approve(runtime)
        await runtime.engine.added.servers.close()
        session = await run_session(runtime, script(SEARCH), "ask")
        (result,) = await read_results(runtime, session.session_id)
        assert "found ooda" in result
        (proposal,) = await read_proposals(runtime, session.session_id)
        assert (proposal.body["type"], proposal.risk) == ("mcp_tool", "medium")
        assert proposal.decided_by == "rule:mcp.archive allow search"
        shown = dict(proposal.body["fields"])
        assert (
            "project writable" in shown["runs"] and shown["server's hints"] == "readOnlyHint: true"
        )
        assert calls(project) == [{"name": "search", "arguments": {"query": "ooda", "limit": 3}}]
        assert await phases(runtime, session.session_id) == [("mcp_tool", "confirmed")]
        assert len(await events(runtime, Action.TOOL_SERVER_STARTED)) == 2
        process = runtime.engine.added.servers._open["archive"]._process.process
    assert process.returncode is not None


async def test_a_hint_lowers_nothing_and_without_a_rule_the_user_is_asked(
    opened, script, stand_in, project
):
    async with opened(mcp=stand_in(network=True)) as runtime:
        await approve(runtime)
        session_id = await runtime.start(
            "implement it", model=script(SEARCH), policy="all", interactive=False
        )
        running = asyncio.create_task(runtime.run(session_id))
        while not (waiting := await read_proposals(runtime, session_id)):
            assert not running.done()
            await asyncio.sleep(0.02)
        assert (waiting[0].risk, waiting[0].status) == ("high", "pending")
        await runtime.reject(waiting[0].proposal_id, reason="no")
        await asyncio.wait_for(running, 60)
        assert calls(project) == []


async def test_a_server_that_changes_its_words_is_not_called(opened, script, project, stand_in):
    async with opened(mcp=stand_in("rug", allow=("search",))) as runtime:
        (tool,) = await approve(runtime)
        (project / "calls.txt.changed").touch()
        session = await run_session(runtime, script(SEARCH), "all")
        (result,) = await read_results(runtime, session.session_id)
        assert "describes it otherwise by now" in result
        assert calls(project) == []
        (forgotten,) = await events(runtime, Action.TOOL_FORGOTTEN)
        assert forgotten["tool_id"] == "mcp:archive.search"
        with pytest.raises(ToolChanged):
            await approve_server_tools(runtime.engine.added, "archive", [tool], by="person")
        # The next session does not have it any more.
        session = await run_session(runtime, script(SEARCH), "all")
        (result,) = await read_results(runtime, session.session_id)
        assert "is not a tool of this task" in result


@pytest.mark.parametrize(
    ("mode", "timeout_s", "words"),
    [
        ("hang", 1, "did not call search within 1 s"),
        ("exit", 60, "exit 3"),
        ("flood", 60, "5,000 messages unasked"),
        ("line", 60, "a message of more than 4 MiB"),
    ],
)
async def test_a_call_without_an_answer_is_uncertain_and_made_once(
    opened, script, project, stand_in, mode, timeout_s, words
):
    async with opened(mcp=stand_in(mode, allow=("search",), timeout_s=timeout_s)) as runtime:
        await approve(runtime)
        session = await run_session(runtime, script(SEARCH), "all")
        (result,) = await read_results(runtime, session.session_id)
        assert words in str(await events(runtime, Action.TOOL_SERVER_ENDED))
        assert len(calls(project)) == 1
        # A policy leaves it: nothing is repeated.
        assert await phases(runtime, session.session_id) == [("mcp_tool", "failed_terminal")]
        assert len(await events(runtime, Action.ACTION_UNCERTAIN)) == 1
        assert "Given up" in result


async def test_a_server_that_talks_too_much_is_answered_and_bounded(
    opened, script, project, stand_in
):
    """Lines without a message, requests of its own, forged answers; three megabytes; pages without end."""
    for number, (mode, most) in enumerate((("noisy", 200), ("huge", 30_000), ("pages", 200))):
        async with opened(mcp=stand_in(mode, allow=("search",))) as runtime:
            await approve(runtime)
            session = await run_session(runtime, script(SEARCH), "ask")
            (result,) = await read_results(runtime, session.session_id)
            assert "found ooda" in result and "forged" not in result
            assert len(result) < most + 1_000
            assert await phases(runtime, session.session_id) == [("mcp_tool", "confirmed")]
            assert len(calls(project)) == number + 1
            assert len(await read_proposals(runtime, session.session_id)) == 1


async def test_several_servers_are_called_at_once_and_one_that_hangs_stops_no_other(
    opened, project, stand_in
):
    (first,) = stand_in().values()
    (slow,) = stand_in("hang", timeout_s=2).values()
    servers = {
        name: replace(server, name=name)
        for name, server in {"archive": first, "other": first, "slow": slow}.items()
    }
    async with opened(mcp=servers) as runtime:
        running = runtime.engine.added.servers
        listings = await asyncio.gather(*(running.list_tools(name) for name in servers))
        assert [len(listing.tools) for listing in listings] == [2, 2, 2]
        opens = [running._open[name] for name in servers]
        answers = await asyncio.gather(
            *(
                each.call("search", {"query": name})
                for name, each in zip(servers, opens, strict=True)
            ),
            *(opens[0].call("search", {"query": str(number)}) for number in range(8)),
            return_exceptions=True,
        )
        assert isinstance(answers[2], ServerFailed)
        texts = [answer.content[0].text for answer in answers if answer is not answers[2]]
        assert texts == ["found archive", "found other", *(f"found {n}" for n in range(8))]


@pytest.mark.parametrize(
    ("mode", "words"),
    [("silent", "did not answer within 1 s"), ("gone", "no such database")],
)
async def test_a_server_that_does_not_start_is_named(opened, stand_in, mode, words):
    async with opened(mcp=stand_in(mode, start_timeout_s=1)) as runtime:
        with pytest.raises(ServerFailed, match=words):
            await runtime.engine.added.servers.list_tools("archive")


async def test_values_of_variables_never_come_back(opened, script, stand_in, monkeypatch):
    monkeypatch.setenv("STAND_IN_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("OTHER_TOKEN", "hidden-from-it")
    servers = stand_in("secret", allow=("search",), env=("STAND_IN_TOKEN",))
    async with opened(mcp=servers) as runtime:
        await approve(runtime)
        session = await run_session(runtime, script(SEARCH), "ask")
        (result,) = await read_results(runtime, session.session_id)
        assert "[masked:STAND_IN_TOKEN]" in result and "correct-horse" not in result
        assert "OTHER_TOKEN" not in result


async def test_a_listing_keeps_what_providers_take(opened, stand_in):
    async with opened(mcp=stand_in("odd")) as runtime:
        listing = await runtime.engine.added.servers.list_tools("archive")
        assert [tool.name for tool in listing.tools] == ["archive.deep", "archive.search"]
        assert "$ref" not in listing.tools[0].parameters
        assert len(listing.problems) == 5
