"""Agents as programs: what they say is journalled live, and only their own finish is one."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agents.runner_world import (
    Runs,
    assistant,
    init,
    result,
    says,
    text,
    tool,
    tool_result,
)

from cockpit.access import capability_tokens
from cockpit.agents.runs.agent_command_line import RunnerError, RunnerMissing
from cockpit.core.errors import Stale
from cockpit.core.processes import is_process_alive
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.backlog import tasks
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

CLAUDE = (
    init("agent-7"),
    assistant(text("I look first."), identity="m1", input_tokens=5, output_tokens=1),
    assistant(tool("t1", "Edit", file_path="calc.py"), identity="m1", input_tokens=5),
    {"replace": "calc.py", "old": "a - b", "new": "a + b"},
    tool_result("t1", "updated"),
    assistant(tool("t2", "Bash", command="python -m unittest"), identity="m2", input_tokens=7),
    tool_result(
        "t2",
        [text("Exit code 1\nRan 3 tests in 0.1s\n\nFAILED (failures=1)"), {"type": "image"}],
        is_error=True,
    ),
    assistant(
        {"type": "thinking", "thinking": "hm"}, text("STATUS: done\nadd adds."), identity="m3"
    ),
    result(
        "STATUS: done\nadd adds.",
        modelUsage={
            "a": {"inputTokens": 10, "outputTokens": 1, "cacheReadInputTokens": 80},
            "b": {"inputTokens": 20, "outputTokens": 19},
        },
    ),
)


async def test_claude_codes_stream_is_journalled_like_a_session_of_ours(runs: Runs) -> None:
    outcome = await runs.run(runs.runner(*CLAUDE))

    assert (outcome.status, outcome.exit_code, outcome.reason) == ("finished", 0, "")
    assert (outcome.text, outcome.cost_usd) == ("STATUS: done\nadd adds.", 0.25)
    assert outcome.tokens == 130, "those of all its models"
    session = runs.last()
    assert (session.status, dict(session.result)) == (
        "completed",
        {"status": "done", "summary": "add adds."},
    )
    assert (session.input_tokens, session.output_tokens, session.cached_tokens) == (110, 20, 80)
    assert session.cost_usd == 0.25
    assert runs.said() == ["I look first.", "STATUS: done\nadd adds."]
    told = [(row.action, row.raw_detail().get("title")) for row in runs.rows("runner.")]
    assert told == [
        ("runner.started", None),
        ("runner.tool_started", "Edit calc.py"),
        ("runner.tool_ended", "Edit calc.py"),
        ("runner.tool_started", "Bash python -m unittest"),
        ("runner.tool_ended", "Bash python -m unittest"),
        ("runner.ended", None),
    ]
    (_, failed) = runs.rows("runner.tool_ended")
    assert (failed.result, failed.raw_detail()["exit_code"]) == ("error", 1)
    (ended,) = runs.rows("runner.ended")
    assert ended.raw_detail()["agent_session"] == "agent-7"
    assert {row.session_id for row in runs.rows("runner.")} == {session.session_id}
    kept = runs.store.read_now(lambda seen: tasks.load(seen, runs.task_id).wip) or {}
    assert kept["files_modified"] == ["calc.py"]
    assert kept["test_results"]["failed"] == 1
    assert runs.store.read_now(verify_chain.verify).ok


async def test_plain_text_is_one_message_and_ending_well_is_its_finish(runs: Runs) -> None:
    outcome = await runs.run(runs.runner({"raw": "I did it.\nSTATUS: done\n"}))
    assert (outcome.status, outcome.text) == ("finished", "I did it.\nSTATUS: done")
    assert runs.said() == ["I did it.\nSTATUS: done"]
    assert runs.last().result["summary"] == "I did it."


async def test_the_prompt_comes_on_standard_input_or_where_the_command_asks(runs: Runs) -> None:
    told, copied = runs.folder / "told.json", runs.folder / "copied.md"
    await runs.run(runs.runner({"tell": str(told)}), prompt="Mend it.")
    assert json.loads(told.read_text())["prompt"] == "Mend it."

    words = ("{prompt}", "--at={worktree}/{task}", "{session}", "{other}")
    hard = "Say {task} $(id) `id` 'q'\n--flag"
    await runs.run(runs.runner({"tell": str(told)}, words=words), prompt=hard)
    seen = json.loads(told.read_text())
    assert seen["prompt"] == ""
    assert seen["words"] == [
        hard,
        f"--at={runs.place.root}/{runs.task_id}",
        runs.last().session_id,
        "{other}",
    ]
    assert seen["cwd"] == str(runs.place.root)

    held = runs.place.state / "runs"
    session = runs.session()
    steps = {"copy": str(held / session / "prompt.md"), "to": str(copied)}
    await runs.run(runs.runner(steps, words=("{prompt_file}",)), session, prompt="By file.")
    assert copied.read_text() == "By file."
    assert list(held.iterdir()) == []


async def test_a_prompt_too_long_for_an_argument_is_refused_in_words(runs: Runs) -> None:
    with pytest.raises(RunnerError, match="standard input"):
        await runs.run(runs.runner(words=("{prompt}",)), prompt="x" * 200_000)
    assert runs.last().status == "failed"
    outcome = await runs.run(runs.runner({"raw": "ok\n"}), prompt="x" * 2_000_000)
    assert outcome.status == "finished"


async def test_secrets_stay_behind_unless_the_person_names_them(runs: Runs) -> None:
    told = runs.folder / "told.json"
    environment = {
        **os.environ, "MY_API_KEY": "k1", "OTHER_TOKEN": "k2", "CLAUDECODE": "1",
        "COCKPIT_TOKEN": "ckp_mine", "COCKPIT_CONFIG_DIR": "/somewhere", "PLAIN": "no", "NO_COLOR": "yes",
    }  # fmt: skip
    runner = runs.runner({"tell": str(told)}, env=("MY_API_KEY", "NOT_SET"))
    await runs.run(runner, environment=environment, policy="reads")
    seen = json.loads(told.read_text())["env"]
    assert (seen["MY_API_KEY"], seen["NO_COLOR"]) == ("k1", "yes")
    assert not {"OTHER_TOKEN", "PLAIN", "CLAUDECODE", "NOT_SET"} & set(seen)
    assert (seen["COCKPIT_TASK"], seen["COCKPIT_APPROVE"]) == (runs.task_id, "reads")
    assert seen["COCKPIT_CONFIG_DIR"] == "/somewhere"
    assert seen["COCKPIT_TOKEN"].startswith("ckp_")
    assert seen["COCKPIT_TOKEN"] != "ckp_mine"


async def test_server_and_hooks_are_handed_over_with_a_token_that_ends_with_the_run(
    runs: Runs,
) -> None:
    session = runs.session()
    held = runs.place.state / "runs" / session
    steps = [
        {"copy": str(held / name), "to": str(runs.folder / name)}
        for name in ("mcp.json", "hooks.json")
    ]
    runner = runs.runner(*steps, words=("{mcp_config}", "{hooks}"))
    await runs.run(runner, session)

    server = json.loads((runs.folder / "mcp.json").read_text())["mcpServers"]["ohno"]
    assert server["args"][-1] == "mcp"
    secret = server["env"]["COCKPIT_TOKEN"]
    # Agents need not pass their own variables on, and without this one it would open another store.
    assert server["env"]["COCKPIT_STATE_DIR"] == os.environ["COCKPIT_STATE_DIR"]
    hooks = json.loads((runs.folder / "hooks.json").read_text())["hooks"]
    assert hooks["PreToolUse"][0]["hooks"][0]["command"].endswith(
        "hook --agent claude --policy ask"
    )
    (token,) = [
        one
        for one in runs.store.read_now(capability_tokens.listed)
        if one.namespace.startswith("agent/")
    ]
    assert token.namespace == f"agent/{runs.task_id}/{session}".lower()
    assert "orientation.approve" not in token.scopes
    now = "9999-01-01T00:00:00.000000Z"

    def opens(connection: sqlite3.Connection) -> object:
        return capability_tokens.holder(connection, secret, now)

    with pytest.raises(capability_tokens.TokenRefused, match="revoked"):
        runs.store.read_now(opens)
    assert not held.exists()
    assert secret not in "".join(row.line() for row in runs.rows())


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((init(), assistant(text("I begin.")), {"exit": 0}), "without a finish"),
        ((init(), {"complain": "panic: nil"}, {"exit": 3}), "exit code 3"),
        (
            (init(), result("API Error: 401", is_error=True), {"exit": 1}),
            "It reported: API Error: 401",
        ),
        ((init(), result("", subtype="error_max_turns")), "error max turns"),
        ((init(), {"run": ["sh", "-c", "kill -9 $PPID"]}), "signal 9"),
    ],
)
async def test_a_run_without_a_finish_has_crashed(
    runs: Runs, steps: tuple[dict[str, object], ...], said: str
) -> None:
    runner = runs.runner(*steps, format="claude")
    outcome = await runs.run(runner)
    assert outcome.status == "crashed"
    assert said in outcome.reason
    session = runs.last()
    assert (session.status, session.result["summary"]) == ("failed", outcome.reason)
    assert runs.rows("session.failed")[-1].error_code == "runner_crashed"
    (ended,) = runs.rows("runner.ended")
    assert (ended.result, ended.raw_detail()["status"]) == ("error", "crashed")


async def test_malformed_lines_are_noted_and_passed_over(runs: Runs) -> None:
    steps = (
        init(),
        {"raw": '{"type": "assistant", "message": \n'},
        {"raw": "[1, 2]\nnot json at all\n\n\x00\xff\xfe\n"},
        {"raw": '{"type": "assistant", "message": "no object"}\n'},
        {"raw": '{"type": "user", "message": {"content": {"a": 1}}}\n'},
        {"raw": '{"type": 5}\n' + '{"a":' * 50_000 + "\n"},
        {"times": "junk\n", "count": 500},
        result("all the same"),
    )
    outcome = await runs.run(runs.runner(*steps, format="claude"))
    assert (outcome.status, outcome.text) == ("finished", "all the same")
    (ended,) = runs.rows("runner.ended")
    assert ended.raw_detail()["odd_lines"] == 505
    assert len(runs.rows("runner.noted")) == 20, "a flood does not fill the journal"


async def test_a_line_of_megabytes_is_read(runs: Runs) -> None:
    long = "x" * 2_000_000
    steps = (
        init(),
        assistant(tool("t1", "Bash", command="cat big")),
        tool_result("t1", long),
        assistant(text(long)),
        result("done"),
    )
    outcome = await runs.run(runs.runner(*steps))
    assert outcome.status == "finished"
    (said, _) = runs.said()
    start, left_out, end = said.split("\n")
    assert (len(start), len(end)) == (50_000, 150_000)
    assert left_out == "[… 1,800,000 characters are left out …]"
    assert max(len(row.line()) for row in runs.rows()) < 300_000


async def test_too_much_output_ends_it(runs: Runs) -> None:
    steps = (init(), {"times": "y" * 1023 + "\n", "count": 4_096})
    outcome = await runs.run(runs.runner(*steps, max_output_mb=1))
    assert (outcome.status, "1 MiB" in outcome.reason) == ("crashed", True)


async def test_escapes_and_secrets_of_a_stream_are_kept_as_text_and_masked(runs: Runs) -> None:
    key = "sk-ant-" + "a1B2" * 8
    steps = (
        init(),
        assistant(text(f"\x1b]0;owned\x07 {key} \ud83d")),
        assistant(tool("t1", "Bash", command=f"curl -H {key}")),
        tool_result("t1", f"token {key}"),
        result(f"STATUS: done\n{key}"),
    )
    await runs.run(runs.runner(*steps))
    assert key not in "".join(row.line() for row in runs.rows())
    assert "[masked:anthropic-key]" in runs.said()[0]
    assert key not in str(runs.last().result)


async def test_a_streamed_message_is_told_in_fragments_and_folded(runs: Runs) -> None:
    def piece(words: str) -> dict[str, object]:
        event = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": words}}
        return says({"type": "stream_event", "event": event})

    pieces = [piece(f"word {number} ") for number in range(50)]
    whole = "".join(f"word {number} " for number in range(50))
    await runs.run(runs.runner(init(), *pieces, assistant(text(whole)), result(whole)))
    assert runs.said() == [whole]
    assert runs.rows("message.delta") == []
    assert runs.store.read_now(verify_chain.verify).ok


def alive(pid: int) -> bool:
    return is_process_alive(f"{pid}/")


async def dead(pid: int) -> None:
    """Wait for the end of a process that was killed: the kernel may take a moment under load."""
    async with asyncio.timeout(60):
        while alive(pid):
            await asyncio.sleep(0.01)


async def until(path: Path) -> None:
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.01)


async def test_one_that_hangs_is_stopped_with_everything_it_started(runs: Runs) -> None:
    child, marker, stop = runs.folder / "child", runs.folder / "hangs", asyncio.Event()
    runner = runs.runner(init(), {"child": str(child)}, {"hang": str(marker)})
    running = asyncio.create_task(runs.run(runner, stop=stop))
    await until(marker)
    assert alive(int(child.read_text()))
    stop.set()
    outcome = await running
    assert (outcome.status, runs.last().status) == ("stopped", "stopped")
    await dead(int(child.read_text()))


async def test_one_that_hangs_is_ended_when_its_time_is_over(runs: Runs) -> None:
    runner = runs.runner(init(), {"hang": str(runs.folder / "h")}, timeout_s=1.0)
    outcome = await runs.run(runner)
    assert (outcome.status, "within 1 s" in outcome.reason) == ("crashed", True)


async def test_a_cancelled_run_ends_the_agent_and_stops_the_session(runs: Runs) -> None:
    child, marker = runs.folder / "child", runs.folder / "hangs"
    runner = runs.runner(init(), {"child": str(child)}, {"hang": str(marker)})
    running = asyncio.create_task(runs.run(runner))
    await until(marker)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await dead(int(child.read_text()))
    session = runs.last()
    assert (session.status, session.lease_owner) == ("stopped", None)
    assert list((runs.place.state / "runs").iterdir()) == []


async def test_it_is_ended_when_it_has_spent_its_tokens(runs: Runs) -> None:
    steps = (
        init(),
        assistant(text("a"), identity="m1", cache_read_input_tokens=90_000, output_tokens=900),
        assistant(text("b"), identity="m2", input_tokens=90, output_tokens=20),
        {"hang": str(runs.folder / "h")},
    )
    outcome = await runs.run(runs.runner(*steps), max_tokens=1_000)
    assert outcome.status == "limit"
    session = runs.last()
    assert (session.status, session.result["status"]) == ("completed", "limit")


PRICED = "claude-sonnet-4-20250514"
"""A model of the price list: a million tokens of its input cost $3."""


async def test_it_is_ended_when_it_has_spent_its_dollars(runs: Runs) -> None:
    """By the list price while it runs; what it spent is the session's, also for its next run."""
    steps = (
        init(model=PRICED),
        assistant(text("a"), identity="m1", input_tokens=400_000),
        assistant(text("b"), identity="m2", input_tokens=400_000),
        {"hang": str(runs.folder / "h")},
    )
    session_id = runs.session(max_cost=2.0)
    outcome = await runs.run(runs.runner(*steps), session_id)
    assert (outcome.status, outcome.cost_usd) == ("limit", pytest.approx(2.4))
    assert outcome.reason == "The limit of $2.00 is reached ($2.40 spent)."
    session = runs.last()
    assert (session.status, session.result["status"]) == ("completed", "limit")
    assert session.cost_usd == pytest.approx(2.4)
    again = await runs.run(runs.runner({"write": str(runs.folder / "ran"), "text": ""}), session_id)
    assert (again.status, again.reason) == ("limit", outcome.reason)
    assert not (runs.folder / "ran").exists()


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (
            (init(), assistant(text("a"), input_tokens=90), {"hang": "h"}),
            "no price is known for m-1, on which runner small spent 90 tokens",
        ),
        (({"raw": "words\n" * 30}, {"hang": "h"}), "reports no cost"),
    ],
    ids=["unknown model", "text"],
)
async def test_a_limit_of_dollars_without_a_price_ends_the_run(
    runs: Runs, steps: tuple[Any, ...], words: str
) -> None:
    outcome = await runs.run(runs.runner(*steps), runs.session(max_cost=2.0))
    assert outcome.status == "limit"
    assert words in outcome.reason
    assert "Leave out [limits] max_cost" in outcome.reason
    assert (await runs.run(runs.runner({"raw": "Fine.\n"}))).status == "finished"


async def test_a_session_is_seen_to_by_one_process_at_a_time(runs: Runs) -> None:
    session = runs.session()
    token = runs.store.write_now(lambda tx: sessions.acquire(tx, session))
    with pytest.raises(Stale):
        await runs.run(runs.runner({"raw": "x\n"}), session)
    runs.store.write_now(lambda tx: sessions.release(tx, session, token))
    assert (await runs.run(runs.runner({"raw": "x\n"}), session)).status == "finished"


DRIVER = """
import asyncio, os, sys
from pathlib import Path
from typing import Any
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.db.database import Store
from cockpit.core.project_paths import locate_project
from cockpit.agents.runs.run_agent import run_agent

root, session, *command = sys.argv[1:]
place = locate_project(Path(root))
with Store.open(place.database) as store:
    asyncio.run(run_agent(store, place, RunnerSettings("small", tuple(command)),
        session_id=session, prompt="", worktree=place.root, environment=os.environ))
"""


async def test_after_a_kill_of_cockpit_the_session_goes_on_and_two_agents_never_do(
    runs: Runs,
) -> None:
    marker, pid, session = runs.folder / "hangs", runs.folder / "pid", runs.session()
    first = runs.runner(init(), {"run": ["sh", "-c", f"echo $PPID > {pid}"]}, {"hang": str(marker)})
    argv = [sys.executable, "-c", DRIVER, str(runs.place.root), session, *first.command]
    driver = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    await until(marker)
    driver.kill()
    driver.wait(timeout=60)
    assert alive(int(pid.read_text()))
    outcome = await runs.run(runs.runner({"raw": "mine now\n"}), session)
    assert outcome.status == "finished"
    await dead(int(pid.read_text()))
    assert [row.raw_detail()["number"] for row in runs.rows("runner.started")] == [1, 2]
    assert runs.store.read_now(verify_chain.verify).ok


async def test_a_program_that_is_not_there_is_told_in_words(runs: Runs) -> None:
    with pytest.raises(RunnerMissing, match=r"no-such-agent.*not on the PATH outside projects"):
        await runs.run(RunnerSettings("small", ("no-such-agent",)))
    assert runs.last().status == "failed"
