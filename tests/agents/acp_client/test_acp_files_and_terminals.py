"""Files and terminals that an agent asks cockpit for: confined, decided, journalled."""

from __future__ import annotations

import asyncio
import json

import pytest
from agents.acp_client.acp_world import Acp

from cockpit.loop.permissions.withdrawal import INTERRUPTED
from cockpit.store.context import facts

pytestmark = pytest.mark.slow


async def test_a_read_gives_the_file_as_it_is_and_records_version_and_lines(acp: Acp) -> None:
    (acp.world.root / "note.txt").write_text("one\ntwo\nthree\nfour", encoding="utf-8")
    session = await acp.run("fs read note.txt 2 2", policy="reads")
    assert json.loads(acp.said(session.session_id)[0]) == {"content": "two\nthree\n"}
    (row,) = acp.rows(session.session_id, "runner.file_read")
    assert (row["path"], row["first"], row["last"], len(row["version"])) == ("note.txt", 2, 3, 16)
    (fact,) = facts_of(acp, session.session_id)
    assert (fact.source_type, fact.source_ref, fact.full) == (
        "file",
        "file:note.txt:2-3",
        "two\nthree\n",
    )
    assert fact.provenance["lines"] == [2, 3] and fact.provenance["path"] == "note.txt"
    assert fact.provenance["sha256"].startswith(row["version"])
    (asked,) = acp.rows(session.session_id, "context.requested")
    assert asked["items"][0]["item"] == "file:note.txt:2-3"
    (fetched,) = acp.rows(session.session_id, "context.fetched")
    assert (fetched["facts"], fetched["new"]) == (1, 1)
    (approved,) = acp.rows(session.session_id, "proposal.decided")
    assert (approved["kind"], approved["decided_by"]) == ("context", "policy:reads")


def facts_of(acp: Acp, session_id: str) -> list[facts.FactText]:
    def read(connection):
        rows = connection.execute(
            "SELECT fact_id FROM session_facts WHERE session_id=? AND superseded_at IS NULL"
            " ORDER BY ordinal, position",
            (session_id,),
        ).fetchall()
        texts = facts.load_texts(connection, [identity for (identity,) in rows])
        return [texts[identity] for (identity,) in rows]

    return acp.world.store.read_now(read)


async def test_a_grant_covers_the_path_and_a_new_version_replaces_the_fact(acp: Acp) -> None:
    note = acp.world.root / "note.txt"
    note.write_text("one\ntwo\n", encoding="utf-8")
    session_id = await acp.start("fs read note.txt", interactive=True)
    task = acp.begin(session_id)
    (proposal,) = await acp.asked()
    assert (proposal.kind, proposal.title, proposal.risk) == ("context", "read note.txt", "low")
    assert [item["item"] for item in proposal.body["items"]] == ["file:note.txt"]
    assert proposal.body["agent"] == "scripted" and proposal.body["branch"] == "main"
    await acp.approve(proposal)
    await task
    for words in ("fs read note.txt", "fs read note.txt 1 1"):
        await acp.runtime.say(session_id, words)
        await acp.runtime.run(session_id)
    assert [fact.source_ref for fact in facts_of(acp, session_id)] == [
        "file:note.txt",
        "file:note.txt:1-1",
    ]
    note.write_text("one\nnew\n", encoding="utf-8")
    await acp.runtime.say(session_id, "fs read note.txt")
    await acp.runtime.run(session_id)
    assert "one\nnew\n" in [fact.full for fact in facts_of(acp, session_id)]
    assert "one\ntwo\n" not in [fact.full for fact in facts_of(acp, session_id)]
    assert len(acp.rows(session_id, "proposal.created")) == 1


@pytest.mark.parametrize(("how", "words"), [("discuss", "why that one?"), ("interrupt", "")])
async def test_a_read_that_is_not_granted(acp: Acp, how: str, words: str) -> None:
    (acp.world.root / "note.txt").write_text("one\n", encoding="utf-8")
    session_id = await acp.start("fs read note.txt")
    task = acp.begin(session_id)
    (proposal,) = await acp.asked()
    if how == "discuss":
        await acp.discuss(proposal, words)
        await task
        assert words in acp.said(session_id)[0]
    else:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        *_, closed = acp.rows(session_id, "proposal.decided")
        assert (closed["reason"], closed["decided_by"]) == (INTERRUPTED.words, "person")
    assert acp.pending() == [] and facts_of(acp, session_id) == []


async def test_files_that_no_policy_hands_out(acp: Acp) -> None:
    root = acp.world.root
    (root / ".env").write_text("KEY=1\n", encoding="utf-8")
    (root / "binary.bin").write_bytes(b"\xff\xfe\x00")
    (root / "link.txt").symlink_to("/etc/passwd")
    session_id = await acp.start("answer", policy="all", interactive=True)
    await acp.runtime.run(session_id)
    for path, words in (
        (".env", "secrets by its name"),
        ("../outside.txt", "outside of"),
        ("/etc/passwd", "outside of"),
        ("link.txt", "leads out of the project"),
        (".git/config", "git's own files"),
        ("binary.bin", "not UTF-8 text"),
        ("missing.txt", "There is no file"),
    ):
        await acp.runtime.say(session_id, f"fs read {path}")
        await acp.runtime.run(session_id)
        assert words in acp.said(session_id)[-1]
    assert acp.pending() == []


async def test_a_file_with_a_secret_in_it_is_asked_for_under_every_policy(acp: Acp) -> None:
    secret = "ghp_" + "a1B2" * 9
    (acp.world.root / "deploy.py").write_text(f'TOKEN = "{secret}"\n', encoding="utf-8")
    task = acp.begin(await acp.start("fs read deploy.py", policy="all"))
    (proposal,) = await acp.asked()
    assert secret not in json.dumps(proposal.body)
    assert proposal.risk == "high" and "unmasked" in proposal.body["items"][0]["note"]
    await acp.approve(proposal)
    session = await task
    assert secret in acp.said(session.session_id)[0] or "masked" in acp.said(session.session_id)[0]
    (fact,) = facts_of(acp, session.session_id)
    assert secret not in fact.full and "masked" in fact.full


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
