"""An action that lacks context goes back to Orient: kept, explained, and proposed again."""

from __future__ import annotations

import pytest
from loop_runs import pending, read_details, read_kept, run_to_end, running
from scenario import ask, finish, turn

from cockpit.loop.runtime import Runtime
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.details.waves import WaveStarted
from cockpit.store.sessions import outbox, proposals
from cockpit.store.sessions.proposals import Proposal

pytestmark = pytest.mark.slow


READS = ask("file:calc.py")


def edits(when, old):
    return turn("edit_file", when, "I fix it.", path="calc.py", old=old, new="a + b")


def resumes(when, call):
    return turn("resume_action", when, call=call)


async def read_proposals(runtime: Runtime, session_id: str) -> list[Proposal]:
    stored = await runtime.store.read(lambda c: proposals.select_for_session(c, session_id))
    return [proposal for proposal in stored if proposal.kind == "action"]


async def test_a_blind_edit_is_kept_reads_its_file_and_is_proposed_again_as_it_was(
    runtime, script, project
):
    scenario = (
        edits("wave = 1", "a - b")
        + resumes('facts = ["file:file:calc.py"]', "1.1")
        + finish('contains = ["calc.py is written"]')
    )
    session = await run_to_end(runtime, script(scenario))
    session_id = session.session_id
    assert session.result["status"] == "done", session.result
    assert "a + b" in (project / "calc.py").read_text()
    (held,) = await read_kept(runtime, session_id, "held")
    assert (held.cause, held.items, held.call, held.times) == (
        "unseen_file",
        ("file:calc.py",),
        "1.1",
        1,
    )
    (resumed,) = await read_kept(runtime, session_id, "resumed")
    assert (resumed.action_id, resumed.how) == (held.action_id, "same")
    why = "back to Orient for edit calc.py: calc.py exists, and nothing of it was in the context"
    returns = [each.returns for each in await read_details(runtime, session_id, WaveStarted)]
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


async def test_a_file_that_changed_before_the_approval_goes_back_and_keeps_its_line(
    runtime, script, project
):
    """The user approves what was shown; the file is another by then. The next proposal revises that one."""
    scenario = (
        READS
        + edits('facts = ["file:file:calc.py"]', "a - b")
        + resumes('contains = ["calc.py changed on disk"]', "2.1")
        + finish('contains = ["calc.py is written"]')
    )
    async with running(runtime, script(scenario), policy="reads") as (session_id, work):
        shown = await pending(runtime, "action")
        path = project / "calc.py"
        path.write_text(f"# changed by somebody\n{path.read_text()}")
        await runtime.approve(shown.proposal_id, shown_digest=shown.shown_digest)
        again = await pending(runtime, "action")
        assert again.revises == shown.proposal_id
        assert "# changed by somebody" in again.body["diffs"][0]["before"]
        await runtime.approve(again.proposal_id, shown_digest=again.shown_digest)
        assert (await work).result["status"] == "done"
        assert path.read_text().startswith("# changed by somebody")
        assert "a + b" in path.read_text()
        (held,) = await read_kept(runtime, session_id, "held")
        assert (held.cause, held.proposal_id) == ("changed", shown.proposal_id)
        # The wave that went back read the file anew: its packet has the change.
        explanation = await runtime.explain(session_id, 3)
        assert any(fact.source_ref == "file:calc.py" for fact in explanation.facts)


async def test_a_text_that_does_not_match_is_revised_once_the_file_was_read_again(
    opened, script, project
):
    scenario = (
        READS
        + edits('facts = ["file:file:calc.py"]', "a - b")
        + edits('contains = ["return a [*] b"]', "a * b")
        + finish('contains = ["calc.py is written"]')
    )
    async with (
        opened(frame=False) as runtime,
        running(runtime, script(scenario), policy="ask") as (session_id, work),
    ):
        request = await pending(runtime, "context")
        path = project / "calc.py"
        changed = path.read_text().replace("a - b", "a * b")
        times = iter((1,))

        def change() -> None:
            """Change the file after it was read, and before the model's edit is previewed."""
            if has_read(runtime, session_id) and next(times, 0):
                path.write_text(changed)

        runtime.store.on_commit(change)
        await runtime.approve(request.proposal_id)
        again = await pending(runtime, "context")
        assert [item["item"] for item in again.body["items"]] == ["file:calc.py"]
        assert "'old' does not occur" in again.body["purpose"]
        await runtime.approve(again.proposal_id)
        edit = await pending(runtime, "action")
        await runtime.approve(edit.proposal_id)
        assert (await work).result["status"] == "done"
        (held,) = await read_kept(runtime, session_id, "held")
        (resumed,) = await read_kept(runtime, session_id, "resumed")
        assert (held.cause, resumed.how) == ("text_differs", "revised")


def has_read(runtime: Runtime, session_id: str) -> bool:
    (count,) = runtime.store.read_now(
        lambda c: c.execute(
            "SELECT count(*) FROM journal WHERE session_id=? AND action='context.fetched'",
            (session_id,),
        ).fetchone()
    )
    return bool(count)


async def test_a_line_goes_back_three_times_at_most_and_ends_with_its_reason(
    runtime, script, project
):
    """A file that is rewritten before each edit: the fourth failure is final."""
    scenario = edits("wave_from = 1", "a - b") + finish("wave = 12")
    path = project / "calc.py"
    count = 0

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
    held = await read_kept(runtime, session_id, "held")
    assert [each.times for each in held[:3]] == [1, 2, 3]
    assert max(each.times for each in held) == 3
    assert len({each.root for each in held[:3]}) == 1


async def test_what_the_user_does_not_want_read_is_not_asked_for_again(runtime, script, project):
    scenario = (
        edits("wave = 1", "a - b")
        + resumes('contains = ["not this file"]', "1.1")
        + finish('contains = ["you would write blind"]')
    )
    before = (project / "calc.py").read_text()
    async with running(runtime, script(scenario), policy="ask") as (session_id, work):
        request = await pending(runtime, "context")
        await runtime.reject(request.proposal_id, reason="not this file")
        assert (await work).result["status"] == "blocked", "its only edit was refused"
        assert len(await read_kept(runtime, session_id, "held")) == 1
        assert (project / "calc.py").read_text() == before
