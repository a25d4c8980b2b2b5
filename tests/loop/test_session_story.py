"""A whole session on a real project: asked, approved, edited, tested, committed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from loop_calc import CALC, git

from cockpit.core.errors import AlreadyDecided, Stale
from cockpit.loop.runtime_settings import Limits
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import events, messages, outbox, proposals, sessions, waves

pytestmark = pytest.mark.slow


async def pending(runtime, count=1):
    """The pending proposals, once there are ``count``."""

    def ask():
        found = runtime.store.read_now(proposals.select_pending)
        return found if len(found) >= count else None

    return await asyncio.wait_for(runtime.engine.change_waiter.wait_for(ask), 20)


async def test_policy_all_carries_a_change_to_its_commit(opened, fix, project):
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=fix, policy="all", interactive=False)
        ended = await runtime.run(sid)
        assert (ended.status, ended.result["status"]) == ("completed", "done")
        assert (project / "calc.py").read_text() == CALC.replace("-", "+")
        assert git(project, "log", "--format=%s").splitlines() == ["Add adds", "Add calc"]
        assert git(project, "status", "--short") == ""
        actions = await runtime.store.read(lambda c: outbox.select_for_session(c, sid))
        assert [a.phase for a in actions] == ["confirmed"] * 3
        found = await runtime.store.read(lambda c: proposals.select_for_session(c, sid))
        assert [(p.kind, p.status, p.decided_by) for p in found] == [
            ("context", "approved", "policy:all"),
            ("action", "approved", "policy:all"),
            ("action", "approved", "policy:all"),
            ("action", "approved", "policy:all"),
        ]
        done = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        assert [w.phase for w in done] == ["completed"] * 3
        assert (await runtime.store.read(verify_chain.verify)).ok


async def test_nothing_is_read_before_the_person_approves_and_only_what_is_kept(opened, fix):
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=fix, policy="ask")
        run = asyncio.create_task(runtime.run(sid))
        (asked,) = await pending(runtime)
        assert asked.kind == "context"
        refs = "SELECT source_ref FROM session_facts WHERE source_type='file'"
        assert await runtime.store.read(lambda c: c.execute(refs).fetchall()) == []
        await runtime.approve(
            asked.proposal_id, shown_digest=asked.shown_digest, narrowed=["file:calc.py"]
        )
        (edit,) = await pending(runtime)
        assert await runtime.store.read(lambda c: c.execute(refs).fetchall()) == [("file:calc.py",)]
        assert edit.body["diffs"][0]["after"] == CALC.replace("-", "+")
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run


async def test_a_discussion_reaches_the_agent_and_the_next_proposal_answers_it(opened, script):
    model = script(
        """
[[turn]]
text = "I want both."
[[turn.call]]
name = "request_context"
arguments = { purpose = "fix", question = "what?", scope = ["file:calc.py", "file:test_calc.py"] }
[[turn]]
when = { contains = ["only the module"] }
text = "Only the module, then."
[[turn.call]]
name = "request_context"
arguments = { purpose = "fix", question = "what?", scope = ["file:calc.py"] }
"""
    )
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=model, policy="ask")
        run = asyncio.create_task(runtime.run(sid))
        (first,) = await pending(runtime)
        await runtime.discuss(first.proposal_id, shown_digest=first.shown_digest)

        def waits():
            session = runtime.store.read_now(lambda c: sessions.load(c, sid))
            return True if session.status == "waiting" else None

        await asyncio.wait_for(runtime.engine.change_waiter.wait_for(waits), 20)
        await runtime.say(sid, "only the module please")
        (second,) = await pending(runtime)
        assert second.revises == first.proposal_id
        assert second.body["changes"] == ["− file:test_calc.py"]
        with pytest.raises(AlreadyDecided):
            await runtime.approve(first.proposal_id)
        with pytest.raises(Stale):
            await runtime.approve(second.proposal_id, shown_digest="0" * 64)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_words_about_a_request_are_one_wave_and_a_question_waits_for_its_answer(
    opened, script
):
    model = script(
        """
[[turn]]
text = "I want the module."
[[turn.call]]
name = "request_context"
arguments = { purpose = "fix", question = "what?", scope = ["file:calc.py"] }
[[turn]]
when = { wave = 2 }
text = "What do you mean?"
[[turn]]
when = { wave = 3 }
text = "I answer myself."
"""
    )
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=model, policy="ask")
        run = asyncio.create_task(runtime.run(sid))
        (request,) = await pending(runtime)
        await runtime.discuss(
            request.proposal_id, shown_digest=request.shown_digest, words="nonsense"
        )

        def answered():
            session = runtime.store.read_now(lambda c: sessions.load(c, sid))
            spoken = runtime.store.read_now(lambda c: messages.select_for_session(c, sid))
            texts = [message.text for message in spoken if message.role == "agent"]
            return (session, texts) if session.status == "waiting" and len(texts) > 1 else None

        session, texts = await asyncio.wait_for(runtime.engine.change_waiter.wait_for(answered), 20)
        assert texts == ["I want the module.", "What do you mean?"]
        assert await runtime.store.read(lambda c: events.count_waiting(c, session.source)) == 0
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_a_rejected_action_changes_nothing_and_stops_the_rest_of_the_plan(
    opened, fix, project
):
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=fix, policy="reads")
        run = asyncio.create_task(runtime.run(sid))
        (edit,) = await pending(runtime)
        await runtime.reject(edit.proposal_id, shown_digest=edit.shown_digest, reason="not today")
        (again,) = await pending(runtime)
        assert again.proposal_id != edit.proposal_id
        assert (project / "calc.py").read_text() == CALC
        actions = await runtime.store.read(lambda c: outbox.select_for_session(c, sid))
        assert [a.phase for a in actions[:3]] == ["failed_terminal"] * 3
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_an_edit_by_the_person_is_shown_again_before_it_runs(opened, fix, project):
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=fix, policy="reads")
        run = asyncio.create_task(runtime.run(sid))
        (first,) = await pending(runtime)
        text, suffix = await runtime.editable(first.proposal_id)
        assert (text, suffix) == ("a + b", ".py")
        revision = await runtime.edit(
            first.proposal_id, shown_digest=first.shown_digest, text="b + a"
        )
        (second,) = await pending(runtime)
        assert second.proposal_id == revision
        assert "b + a" in second.body["diffs"][0]["after"]
        assert (project / "calc.py").read_text() == CALC
        await runtime.approve(revision, shown_digest=second.shown_digest)
        (command,) = await pending(runtime)
        assert command.body["type"] == "run"
        assert (project / "calc.py").read_text() == CALC.replace("a - b", "b + a")
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_a_deadline_ends_the_wait_and_the_session_goes_on_later(opened, fix):
    async with opened(Limits(deadline_s=0.2)) as runtime:
        sid = await runtime.start("fix add", model=fix, policy="ask", interactive=False)
        rested = await runtime.run(sid)
        assert (rested.status, rested.result["status"]) == ("waiting", "expired")
        (asked,) = await runtime.store.read(lambda c: proposals.select_for_session(c, sid))
        assert (asked.status, asked.decided_by) == ("expired", "deadline")
        await runtime.change(sid, policy="all")
        ended = await runtime.run(sid)
        assert ended.status == "completed"


async def test_a_session_that_waits_for_a_decision_writes_nothing(opened, fix):
    async with opened(Limits(deadline_s=3600)) as runtime:
        sid = await runtime.start("fix add", model=fix, policy="ask", interactive=False)
        run = asyncio.create_task(runtime.run(sid))
        while (await runtime.store.read(sessions.find_latest)).status != "waiting":
            await asyncio.sleep(0.005)
        looks = 0
        read_now = runtime.store.read_now

        def counted(look):
            nonlocal looks
            looks += 1
            return read_now(look)

        runtime.store.read_now = counted
        commits = runtime.store.commits
        for number in range(5):
            # What others write wakes it; what it finds out wakes nobody.
            await runtime.store.write(lambda tx: tx.append_row(Action.SESSION_RUNNING))
            while looks <= number:
                await asyncio.sleep(0)
        assert runtime.store.commits == commits + 5
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_a_wave_limit_ends_the_session_and_a_higher_one_goes_on(opened, fix):
    async with opened() as runtime:
        sid = await runtime.start(
            "fix add", model=fix, policy="all", interactive=False, limits=Limits(max_waves=1)
        )
        assert (await runtime.run(sid)).result["status"] == "limit"
        await runtime.change(sid, limits=Limits(max_waves=9))
        assert (await runtime.run(sid)).result["status"] == "done"


async def test_a_malformed_call_is_answered_and_the_agent_mends_it(opened, script):
    model = script(
        """
[[turn]]
text = "Here."
[[turn.call]]
name = "edit_file"
raw_arguments = '{"path": "calc.py", "old": '
[[turn]]
when = { wave_from = 2, contains = ["not valid JSON"] }
[[turn.call]]
name = "finish"
arguments = { status = "blocked", summary = "mended" }
"""
    )
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=model, policy="all", interactive=False)
        ended = await runtime.run(sid)
        assert ended.result == {"status": "blocked", "summary": "mended"}
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=sid))
        assert [r.error_code for r in rows if r.action == "model.malformed_call"] == [
            "malformed_call"
        ]


async def test_two_runners_of_one_session_are_one_too_many(opened, fix):
    async with opened() as runtime:
        sid = await runtime.start("fix add", model=fix, policy="ask")
        run = asyncio.create_task(runtime.run(sid))
        await pending(runtime)
        with pytest.raises(Stale, match="runs session"):
            await runtime.run(sid)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_the_same_story_in_another_directory_has_the_same_packets(
    opened, fix, project: Path, tmp_path: Path
):
    from cockpit.core.project_paths import locate_project
    from cockpit.loop.runtime import open_runtime
    from cockpit.loop.runtime_settings import RuntimeSettings
    from cockpit.store.context import packets

    elsewhere = tmp_path / "deep" / "er"
    elsewhere.parent.mkdir()
    git(tmp_path, "clone", "-q", str(project), str(elsewhere))
    seen = []
    settings = RuntimeSettings(user_dir=tmp_path / "user")
    for root in (project, elsewhere):
        async with open_runtime(locate_project(root), settings) as runtime:
            sid = await runtime.start("fix add", model=fix, policy="reads")
            run = asyncio.create_task(runtime.run(sid))
            await pending(runtime)
            found = await runtime.store.read(lambda c, sid=sid: packets.select_for_session(c, sid))
            seen.append([packet.digest for packet in found])
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
    assert len(seen[0]) == 2
    assert seen[0] == seen[1]


async def test_a_session_of_the_screen_that_goes_on_without_one_gets_deadlines(opened, fix):
    async with opened(Limits(deadline_s=0.2)) as runtime:
        sid = await runtime.start("fix add", model=fix, policy="ask")
        run = asyncio.create_task(runtime.run(sid, interactive=True))
        (asked,) = await pending(runtime)
        assert asked.expires_at is None
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        rested = await runtime.run(sid, interactive=False)
        assert (rested.status, rested.result["status"], rested.interactive) == (
            "waiting",
            "expired",
            False,
        )


async def test_a_message_before_the_first_wave_belongs_to_it(opened, script):
    async with opened() as runtime:
        sid = await runtime.start("look around", model=script('[[turn]]\ntext = "I see."\n'))
        await runtime.say(sid, "and mind the step")
        await runtime.run(sid)
        (wave,) = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        prompt, _ = await runtime.rendered_prompt(wave.wave_id)
        text = "\n".join(message.text for message in prompt.messages)
        assert text.index("look around") < text.index("and mind the step")
