"""What an agent sends beyond measure or reason: bounded, said, and never raw."""

from __future__ import annotations

import asyncio

import pytest
from agents.acp_client.acp_world import Acp

from cockpit.agents.acp_client.bounded_transport import MOST_REQUESTS
from cockpit.agents.streams.agent_journal import MOST_ROWS
from cockpit.agents.streams.stream_formats import LONGEST_TEXT

pytestmark = pytest.mark.slow


async def test_a_flood_of_text_ends_as_one_cut_message(acp: Acp) -> None:
    session = await acp.run("flood 2000")
    (text,) = acp.said(session.session_id)
    start, left_out, end = text.split("\n")
    assert len(start) + len(end) == LONGEST_TEXT
    assert start.startswith("more and more") and end.endswith("more and more ")
    assert left_out == f"[… {2_000 * 140 - LONGEST_TEXT:,} characters are left out …]"
    assert len(acp.rows(session.session_id, "")) < 200


async def test_a_flood_of_tool_calls_leaves_a_bounded_number_of_rows(
    acp: Acp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.agents.streams.agent_journal.MOST_ROWS", 100)
    assert MOST_ROWS > 100
    session = await acp.run("calls 200")
    rows = acp.rows(session.session_id)
    assert len(rows) < 200
    assert any("further updates are not recorded" in row.get("message", "") for row in rows)
    assert acp.said(session.session_id) == ["done"]


async def test_garbage_is_noted_and_the_turn_goes_on(acp: Acp) -> None:
    session = await acp.run("garbage")
    assert session.status == "completed"
    (text,) = acp.said(session.session_id)
    assert "half ? a pair" in text
    notes = [row["message"] for row in acp.rows(session.session_id, "runner.noted")]
    assert 5 <= len(notes) <= 20
    assert all("\x1b" not in note for note in notes)


async def test_messages_for_another_session_are_refused_and_noted(acp: Acp) -> None:
    session = await acp.run("other")
    assert acp.said(session.session_id) == ["refused: True"]
    notes = [row["message"] for row in acp.rows(session.session_id, "runner.noted")]
    assert [note.rpartition(": ")[2] for note in notes] == ["'another-session'"] * 2
    assert "update for another session" in notes[0] and "request for another" in notes[1]


async def test_a_line_without_an_end_in_sight_is_skipped(acp: Acp) -> None:
    session = await acp.run("long 40")
    assert acp.said(session.session_id) == ["after the long line"]
    (note,) = acp.rows(session.session_id, "runner.noted")
    assert "more than 33,554,432 bytes: skipped" in note["message"]


async def test_two_requests_with_one_id_are_answered_once(acp: Acp) -> None:
    task = acp.begin(await acp.start("twice"))
    (proposal,) = await acp.asked()
    await acp.approve(proposal)
    session = await task
    assert acp.said(session.session_id) == ["allowed"]


async def test_more_requests_than_can_wait_are_refused(acp: Acp) -> None:
    session_id = await acp.start(f"several {MOST_REQUESTS + 8}")
    task = acp.begin(session_id)
    await acp.asked(MOST_REQUESTS)
    assert len(acp.pending()) == MOST_REQUESTS
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert acp.pending() == []
