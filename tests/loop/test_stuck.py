"""An agent that makes the same call again and again is told so, and then stopped."""

from __future__ import annotations

import asyncio

import pytest
from loop_runs import run_to_end, running
from scenario import ask, call, finish, turn

from cockpit.backlog.service import create_task
from cockpit.loop.repeated_calls import Made, find_repeat
from cockpit.loop.runtime_settings import Limits
from cockpit.store.sessions import messages, sessions, waves

READ = ask("file:calc.py", when='not_called = ["finish"]')


def made(letters: str) -> list[Made]:
    """One call a letter, always with the same end; capitals are refused."""
    return [Made(letter.lower(), "x", is_done=letter.islower()) for letter in letters]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("", None),
        ("aa", None),
        ("aaa", "notice"),
        ("aaaa", "notice"),
        ("aaaaa", "end"),
        ("aabaa", None),  # b was new in between
        ("aaBaa", "notice"),  # a refusal brings nothing new
        ("RRRRR", "end"),
        ("RSRS", "notice"),
        ("RSRSRS", "end"),
        ("ababab", "end"),
        ("abcabcabc", "end"),
        ("abcabcabd", None),
        ("abcdabcd", None),
    ],
)
def test_calls_that_repeat(letters: str, expected: str | None) -> None:
    repeat = find_repeat(made(letters))
    assert (None if repeat is None else "end" if repeat.ends else "notice") == expected


def test_another_end_of_the_same_call_begins_the_count_anew() -> None:
    assert find_repeat([*made("aa"), Made("a", "y"), *made("aa")]) is None


async def _noticed(runtime, sid):
    """The number of waves, and those of them that brought the notice."""
    query = "SELECT DISTINCT ordinal FROM session_facts WHERE session_id=? AND source_ref LIKE ?"
    rows = await runtime.store.read(
        lambda c: c.execute(f"{query} ORDER BY 1", (sid, "notice:repeat-%")).fetchall()
    )
    found = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
    return len(found), [ordinal for (ordinal,) in rows]


@pytest.mark.parametrize(
    "loop", [READ, turn("run", argv=["true"], reason="look", changes=True)], ids=["read", "command"]
)
async def test_a_headless_session_ends_as_stuck(runtime, script, loop):
    ended = await run_to_end(runtime, script(loop))
    assert (ended.status, ended.result["status"]) == ("completed", "stuck"), ended.result
    assert "again and again" in ended.result["summary"]
    count, noticed = await _noticed(runtime, ended.session_id)
    assert (count, noticed) in ((5, [4]), (6, [5])), "the first read may be granted"
    resumed = await asyncio.wait_for(runtime.run(ended.session_id), 60)
    assert resumed.result["status"] == "stuck"
    again, _ = await _noticed(runtime, ended.session_id)
    assert again == count + 5, "the count begins at zero"


async def test_equal_calls_of_one_answer_count_and_the_resumed_session_is_told(runtime, script):
    loop = turn("run", command="cat", bogus=1) + call("run", command="cat", bogus=1) * 4
    ended = await run_to_end(runtime, script(loop))
    assert await _noticed(runtime, ended.session_id) == (1, [])
    resumed = await asyncio.wait_for(runtime.run(ended.session_id), 60)
    assert resumed.result["status"] == "stuck"
    assert await _noticed(runtime, ended.session_id) == (2, [2])


REWORDED = "".join(
    ask("file:calc.py", when=f"wave = {n}", question=f"what, {n}?")
    + call("update_wip", context=f"{n}")
    for n in range(1, 13)
)
"""Other words for the same call, with a record of the agent's own between."""


async def test_neither_other_words_nor_records_hide_a_repeat(opened, script):
    async with opened(Limits(max_waves=9)) as runtime:
        task = await runtime.store.write(lambda tx: create_task(tx, "Fix add", by="person"))
        model = script(REWORDED)
        sid = await runtime.start("fix add", model=model, policy="all", interactive=False)
        await runtime.store.write(lambda tx: sessions.attach_task(tx, sid, task.task_id))
        ended = await asyncio.wait_for(runtime.run(sid), 60)
        assert ended.result["status"] == "stuck"
        assert 'request_context {"scope":["file:calc.py"]}' in ended.result["summary"]


async def test_refused_and_malformed_calls_count_over_the_sessions_of_a_task(opened, script):
    model = script(turn("run", command="cat", bogus=1))
    async with opened(Limits(max_waves=4)) as runtime:
        task = await runtime.store.write(lambda tx: create_task(tx, "Fix add", by="person"))
        for count, status in ((4, "limit"), (2, "stuck"), (4, "limit")):
            sid = await runtime.start("fix add", model=model, policy="all", interactive=False)
            await runtime.store.write(lambda tx, s=sid: sessions.attach_task(tx, s, task.task_id))
            ended = await asyncio.wait_for(runtime.run(sid), 60)
            assert ended.result["status"] == status
            assert (await _noticed(runtime, sid))[0] == count


async def test_at_the_screen_it_waits_and_the_users_words_go_on(runtime, script):
    model = script(
        READ.replace("not_called", 'not_contains = ["use calc"], not_called')
        + finish('contains = ["use calc"]', summary="ok")
    )
    async with running(runtime, model, policy="reads") as (sid, run):
        session = await run
        assert session.status == "waiting"
        sent = await runtime.store.read(lambda c: messages.select_for_session(c, sid))
        assert "again and again" in sent[-1].text
        await runtime.say(sid, "use calc as it is")
        assert (await asyncio.wait_for(runtime.run(sid), 60)).result["status"] == "done"
