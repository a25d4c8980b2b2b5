"""A whole session on a real project: asked, approved, edited, tested, committed."""

from __future__ import annotations

import asyncio

import pytest
from loop_calc import CALC, git
from loop_runs import pending, run_to_end, running, wait_until
from scenario import ask, finish, turn

from cockpit.core.errors import AlreadyDecided, Stale
from cockpit.loop.runtime_settings import Limits
from cockpit.store.context import facts
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import context_requests, outbox, proposals, sessions, waves

pytestmark = pytest.mark.slow


async def test_policy_all_carries_a_change_to_its_commit(runtime, fix, project):
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


async def test_nothing_is_read_before_the_person_approves_and_only_what_is_kept(runtime, fix):
    async with running(runtime, fix, policy="ask") as (sid, run):
        asked = await pending(runtime)
        assert asked.kind == "context"
        refs = "SELECT source_ref FROM session_facts WHERE source_type='file'"
        assert await runtime.store.read(lambda c: c.execute(refs).fetchall()) == []
        await runtime.approve(
            asked.proposal_id, shown_digest=asked.shown_digest, narrowed=["file:calc.py"]
        )
        edit = await pending(runtime)
        assert await runtime.store.read(lambda c: c.execute(refs).fetchall()) == [("file:calc.py",)]
        assert edit.body["diffs"][0]["after"] == CALC.replace("-", "+")
        with pytest.raises(Stale, match="runs session"):
            await runtime.run(sid)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run


async def test_a_discussion_reaches_the_agent_and_the_next_proposal_answers_it(runtime, script):
    model = script(
        ask("file:calc.py", "file:test_calc.py")
        + ask("file:calc.py", when='contains = ["only the module"]', text="Only the module, then.")
    )
    async with running(runtime, model, policy="ask") as (sid, _run):
        first = await pending(runtime)
        await runtime.discuss(first.proposal_id, shown_digest=first.shown_digest)

        def waits():
            session = runtime.store.read_now(lambda c: sessions.load(c, sid))
            return True if session.status == "waiting" else None

        await wait_until(runtime, waits)
        await runtime.say(sid, "only the module please")
        second = await pending(runtime)
        assert second.revises == first.proposal_id
        assert second.body["changes"] == ["− file:test_calc.py"]
        with pytest.raises(AlreadyDecided):
            await runtime.approve(first.proposal_id)
        with pytest.raises(Stale):
            await runtime.approve(second.proposal_id, shown_digest="0" * 64)


async def test_a_rejected_action_changes_nothing_and_stops_the_rest_of_the_plan(
    runtime, fix, project
):
    async with running(runtime, fix, policy="reads") as (sid, _run):
        edit = await pending(runtime)
        await runtime.reject(edit.proposal_id, shown_digest=edit.shown_digest, reason="not today")
        again = await pending(runtime)
        assert again.proposal_id != edit.proposal_id
        assert (project / "calc.py").read_text() == CALC
        actions = await runtime.store.read(lambda c: outbox.select_for_session(c, sid))
        assert [a.phase for a in actions[:3]] == ["failed_terminal"] * 3


async def test_an_edit_by_the_person_is_shown_again_before_it_runs(runtime, fix, project):
    async with running(runtime, fix, policy="reads") as (_sid, _run):
        first = await pending(runtime)
        text, suffix = await runtime.editable(first.proposal_id)
        assert (text, suffix) == ("a + b", ".py")
        revision = await runtime.edit(
            first.proposal_id, shown_digest=first.shown_digest, text="b + a"
        )
        second = await pending(runtime)
        assert second.proposal_id == revision
        assert "b + a" in second.body["diffs"][0]["after"]
        assert (project / "calc.py").read_text() == CALC
        await runtime.approve(revision, shown_digest=second.shown_digest)
        command = await pending(runtime)
        assert command.body["type"] == "run"
        assert (project / "calc.py").read_text() == CALC.replace("a - b", "b + a")


async def test_without_the_screen_a_deadline_ends_the_wait_and_the_session_goes_on_later(
    opened, fix
):
    async with opened(Limits(deadline_s=0.2)) as runtime:
        sid = await runtime.start("fix add", model=fix, policy="ask")
        run = asyncio.create_task(runtime.run(sid, interactive=True))
        assert (await pending(runtime)).expires_at is None
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        rested = await runtime.run(sid, interactive=False)
        assert (rested.status, rested.result["status"]) == ("waiting", "expired")
        assert not rested.interactive
        *_, asked = await runtime.store.read(lambda c: proposals.select_for_session(c, sid))
        assert (asked.status, asked.decided_by) == ("expired", "deadline")
        await runtime.change(sid, policy="all")
        ended = await runtime.run(sid)
        assert ended.status == "completed"


async def test_a_wave_limit_ends_the_session_and_a_higher_one_goes_on(runtime, fix):
    sid = await runtime.start(
        "fix add", model=fix, policy="all", interactive=False, limits=Limits(max_waves=1)
    )
    assert (await runtime.run(sid)).result["status"] == "limit"
    await runtime.change(sid, limits=Limits(max_waves=9))
    assert (await runtime.run(sid)).result["status"] == "done"


async def test_a_message_before_the_first_wave_belongs_to_it(runtime, script):
    sid = await runtime.start("look around", model=script('[[turn]]\ntext = "I see."\n'))
    await runtime.say(sid, "and mind the step")
    await runtime.run(sid)
    (wave,) = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
    prompt, _ = await runtime.rendered_prompt(wave.wave_id)
    text = "\n".join(message.text for message in prompt.messages)
    assert text.index("look around") < text.index("and mind the step")


async def test_an_early_interrupt_stops_the_session(runtime, script):
    for turns in (1, 3, 6):
        sid = await runtime.start("fix it", model=script(finish()), interactive=False)
        run = asyncio.create_task(runtime.run(sid))
        for _ in range(turns):
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        session = await runtime.store.read(lambda c, s=sid: sessions.load(c, s))
        assert session.status in ("stopped", "completed")
        assert session.lease_owner is None


def exchanges(connection, session_id):
    """Return the results of the commands, as the model reads them."""
    query = "SELECT fact_id FROM session_facts WHERE session_id=? AND source_type='exchange'"
    ids = [name for (name,) in connection.execute(f"{query} ORDER BY ordinal", (session_id,))]
    texts = facts.load_texts(connection, ids)
    return [texts[name].full for name in ids]


async def test_a_command_that_reads_waits_on_the_panel_of_context(opened, script, project):
    (project / "calc.py").write_text("KEY = 'ghp_" + "a1B2" * 9 + "'\n\n\ndef add(a, b): ...\n")
    async with opened(frame=False) as runtime:
        looks = turn("run", command="cat calc.py", reason="see what add does")
        model = script(looks + finish('called = ["run"]'))
        ended = await run_to_end(runtime, model, policy="reads")
        session_id = ended.session_id
        assert ended.result["status"] == "done"

        def stored(connection):
            (proposal,) = proposals.select_for_session(connection, session_id)
            (request,) = context_requests.select_by_status(connection, session_id, "fetched")
            ((fact_id,),) = connection.execute(
                "SELECT fact_id FROM session_facts WHERE session_id=? AND source_type='file'",
                (session_id,),
            ).fetchall()
            text = facts.load_texts(connection, [fact_id])[fact_id].full
            actions = outbox.select_for_session(connection, session_id)
            return proposal, request, text, actions, *exchanges(connection, session_id)

        proposal, request, text, actions, result = await runtime.store.read(stored)
        assert (proposal.kind, proposal.decided_by) == ("context", "policy:reads")
        assert (request.purpose, request.approved) == ("see what add does", ("file:calc.py",))
        assert actions == []  # nothing ran
        assert "def add" in text
        assert "ghp_" not in text + result
        assert "so instead you asked for file:calc.py" in result


async def test_a_command_that_cannot_be_a_request_says_why(runtime, script):
    looks = turn("run", "wave = 1", command="head /etc/hosts", reason="look") + turn(
        "run", "wave = 2", command="git show HEAD:calc.py", reason="look"
    )
    ended = await run_to_end(runtime, script(looks + finish("wave = 3")))
    assert ended.status == "completed"
    first, second = await runtime.store.read(lambda c: exchanges(c, ended.session_id))
    assert "it is absolute; name it from the project's root" in first
    assert "Ask for file:calc.py, or for diff:HEAD in calc.py" in second
