"""An action that lacks context goes back to Orient: kept, explained, and proposed again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from loop_calc import git

from cockpit.loop.runtime import Runtime
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.details.reentry import ActionHeld, ActionReleased, ActionResumed
from cockpit.store.journal.details.waves import WaveStarted
from cockpit.store.sessions import outbox, proposals
from cockpit.store.sessions.proposals import Proposal

pytestmark = pytest.mark.slow

Opened = Callable[..., AbstractAsyncContextManager[Runtime]]
Script = Callable[[str], str]

READS = """
[[turn]]
[[turn.call]]
name = "request_context"
arguments.purpose = "fix add"
arguments.question = "what does add do?"
arguments.scope = ["file:calc.py"]
"""
EDITS = """
[[turn]]
when = { %s }
text = "I fix it."
[[turn.call]]
name = "edit_file"
arguments.path = "calc.py"
arguments.old = "%s"
arguments.new = "a + b"
"""
RESUMES = """
[[turn]]
when = { %s }
[[turn.call]]
name = "resume_action"
arguments.call = "%s"
"""
ENDS = """
[[turn]]
when = { %s }
[[turn.call]]
name = "finish"
arguments.status = "done"
arguments.summary = "done"
"""


async def rows_of(runtime: Runtime, session_id: str, kind: type) -> list:
    rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
    return [row.detail for row in rows if isinstance(row.detail, kind)]


async def read_proposals(runtime: Runtime, session_id: str) -> list[Proposal]:
    stored = await runtime.store.read(lambda c: proposals.select_for_session(c, session_id))
    return [proposal for proposal in stored if proposal.kind == "action"]


async def test_a_blind_edit_is_kept_reads_its_file_and_is_proposed_again_as_it_was(
    opened: Opened, script: Script, project: Path
) -> None:
    scenario = (
        EDITS % ("wave = 1", "a - b")
        + RESUMES % ('facts = ["file:file:calc.py"]', "1.1")
        + ENDS % 'contains = ["calc.py is written"]'
    )
    async with opened() as runtime:
        session_id = await runtime.start(
            "fix add", model=script(scenario), policy="all", interactive=False
        )
        session = await runtime.run(session_id)
        assert session.result["status"] == "done", session.result
        assert "a + b" in (project / "calc.py").read_text()
        (held,) = await rows_of(runtime, session_id, ActionHeld)
        assert (held.cause, held.items, held.call, held.times) == (
            "unseen_file",
            ("file:calc.py",),
            "1.1",
            1,
        )
        (resumed,) = await rows_of(runtime, session_id, ActionResumed)
        assert (resumed.action_id, resumed.how) == (held.action_id, "same")
        why = (
            "back to Orient for edit calc.py: calc.py exists, and nothing of it was in the context"
        )
        returns = [each.returns for each in await rows_of(runtime, session_id, WaveStarted)]
        assert returns[1] == f"{why}, reading file:calc.py"
        (proposal,) = await read_proposals(runtime, session_id)
        assert any("Proposed again" in note for note in proposal.body["notes"])
        actions = await runtime.store.read(lambda c: outbox.select_for_session(c, session_id))
        assert [action.phase for action in actions] == ["failed_terminal", "confirmed"]
        explanation = await runtime.explain(session_id, 2)
        assert explanation.returns == returns[1]
        teller = Storyteller()
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
        text = "".join(teller.tell(row) for row in rows)
        assert f"── wave 2 · {why}" in text
        assert runtime.store.read_now(verify_chain.verify).ok


async def wait_for_proposal(runtime: Runtime, work: asyncio.Task, kind: str) -> Proposal:
    for _ in range(6_000):
        if work.done():
            break
        for proposal in await runtime.store.read(proposals.select_pending):
            if proposal.kind == kind:
                return proposal
        await asyncio.sleep(0.01)
    ended = work.result().result if work.done() else "it still waits"
    raise AssertionError(f"no {kind} was proposed: {ended}")


async def test_a_file_that_changed_before_the_approval_goes_back_and_keeps_its_line(
    opened: Opened, script: Script, project: Path
) -> None:
    """The user approves what was shown; the file is another by then. The next proposal revises that one."""
    scenario = (
        READS
        + EDITS % ('facts = ["file:file:calc.py"]', "a - b")
        + RESUMES % ('contains = ["calc.py changed on disk"]', "2.1")
        + ENDS % 'contains = ["calc.py is written"]'
    )
    async with opened() as runtime:
        session_id = await runtime.start("fix add", model=script(scenario), policy="reads")
        work = asyncio.create_task(runtime.run(session_id))
        shown = await wait_for_proposal(runtime, work, "action")
        path = project / "calc.py"
        path.write_text(f"# changed by somebody\n{path.read_text()}")
        await runtime.approve(shown.proposal_id, shown_digest=shown.shown_digest)
        again = await wait_for_proposal(runtime, work, "action")
        assert again.revises == shown.proposal_id
        assert "# changed by somebody" in again.body["diffs"][0]["before"]
        await runtime.approve(again.proposal_id, shown_digest=again.shown_digest)
        assert (await work).result["status"] == "done"
        assert path.read_text().startswith("# changed by somebody")
        assert "a + b" in path.read_text()
        (held,) = await rows_of(runtime, session_id, ActionHeld)
        assert (held.cause, held.proposal_id) == ("changed", shown.proposal_id)
        # The wave that went back read the file anew: its packet has the change.
        explanation = await runtime.explain(session_id, 3)
        assert any(fact.source_ref == "file:calc.py" for fact in explanation.facts)


async def test_a_text_that_does_not_match_is_revised_once_the_file_was_read_again(
    opened: Opened, script: Script, project: Path
) -> None:
    scenario = (
        READS
        + EDITS % ('facts = ["file:file:calc.py"]', "a - b")
        + EDITS % ('contains = ["return a [*] b"]', "a * b")
        + ENDS % 'contains = ["calc.py is written"]'
    )
    async with opened() as runtime:
        session_id = await runtime.start("fix add", model=script(scenario), policy="ask")
        work = asyncio.create_task(runtime.run(session_id))
        request = await wait_for_proposal(runtime, work, "context")
        path = project / "calc.py"
        changed = path.read_text().replace("a - b", "a * b")
        times = iter((1,))

        def change() -> None:
            """Change the file after it was read, and before the model's edit is previewed."""
            if has_read(runtime, session_id) and next(times, 0):
                path.write_text(changed)

        runtime.store.on_commit(change)
        await runtime.approve(request.proposal_id)
        again = await wait_for_proposal(runtime, work, "context")
        assert [item["item"] for item in again.body["items"]] == ["file:calc.py"]
        assert "'old' does not occur" in again.body["purpose"]
        await runtime.approve(again.proposal_id)
        edit = await wait_for_proposal(runtime, work, "action")
        await runtime.approve(edit.proposal_id)
        assert (await work).result["status"] == "done"
        (held,) = await rows_of(runtime, session_id, ActionHeld)
        (resumed,) = await rows_of(runtime, session_id, ActionResumed)
        assert (held.cause, resumed.how) == ("text_differs", "revised")


def has_read(runtime: Runtime, session_id: str) -> bool:
    (count,) = runtime.store.read_now(
        lambda c: c.execute(
            "SELECT count(*) FROM journal WHERE session_id=? AND action='context.fetched'",
            (session_id,),
        ).fetchone()
    )
    return bool(count)


async def test_a_misquoted_text_of_a_file_in_view_is_refused_as_before(
    opened: Opened, script: Script
) -> None:
    """The context lacks nothing: going back would read the same again."""
    scenario = (
        READS
        + EDITS % ('facts = ["file:file:calc.py"]', "a minus b")
        + ENDS % 'contains = ["does not occur in the file"]'
    )
    async with opened() as runtime:
        session_id = await runtime.start(
            "fix add", model=script(scenario), policy="all", interactive=False
        )
        session = await runtime.run(session_id)
        assert session.result["status"] == "done"
        assert await rows_of(runtime, session_id, ActionHeld) == []


async def test_the_user_s_words_about_a_proposal_read_what_they_name(
    opened: Opened, script: Script, project: Path
) -> None:
    scenario = (
        READS
        + EDITS % ('facts = ["file:file:calc.py"]', "a - b")
        + RESUMES % ('facts = ["file:file:test_calc.py"]', "2.1")
        + ENDS % 'contains = ["calc.py is written"]'
    )
    async with opened() as runtime:
        session_id = await runtime.start("fix add", model=script(scenario), policy="reads")
        work = asyncio.create_task(runtime.run(session_id))
        first = await wait_for_proposal(runtime, work, "action")
        await runtime.discuss(first.proposal_id, words="what does @test_calc.py say to that?")
        second = await wait_for_proposal(runtime, work, "action")
        assert second.revises == first.proposal_id
        await runtime.approve(second.proposal_id)
        assert (await work).result["status"] == "done"
        assert "a + b" in (project / "calc.py").read_text()


async def test_a_line_goes_back_three_times_at_most_and_ends_with_its_reason(
    opened: Opened, script: Script, project: Path
) -> None:
    """A file that is rewritten before each edit: the fourth failure is final."""
    scenario = EDITS % ("wave_from = 1", "a - b") + ENDS % "wave = 12"
    path = project / "calc.py"
    count = 0

    async with opened() as runtime:

        def rewrite() -> None:
            nonlocal count
            (queued,) = runtime.store.read_now(
                lambda c: c.execute(
                    "SELECT count(*) FROM journal WHERE action='action.queued'"
                ).fetchone()
            )
            if queued > count:
                count = queued
                path.write_text(f"# {count}\n{path.read_text()}")

        session_id = await runtime.start(
            "fix add", model=script(scenario), policy="all", interactive=False
        )
        runtime.store.on_commit(rewrite)
        await runtime.run(session_id)
        held = await rows_of(runtime, session_id, ActionHeld)
        assert [each.times for each in held[:3]] == [1, 2, 3]
        assert max(each.times for each in held) == 3
        assert len({each.root for each in held[:3]}) == 1


async def test_what_the_agent_leaves_behind_is_given_up_at_its_end(
    opened: Opened, script: Script
) -> None:
    scenario = EDITS % ("wave = 1", "a - b") + ENDS % "wave = 2"
    async with opened() as runtime:
        session_id = await runtime.start(
            "fix add", model=script(scenario), policy="all", interactive=False
        )
        await runtime.run(session_id)
        (held,) = await rows_of(runtime, session_id, ActionHeld)
        (released,) = await rows_of(runtime, session_id, ActionReleased)
        assert (released.action_id, released.reason) == (
            held.action_id,
            "the agent finished without it",
        )


async def test_an_action_that_is_not_kept_cannot_be_resumed(opened: Opened, script: Script) -> None:
    scenario = RESUMES % ("wave = 1", "7.1") + ENDS % 'contains = ["No action is kept"]'
    async with opened() as runtime:
        session_id = await runtime.start(
            "fix add", model=script(scenario), policy="all", interactive=False
        )
        assert (await runtime.run(session_id)).result["status"] == "done"


async def test_what_the_user_does_not_want_read_is_not_asked_for_again(
    opened: Opened, script: Script, project: Path
) -> None:
    scenario = (
        EDITS % ("wave = 1", "a - b")
        + RESUMES % ('contains = ["not this file"]', "1.1")
        + ENDS % 'contains = ["you would write blind"]'
    )
    before = (project / "calc.py").read_text()
    async with opened() as runtime:
        session_id = await runtime.start("fix add", model=script(scenario), policy="ask")
        work = asyncio.create_task(runtime.run(session_id))
        request = await wait_for_proposal(runtime, work, "context")
        await runtime.reject(request.proposal_id, reason="not this file")
        assert (await work).result["status"] == "done"
        assert len(await rows_of(runtime, session_id, ActionHeld)) == 1
        assert (project / "calc.py").read_text() == before


async def test_a_commit_whose_file_changed_before_it_was_carried_out_is_shown_anew(
    opened: Opened, script: Script, project: Path
) -> None:
    commit = """
[[turn]]
[[turn.call]]
name = "git_commit"
arguments.message = "Change calc"
arguments.paths = ["calc.py"]
"""
    path = project / "calc.py"
    path.write_text(f"{path.read_text()}# mine\n")
    scenario = (
        commit
        + RESUMES % ('facts = ["file:file:calc.py"]', "1.1")
        + ENDS % 'contains = ["Committed "]'
    )
    async with opened() as runtime:
        session_id = await runtime.start("fix add", model=script(scenario), policy="reads")
        work = asyncio.create_task(runtime.run(session_id))
        first = await wait_for_proposal(runtime, work, "action")
        path.write_text(f"{path.read_text()}# somebody\n")
        await runtime.approve(first.proposal_id, shown_digest=first.shown_digest)
        second = await wait_for_proposal(runtime, work, "action")
        assert second.revises == first.proposal_id
        assert "# somebody" in second.body["diffs"][0]["after"]
        await runtime.approve(second.proposal_id)
        assert (await work).result["status"] == "done"
        assert git(project, "log", "--format=%s").splitlines()[:2] == ["Change calc", "Add calc"]
