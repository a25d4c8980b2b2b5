"""The table of work tools: the seeds' names and parameters, answers as short as asked, never too long."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dice import Dice
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs
from work_world import Backlog

from cockpit.access.principals import PERSON, Caller, agent
from cockpit.access.token_scopes import WORK_READ, NotAllowed
from cockpit.backlog.response_modes import ANSWER_TOKENS, fits, page, shorten_to_fit
from cockpit.backlog.tools.tool_table import WORK_TOOLS, find_work_tool
from cockpit.core.errors import CockpitError
from cockpit.mcp.tool_registry import tools_in_tier
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.backlog import wip

pytestmark = pytest.mark.slow

# Names and parameters as the tools have them that agents' prompts were written for.
SEEDS = {
    "get_project_status": "",
    "get_session_context": "",
    "get_tasks": "status? priority? story_status? epic_status? limit? fields?",
    "get_task": "task_id fields?",
    "get_next_task": "",
    "get_next_batch": "batch_size? limit?",
    "get_blocked_tasks": "",
    "update_task_status": "task_id status notes?",
    "add_task_activity": "task_id activity_type description",
    "set_handoff_notes": "task_id notes",
    "update_task_progress": "task_id progress_percent context_summary?",
    "set_blocker": "task_id reason",
    "resolve_blocker": "task_id",
    "set_needs_rework": "task_id value",
    "create_task": "title story_id? task_type? description? estimate_hours? source?",
    "create_story": "title epic_id? description?",
    "get_story": "story_id",
    "list_stories": "epic_id? status? limit? offset?",
    "update_story": "story_id title? description? status? epic_id?",
    "create_epic": "title project_id? description? priority?",
    "get_epic": "epic_id",
    "get_epics": "status? priority? limit?",
    "update_epic": "epic_id title? description? priority? status?",
    "get_kanban_board": "include_done? limit_per_column?",
    "update_task": "task_id title? description? task_type? estimate_hours?",
    "archive_task": "task_id reason?",
    "reopen_task": "task_id notes?",
    "add_dependency": "task_id depends_on_task_id dependency_type?",
    "remove_dependency": "task_id depends_on_task_id",
    "get_task_dependencies": "task_id",
    "summarize_task_activity": "task_id delete_raw?",
    "record_task_failure": "task_id failure_type reason attempt?",
    "update_task_wip": "task_id wip_data",
    "set_task_handoff": "task_id status summary files_changed? full_details?",
    "get_task_handoff": "task_id include_details?",
    "compact_story_handoffs": "story_id",
    "delete_epic_handoffs": "epic_id",
}


def call(
    work: Backlog, name: str, *, caller: Caller = PERSON, cap: int = ANSWER_TOKENS, **arguments: Any
) -> Any:
    tool = find_work_tool(name)
    args = tool.parameters(**arguments)
    where = work.store.write_now if tool.writes else work.store.read_now
    return where(lambda seat: tool.run(seat, caller, args, cap_tokens=cap))  # type: ignore[operator]


def tokens(value: Any) -> int:
    return count_tokens(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def test_the_core_is_a_dozen_with_room_for_the_loops_own() -> None:
    core = set(tools_in_tier("core"))
    assert len(core & set(WORK_TOOLS)) <= 11
    assert len(core) <= 14
    assert core < set(tools_in_tier("standard"))
    assert set(tools_in_tier("all")) > set(WORK_TOOLS)


def test_who_may_not_write_does_not(work: Backlog) -> None:
    work.task()
    looker = Caller("ci", frozenset({WORK_READ}))
    assert call(work, "get_task", caller=looker, task_id="T-1")["id"] == "T-1"
    with pytest.raises(NotAllowed, match=r"needs the scope work\.write"):
        call(work, "update_task_status", caller=looker, task_id="T-1", status="done")
    with pytest.raises(NotAllowed, match=r"needs the scope work\.read"):
        call(work, "get_tasks", caller=Caller("ci", frozenset()))
    assert work.load("T-1").status == "todo"


def ten_tasks(work: Backlog) -> None:
    story = work.story(work.epic())
    for number in range(10):
        task = work.task(
            story,
            title=f"Add token expiry to route {number}",
            description="Tokens never expire. " * 5,
            acceptance_criteria="An expired token is refused with 401.",
        )
        work.do(
            wip.update,
            task,
            {
                "phase": "testing",
                "files_modified": [f"src/{number}.ts"],
                "next_step": "fix the test",
            },
        )


def test_a_session_starts_with_short_lists_and_one_task_to_begin(work: Backlog) -> None:
    ten_tasks(work)
    work.stand("T-4", "in_progress")
    context = call(work, "get_session_context")
    assert set(context["in_progress"][0]) == {"id", "title", "status"}
    assert "description" in context["suggested_next"]
    assert context["resume"] == ["Resuming T-4 from: testing phase, next: fix the test"]


def test_a_task_that_is_too_long_is_shortened_and_says_so(work: Backlog) -> None:
    task = work.task(description="word " * 11_000)
    work.do(wip.update, task, {"decisions": [{"decision": f"number {n}"} for n in range(2000)]})
    answer = call(work, "get_task", task_id=task, fields="full", cap=2000)
    assert tokens(answer) <= 2000
    assert answer["left_out"]["decisions"] + len(answer["wip"]["decisions"]) == 2000
    assert answer["wip"]["decisions"][-1] == {"decision": "number 1999"}


def any_body(seeds: list[bytes]) -> dict[str, Any]:
    """An answer of any values; of some seeds more than fits."""
    thrown = [Dice(seed) for seed in seeds]
    return {dice.text(10): dice.json(depth=3, length=60, width=30) for dice in thrown}


@pytest.mark.search
@settings(max_examples=examples(8), deadline=None)
@given(st.lists(st.binary(min_size=4, max_size=4), max_size=6).map(any_body))
@example(any_body([b"TlF{"]))  # objects in objects, whose members alone are too many
def test_what_fits_is_not_touched(body: dict[str, Any]) -> None:
    answer = shorten_to_fit(body, 5000)
    assert (answer == body) == fits(body, 5000)
    assert fits(answer, 5000)


@pytest.mark.search
@settings(max_examples=examples(8), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.text(max_size=300)), max_size=30))
def test_pages_go_on_where_they_ended(items: list[dict[str, str]]) -> None:
    seen, offset = 0, 0
    while True:
        answer = page(items[offset:], 600, offset=offset, total=len(items))
        assert tokens(answer) <= 600
        seen += len(answer["tasks"])
        if "more" not in answer:
            break
        assert answer["next_offset"] == offset + len(answer["tasks"]) > offset
        offset = answer["next_offset"]
    assert seen == len(items)


def test_an_empty_batch_says_who_holds_what_is_ready(work: Backlog) -> None:
    running, _ = work.task(files=["src"]), work.task(files=["src/a.py"])
    work.stand(running, "in_progress")
    assert call(work, "get_next_batch") == {"tasks": [], "ready": 1, "held_by": [running]}
    assert call(work, "get_next_task") == {"task": None, "ready": 1, "held_by": [running]}


def test_the_tools_are_those_of_the_seeds_with_their_parameters() -> None:
    assert sorted(tool.name for tool in WORK_TOOLS) == sorted(SEEDS)
    for name, words in SEEDS.items():
        fields = {field.name: field for field in structs.fields(find_work_tool(name).parameters)}
        for word in words.split():
            assert fields[word.removesuffix("?")].required == (not word.endswith("?")), (name, word)
        added = set(fields) - {word.removesuffix("?") for word in words.split()}
        assert not any(fields[word].required for word in added), name


def test_an_agent_is_named_and_cannot_say_that_the_user_wrote_its_task(work: Backlog) -> None:
    """Its description would stand in prompts as the user's own words, without a fence."""
    call(work, "create_task", caller=agent("s-1"), title="Of an agent", source="person")
    assert work.load("T-1").source == "agent/s-1"
    actors = work.read(
        lambda c: c.execute("SELECT actor FROM journal WHERE action='task.changed'").fetchall()
    )
    assert actors == [("agent/s-1",)]


def test_tasks_grow_with_what_is_asked_for(work: Backlog) -> None:
    ten_tasks(work)
    minimal, standard, full = (
        call(work, "get_tasks", fields=fields)["tasks"]
        for fields in ("minimal", "standard", "full")
    )
    assert call(work, "get_tasks")["tasks"] == minimal
    assert len(json.dumps({"tasks": minimal}, separators=(",", ":"))) <= 1000
    assert set(minimal[0]) == {"id", "title", "status"}
    more = {"description", "acceptance_criteria", "type", "story"}
    assert set(standard[0]) == set(minimal[0]) | more
    assert {"context_summary", "handoff_notes", "wip"} < set(full[0])
    assert full[0]["wip"]["phase"] == "testing"
    assert call(work, "get_task", task_id="t-1") == standard[0]
    with pytest.raises(CockpitError, match="minimal, standard, full"):
        call(work, "get_task", task_id="T-1", fields="all")
