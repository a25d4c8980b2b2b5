"""``from cockpit import OmniLoop``: run, follow, approve, continue, and what a program may not do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

import cockpit
from cockpit import Answer, ApprovalRequest, LoopEvent, OmniLoop, OmniLoopConfig, run_sync
from cockpit.access.token_scopes import NotAllowed
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import locate_project
from cockpit.decide.model import ModelError
from cockpit.library.omni_loop import LoopBusy
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings

pytestmark = pytest.mark.slow

TASK = "Fix the bug in calc.py"


async def test_a_task_runs_to_its_end_and_its_events_come_in_order_once(project, model):
    loop = OmniLoop(OmniLoopConfig(project=project), model=model, policy="all")
    events: list[LoopEvent] = [event async for event in loop.stream(TASK, max_steps=8)]
    result = loop.result
    assert result is not None
    assert (result.ok, result.status, str(result)) == (True, "done", "add adds now.")
    numbers, kinds = [event.seq for event in events], [event.kind for event in events]
    assert numbers == sorted(set(numbers))
    assert (kinds[0], kinds[-1]) == ("session.created", "session.completed")
    assert kinds.count("wave.started") == 3
    assert "add adds now." in "".join(event.text for event in events)
    assert (result.waves, result.modified_files) == (3, ("calc.py",))
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    stats = loop.state.get_stats()
    assert (stats["visited_files"], stats["modified_files"]) == (2, 1)
    assert loop.state.is_redundant_read("notes.md")
    assert loop.state.is_redundant_read("calc.py")  # the wave after the edit has read it again
    assert await OmniLoop(project=project).read_state() != loop.state


def test_run_sync_runs_without_an_event_loop(project: Path, model: str) -> None:
    result = run_sync(TASK, project=project, model=model, policy="all", max_steps=8)
    assert result.status == "done"


@pytest.mark.filterwarnings("error")
async def test_run_sync_within_an_event_loop_says_what_to_write(project: Path, model: str) -> None:
    with pytest.raises(RuntimeError, match="Write `await OmniLoop"):
        run_sync(TASK, project=project, model=model)


async def test_what_is_no_task_project_or_session_starts_nothing(project, model, tmp_path):
    with pytest.raises(TypeError, match="A task is text, not NoneType"):
        await OmniLoop(project=project, model=model).run(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="approve is a function"):
        OmniLoop(project=project, model=model, approve="all")  # type: ignore[arg-type]
    with pytest.raises(CockpitError, match="no session yet"):
        await OmniLoop(project=project, model=model).run("go on", session="last")
    for missing in (tmp_path / "nowhere", project / "calc.py"):
        with pytest.raises(CockpitError, match="There is no folder"):
            await OmniLoop(project=missing, model=model).run(TASK)
        assert not (tmp_path / "nowhere").exists()


async def test_no_work_is_left_where_a_run_ends(project: Path, model: str) -> None:
    """Nor where a stream is left, whose session goes on when it is continued."""
    before = asyncio.all_tasks()
    loop = OmniLoop(project=project, model=model, policy="all")
    async with aclosing(loop.stream(TASK)) as events:
        async for event in events:
            if event.kind == "wave.started":
                break
        with pytest.raises(LoopBusy, match="Make another OmniLoop"):
            await loop.run(TASK)
    assert loop.result is not None
    assert loop.result.status == "stopped"
    assert asyncio.all_tasks() == before
    async with loop:
        first = await loop.run("", session="last")
        again = await loop.run("And now?", session="last")
    assert first.ok and again.session_id == first.session_id == loop.result.session_id
    assert again.waves > first.waves
    assert asyncio.all_tasks() == before


async def test_no_steps_are_no_number_of_steps(project: Path, model: str) -> None:
    for steps in (0, -1):
        with pytest.raises(CockpitError, match="a whole number from 1 to"):
            await OmniLoop(project=project, model=model).run(TASK, max_steps=steps)
    with pytest.raises(CockpitError, match="a whole number from 1 to"):
        await OmniLoop(project=project, model=model, max_steps=0).run(TASK)


async def test_a_callback_approves_narrows_and_is_recorded_as_the_program(project, model):
    requests: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Answer | bool:
        requests.append(request)
        if request.kind == "context":
            return Answer("approve", items=("file:calc.py",))
        return True

    loop = OmniLoop(project=project, model=model, approve=approve)
    events = [event async for event in loop.stream(TASK)]
    assert [request.kind for request in requests] == ["context", "action"]
    assert requests[0].items == ("file:calc.py", "file:notes.md")
    assert loop.state.visited_files == {"calc.py"}
    deciders = [event.detail["decided_by"] for event in events if event.kind == "proposal.decided"]
    assert deciders == ["program", "program"]
    assert loop.result is not None
    assert loop.result.ok


async def test_a_callback_that_awaits_may_discuss_and_reject(project: Path, model: str) -> None:
    async def approve(request: ApprovalRequest) -> Answer:
        if request.kind == "context":
            return Answer("approve")
        return Answer("reject", "leave this file alone")

    loop = OmniLoop(project=project, model=model, approve=approve)
    events = [event async for event in loop.stream(TASK, max_steps=4)]
    assert (project / "calc.py").read_text().endswith("a - b\n")
    assert any("leave this file alone" in str(event.detail) for event in events)
    assert loop.state.modified_files == frozenset()


async def test_what_a_callback_raises_ends_the_run(project: Path, model: str) -> None:
    def approve(request: ApprovalRequest) -> bool:
        raise ZeroDivisionError(request.title)

    loop = OmniLoop(project=project, model=model, approve=approve)
    with pytest.raises(ZeroDivisionError):
        await loop.run(TASK)
    assert loop.result is not None
    assert loop.result.status == "stopped"
    wrong = OmniLoop(project=project, model=model, approve=lambda request: "yes")  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="returned str for"):
        await wrong.run(TASK)


BELOW = """
import asyncio, sys
from cockpit import OmniLoop
from cockpit.access.token_scopes import NotAllowed

for options in ({"approve": bool}, {"policy": "all"}, {"settings": {"[approval] policy": "all"}}):
    try:
        asyncio.run(OmniLoop(model=sys.argv[1], **options).run("Fix the bug in calc.py"))
    except NotAllowed as error:
        print("is for you alone" in str(error))
"""


def test_a_program_below_an_agent_approves_nothing(project: Path, model: str) -> None:
    words = [sys.executable, "-c", BELOW, model]
    env = {**os.environ, "CLAUDECODE": "1"}
    told = subprocess.run(words, cwd=project, env=env, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"] * 3


async def test_a_program_with_a_token_approves_nothing(project, model, monkeypatch):
    monkeypatch.setenv("COCKPIT_TOKEN", "anything")
    loop = OmniLoop(project=project, model=model, approve=lambda request: True)
    with pytest.raises(NotAllowed, match="holds a token"):
        await loop.run(TASK)


@pytest.mark.parametrize(
    ("policy", "kinds"), [("ask", ["context", "action"]), ("reads", ["action"])]
)
async def test_without_a_callback_a_run_returns_at_what_waits_and_goes_on_once_it_is_decided(
    project: Path, model: str, policy: str, kinds: list[str]
) -> None:
    loop = OmniLoop(project=project, model=model, policy=policy)
    result = await loop.run(TASK, max_steps=8)
    for kind in kinds:
        assert (result.status, result.proposal.kind) == ("waiting", kind)
        assert f"cockpit proposals approve {result.proposal.proposal_id}" in str(result)
        assert f"run('', session='{result.session_id}')" in str(result)
        again = await loop.run("", session="last")
        assert again.proposal == result.proposal, "nothing goes on before the decision"
        await approve(project, result.proposal)
        result = await loop.run("", session="last")
    assert (result.status, result.proposal) == ("done", None)


async def approve(project: Path, request: ApprovalRequest) -> None:
    """As the user does, elsewhere."""
    async with open_runtime(locate_project(project), RuntimeSettings()) as runtime:
        await runtime.approve(request.proposal_id, shown_digest=request.digest)


async def test_what_cannot_start_says_so_and_stores_nothing(project, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(TypeError, match="colour"):
        OmniLoop(colour="red")
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
        await OmniLoop(project=project, model="anthropic:x").run(TASK)
    with pytest.raises(CockpitError):
        await OmniLoop(project=project, settings={"[limits] max_waves": 0}).run(TASK)
    with pytest.raises(CockpitError, match=r"there is no setting \[limits\] max_wave"):
        await OmniLoop(project=project, settings={"[limits] max_wave": 3}).run(TASK)


def test_public_names_are_there() -> None:
    assert {"OmniLoop", "run_sync"} <= set(dir(cockpit))
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = cockpit.nothing_like_it
