"""Files and terminals that an agent asks cockpit for: confined, decided, journalled."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agents.acp.acp_world import Acp, open_acp

pytestmark = pytest.mark.slow


@pytest.fixture
async def acp(tmp_path: Path) -> AsyncIterator[Acp]:
    async with open_acp(tmp_path) as opened:
        yield opened


async def test_a_read_gives_the_file_as_it_is_and_records_version_and_lines(acp: Acp) -> None:
    (acp.world.root / "note.txt").write_text("one\ntwo\nthree\nfour", encoding="utf-8")
    session = await acp.run("fs read note.txt 2 2", policy="reads")
    assert json.loads(acp.said(session.session_id)[0]) == {"content": "two\nthree\n"}
    (row,) = acp.rows(session.session_id, "runner.file_read")
    assert (row["path"], row["first"], row["last"], len(row["version"])) == ("note.txt", 2, 3, 16)


async def test_a_read_past_the_policy_waits_for_the_user(acp: Acp) -> None:
    (acp.world.root / "note.txt").write_text("one\n", encoding="utf-8")
    task = acp.begin(await acp.start("fs read note.txt"))
    (proposal,) = await acp.asked()
    assert proposal.body["type"] == "read"
    await acp.reject(proposal, "read the other file")
    session = await task
    assert "read the other file" in acp.said(session.session_id)[0]
    assert acp.rows(session.session_id, "runner.file_read") == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".env", "secrets by its name"),
        ("../outside.txt", "outside of"),
        ("/etc/passwd", "outside of"),
        ("link.txt", "leads out of the project"),
        (".git/config", "git's own files"),
        ("binary.bin", "no UTF-8 text"),
        ("missing.txt", "There is no file"),
    ],
)
async def test_files_that_no_policy_hands_out(acp: Acp, path: str, words: str) -> None:
    root = acp.world.root
    (root / ".env").write_text("KEY=1\n", encoding="utf-8")
    (root / "binary.bin").write_bytes(b"\xff\xfe\x00")
    (root / "link.txt").symlink_to("/etc/passwd")
    session = await acp.run(f"fs read {path}", policy="all")
    assert words in acp.said(session.session_id)[0]
    assert acp.pending() == []


async def test_a_file_with_a_secret_in_it_is_asked_for_under_every_policy(acp: Acp) -> None:
    secret = "ghp_" + "a1B2" * 9
    (acp.world.root / "deploy.py").write_text(f'TOKEN = "{secret}"\n', encoding="utf-8")
    task = acp.begin(await acp.start("fs read deploy.py", policy="all"))
    (proposal,) = await acp.asked()
    assert secret not in json.dumps(proposal.body)
    await acp.reject(proposal)
    await task


async def test_an_approved_edit_is_written_without_a_second_question(acp: Acp) -> None:
    acp.switch(writes="fs")
    task = acp.begin(await acp.start("edit note.txt"))
    (proposal,) = await acp.asked()
    await acp.approve(proposal)
    session = await task
    assert (acp.world.root / "note.txt").read_text() == "written by the agent\n"
    (row,) = acp.rows(session.session_id, "runner.file_written")
    assert row["proposal_id"] == proposal.proposal_id and "+written by" in row["diff"]


async def test_a_write_of_its_own_is_a_proposal(acp: Acp) -> None:
    task = acp.begin(await acp.start("fs write deep/new.txt hello there"))
    (proposal,) = await acp.asked()
    assert proposal.body["diffs"] == [
        {"path": "deep/new.txt", "before": None, "after": "hello there"}
    ]
    await acp.approve(proposal)
    session = await task
    assert acp.said(session.session_id) == ["written"]
    assert (acp.world.root / "deep" / "new.txt").read_text() == "hello there"
    refused = await acp.run("fs write ../out.txt hello", policy="all")
    assert "outside of" in acp.said(refused.session_id)[0]


async def test_a_command_in_a_terminal_is_decided_and_its_output_bounded(acp: Acp) -> None:
    task = acp.begin(await acp.start("terminal seq 1 2000"))
    (proposal,) = await acp.asked()
    assert proposal.body["type"] == "execute"
    await acp.approve(proposal)
    session = await task
    ended, output, is_gone = json.loads(acp.said(session.session_id)[0])
    assert ended == {"exitCode": 0, "signal": None}
    assert output["truncated"] and len(output["output"]) <= 1000
    assert output["output"].endswith("1999\n2000\n")
    assert is_gone


async def test_a_refused_terminal_runs_nothing(acp: Acp) -> None:
    task = acp.begin(await acp.start("terminal touch ran.txt"))
    (proposal,) = await acp.asked()
    await acp.reject(proposal, "not now")
    session = await task
    assert "not now" in acp.said(session.session_id)[0]
    assert not (acp.world.root / "ran.txt").exists()


async def test_a_terminal_is_killed_with_all_that_it_started(acp: Acp) -> None:
    acp.switch(kills=True)
    task = acp.begin(await acp.start("terminal sh -c sleep\\ 1000"))
    (proposal,) = await acp.asked()
    await acp.approve(proposal)
    session = await task
    ended, _, _ = json.loads(acp.said(session.session_id)[0])
    assert ended["exitCode"] != 0
    assert session.status == "completed"
