"""What an agent asks for is one proposal, decided once, and the agent gets what the journal says."""

from __future__ import annotations

import asyncio
import re

import pytest
from msgspec.structs import replace
from permission_world import CANARY, bash, edit, mcp

from cockpit.commands.sessions.proposal_text import proposal_text
from cockpit.core.errors import Stale
from cockpit.loop.permissions import ask_permission, withdrawal
from cockpit.loop.permissions.changed_input import InputNotChanged
from cockpit.loop.permissions.withdrawal import Ending, Withdrawal
from cockpit.loop.views import transcript
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import sessions
from cockpit.store.sessions.proposals import AlreadyDecided, shown_status

pytestmark = pytest.mark.slow


async def test_enter_allows_once(world):
    answer, shown = await world.answered(bash("make build"), "approved")
    given = (answer.allowed, answer.by, answer.input, answer.end)
    assert given == (True, "person", None, "decided")
    assert shown.kind == "permission"
    assert shown.body["agent"] == "claude"
    assert (shown.body["project"], shown.body["branch"]) == ("calc", "main")
    assert answer.proposal_id == shown.proposal_id
    assert world.store.read_now(verify_chain.verify).broken is None


async def test_no_carries_the_words(world):
    answer, _ = await world.answered(bash("make build"), "rejected", "use ninja")
    assert (answer.allowed, answer.words) == (False, "use ninja")
    assert answer.message == "The user said no: use ninja"
    plain, _ = await world.answered(bash("make build"), "rejected")
    assert (plain.words, plain.message) == ("", "The user said no.")


async def test_a_deny_rule_answers_at_once_and_is_journalled(world):
    answer = await world.ask(bash("cockpit proposals approve p-1"), policy="all")
    assert (answer.allowed, answer.by, answer.proposal_id) == (False, "deny rules", "")
    assert not world.rows()
    (refused,) = world.rows("action.refused")
    assert refused.session_id == world.session_id


async def test_a_session_waits_while_its_permission_waits(world):
    def status() -> str:
        return world.store.read_now(lambda c: sessions.load(c, world.session_id)).status

    both = [asyncio.create_task(world.ask(bash(f"make {name}"))) for name in ("a", "b")]
    first, second = await world.pending(2)
    assert status() == "waiting"
    world.decide(first, "approved")
    await world.pending(1)
    assert status() == "waiting"
    world.decide(second, "rejected")
    answers = await asyncio.gather(*both)
    assert sorted(each.allowed for each in answers) == [False, True]
    assert status() == "running"


async def test_a_file_that_changes_meanwhile_is_shown_anew(world):
    file = world.root / "calc.py"
    file.write_text("a\nb\n")
    asking = asyncio.create_task(world.ask(edit(file, "b\n", "B\n")))
    (first,) = await world.pending()
    # At once: a file that is still empty would be shown anew as well.
    later = world.root.parent / "later.py"
    later.write_text("a\nb\nlater\n")
    later.replace(file)

    def shown_anew() -> object:
        waiting = world._pending(1)
        return waiting if waiting and waiting[0].proposal_id != first.proposal_id else None

    await world.waiter.wait_for(shown_anew, 0.02)
    (second,) = await world.pending()
    assert second.revises == first.proposal_id
    assert second.body["changes"] == ["calc.py changed on disk since the agent asked"]
    assert second.body["diffs"][0]["after"] == "a\nB\nlater\n"
    world.decide(second, "approved")
    answer = await asking
    assert (answer.allowed, answer.proposal_id) == (True, second.proposal_id)


ENDINGS = {name: each for name, each in vars(withdrawal).items() if isinstance(each, Ending)}


@pytest.mark.parametrize("name", ENDINGS)
async def test_each_end_says_what_happened_wherever_it_is_read(world, name):
    ending, withdrawn = ENDINGS[name], Withdrawal()
    asking = asyncio.create_task(world.ask(bash("make"), withdrawn=withdrawn))
    (shown,) = await world.pending()
    withdrawn.withdraw(ending)
    withdrawn.withdraw(withdrawal.TAKEN_BACK)  # the first reason counts
    answer = await asking
    by = ending.by or "agent:claude"
    assert (answer.allowed, answer.end, answer.by) == (False, "withdrawn", by)
    assert answer.message == ending.words
    closed = world.load(shown.proposal_id)
    assert (closed.status, closed.decided_by, closed.reason) == ("expired", by, ending.words)
    assert shown_status(closed) == "withdrawn"
    text = proposal_text(closed)
    assert "· withdrawn ·" in text and ending.words in text
    (row,) = [row for row in world.rows() if row.action == "proposal.decided"]
    assert f"withdrawn: {ending.words}" in Storyteller().tell(row)
    entry = transcript.entries(world.rows())[-1].record()
    assert (entry["status"], entry["verdict"]["words"]) == ("withdrawn", ending.words)
    with pytest.raises(AlreadyDecided, match=re.escape(f"was withdrawn. {ending.words}")):
        world.decide(shown, "approved")


@pytest.mark.parametrize(
    ("message", "ending"), [("", withdrawal.INTERRUPTED), (withdrawal.QUIT, withdrawal.CLOSED)]
)
async def test_a_run_that_is_cancelled_withdraws(world, message, ending):
    asking = asyncio.create_task(world.ask(bash("make")))
    (shown,) = await world.pending()
    asking.cancel(message)
    with pytest.raises(asyncio.CancelledError):
        await asking
    closed = world.load(shown.proposal_id)
    assert (closed.decided_by, closed.reason) == (ending.by, ending.words)


async def test_the_deadline_answers(world):
    asking = asyncio.create_task(world.ask(bash("make"), deadline_s=60))
    await world.pending()
    world.store.clock.advance(61)  # type: ignore[attr-defined]
    answer = await asking
    assert (answer.allowed, answer.end, answer.by) == (False, "expired", "deadline")
    (row,) = [row for row in world.rows() if row.action == "proposal.decided"]
    assert "expired without a decision" in Storyteller().tell(row)
    assert shown_status(world.load(answer.proposal_id)) == "expired"


async def test_an_edited_command_comes_back_with_its_secret(world):
    line = f"curl -H 'Authorization: Bearer {CANARY}' https://example.invalid/a"
    asking = asyncio.create_task(world.ask(bash(line)))
    (shown,) = await world.pending()
    assert CANARY not in str(shown)
    text = shown.body["input"]["command"]
    revision = await world.edit(shown, text.replace("/a", "/b"))
    assert revision.revises == shown.proposal_id
    first, *changes = revision.body["changes"]
    assert first == "edited by you"
    assert [change[0] for change in changes] == ["−", "+"]
    assert changes[1].endswith("/b'") or changes[1].endswith("/b")
    assert CANARY not in str(changes)
    world.decide(revision, "approved")
    answer = await asking
    assert answer.input is not None
    assert answer.input["command"] == line.replace("/a", "/b")
    assert answer.input["description"] == "why it runs"
    assert answer.proposal_id == revision.proposal_id


async def test_an_edit_that_a_deny_rule_forbids_changes_nothing(world):
    asking = asyncio.create_task(world.ask(bash("make")))
    (shown,) = await world.pending()
    with pytest.raises(InputNotChanged, match="denies"):
        await world.edit(shown, "sudo make")
    with pytest.raises(InputNotChanged, match="secret"):
        await world.edit(shown, f"echo {CANARY}")
    assert world.load(shown.proposal_id).status == "pending"
    world.decide(shown, "rejected")
    assert not (await asking).allowed


async def test_an_edited_input_of_a_server_is_json(world):
    asking = asyncio.create_task(world.ask(mcp({"title": "Bug", "labels": ["a"]})))
    (shown,) = await world.pending()
    with pytest.raises(InputNotChanged, match="JSON"):
        await world.edit(shown, "not json")
    revision = await world.edit(shown, '{"title": "Bug in calc", "labels": []}')
    with pytest.raises(Stale):
        world.decide(replace(revision, shown_digest=shown.shown_digest), "approved")
    world.decide(revision, "approved")
    assert (await asking).input == {"title": "Bug in calc", "labels": []}


async def test_an_agent_that_asks_without_end_is_refused(world, monkeypatch):
    monkeypatch.setattr(ask_permission, "MOST_WAITING", 2)
    first = [asyncio.create_task(world.ask(bash(f"make {name}"))) for name in ("a", "b")]
    waiting = await world.pending(2)
    refused = await world.ask(bash("make c"))
    assert (refused.allowed, refused.by, refused.proposal_id) == (False, "cockpit", "")
    assert "at a time" in refused.message
    assert len(world.rows("action.refused")) == 1
    for proposal in waiting:
        world.decide(proposal, "approved")
    assert all(answer.allowed for answer in await asyncio.gather(*first))
