"""Limits of providers are weather: the chain waits, or goes on with another agent, and blocks nothing."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

import pytest
from chains.batch_loop.coordinator_world import ALL_PASS, ChainWorld
from msgspec.structs import replace

from cockpit.agents.streams.provider_limit import read_limit
from cockpit.chains.decide_next_worker import decide_chain
from cockpit.chains.progress_lines import ProgressLines
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings
from cockpit.store.chains import chains

NOW = datetime(2026, 9, 5, 10, 0, tzinfo=UTC)
MESSAGES = {
    "You've hit your session limit · resets 8pm (America/New_York)": "2026-09-06T00:00",
    "You're out of extra usage · resets 11:30am (Europe/Berlin)": "2026-09-06T09:30",
    '{"status":"rejected","resetsAt":1788625200,"rateLimitType":"five_hour"}': "2026-09-05T16:20",
    "Claude AI usage limit reached|1788625200": "2026-09-05T16:20",
    "You've hit your usage limit. Try again in 3 days 4 hours 20 minutes.": "2026-09-08T14:20",
    "You've reached your weekly limit · resets Mon 9am (UTC)": "2026-09-07T09:00",
    "You've hit your limit · resets Sep 8, 9am (UTC)": "2026-09-08T09:00",
    "You've hit your limit · resets 8pm (Nowhere/Land)": "",
    "API Error: 529 {'type': 'overloaded_error'}": "",
    "HTTP 429 Too Many Requests": "",
    "API Error: 401 · Please run /login": "",
}
AGENT = """
import os, sys
prompt = open(sys.argv[1], encoding="utf-8").read()
if not os.path.exists(sys.argv[2]):
    open(sys.argv[2], "w").close()
    sys.exit("You've hit your session limit; resets in 30s")
print("VERDICT: PASS" if "reviewer of" in prompt else "STATUS: nothing to do\\nIt is there.")
"""


@pytest.mark.parametrize("message", MESSAGES)
def test_what_real_programs_say_is_read(message: str) -> None:
    limit = read_limit(f"Runner claude failed. It reported: {message}", NOW)
    assert limit is not None
    resets_at = "" if limit.resets_at is None else limit.resets_at.isoformat()[:16]
    assert resets_at == MESSAGES[message]


def test_other_words_are_no_limit() -> None:
    for words in ("The limit of add is tested in line 429.", "It resets 8pm daily", "Exit code 1"):
        assert read_limit(words, NOW) is None


def agents(world: ChainWorld, *names: str) -> RuntimeSettings:
    """Agents that meet a limit at their first start."""
    given = {}
    for name in names:
        flag = str(world.world.folder / f"{name} was limited")
        command = (sys.executable, "-S", "-c", AGENT, "{prompt_file}", flag)
        given[name] = RunnerSettings(name, command, "text", sandbox=False)
    return RuntimeSettings(
        user_dir=world.world.folder / "config", environment=dict(os.environ), runners=given
    )


async def test_a_chain_waits_for_the_end_of_a_limit_and_continues(hurried: ChainWorld) -> None:
    made, chain = hurried.tasks(1), hurried.chain()
    reasons: list[str] = []
    hurried.on_line(
        "Paused: limit until",
        lambda: reasons.append(hurried.store.read_now(lambda c: chains.load(c, "ch-1")).reason),
    )
    context = hurried.task_context(
        chain, 1, ALL_PASS, settings=agents(hurried, "small"), runner="small"
    )
    ended = await hurried.session(chain, task_context=context)
    assert (ended.reason, ended.tasks_blocked) == ("empty", 0), hurried.said
    assert hurried.statuses() == dict.fromkeys(made, "done")
    assert any(line.startswith("Paused: limit until") for line in hurried.said)
    assert hurried.store.read_now(lambda c: chains.load(c, "ch-1")).reason == ""
    (row,) = hurried.rows("chain.delayed")
    assert row.raw_detail()["reason"].startswith("limit until: 20")
    line = ProgressLines("ch-1").line_for(row)
    assert line is not None and "paused: limit until" in line.line


async def test_another_agent_continues_where_one_is_named(hurried: ChainWorld) -> None:
    made, chain = hurried.tasks(1), hurried.chain()
    context = hurried.task_context(
        chain, 1, ALL_PASS, settings=agents(hurried, "small", "other"), runner="small"
    )
    (hurried.world.folder / "other was limited").write_text("", encoding="utf-8")
    context = replace(context, work=replace(context.work, fallback_runners=("other",)))
    ended = await hurried.session(chain, task_context=context)
    assert (ended.reason, hurried.statuses()) == ("empty", dict.fromkeys(made, "done"))
    assert any(line.endswith("other continues.") for line in hurried.said), hurried.said


async def test_without_resuming_it_ends_limited_with_its_tasks_kept(hurried: ChainWorld) -> None:
    (task_id,) = hurried.tasks(1)
    chain = replace(hurried.chain(), resume_until="")
    context = hurried.task_context(
        chain, 1, ALL_PASS, settings=agents(hurried, "small"), runner="small"
    )
    ended = await hurried.session(chain, task_context=context)
    assert ended.reason.startswith("limit until: 20")
    assert hurried.statuses() == {task_id: "in_progress"}
    found = hurried.store.read_now(lambda seen: decide_chain(seen, chain, "9999"))
    assert found.status == "limited"
