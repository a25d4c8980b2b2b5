"""Questions of an agent: what is shown of them, which answers fit, and what the agent gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from permission_world import CANARY, World

from cockpit.commands.sessions.proposal_text import proposal_text
from cockpit.loop.permissions.answer_questions import answer_questions
from cockpit.loop.permissions.ask_permission import PermissionAnswer
from cockpit.loop.permissions.question_form import (
    Answer,
    AnswerInvalid,
    AnswerNeeded,
    parse_answer,
    read_form,
)
from cockpit.loop.permissions.read_tool_request import read_claude_tool, read_elicitation
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.sessions.proposals import Proposal

pytestmark = pytest.mark.slow

DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "options": [
        {"label": "SQLite", "description": "one file"},
        {"label": "Postgres", "description": ""},
    ],
    "multiSelect": False,
}
FEATURES = {
    "question": f"Which of {CANARY}?",
    "header": "Features",
    "options": [{"label": name, "description": ""} for name in ("one", "two", "three")],
    "multiSelect": True,
}


def claude(*questions: Any, transport: str = "stdio") -> ToolRequest:
    arguments = {"questions": list(questions)}
    return read_claude_tool("AskUserQuestion", arguments, transport=transport)


async def answered(world: World, request: ToolRequest, *answers: Answer) -> PermissionAnswer:
    asking = asyncio.create_task(world.ask(request))
    (shown,) = await world.pending()
    await give(world, shown, *answers)
    return await asking


async def give(world: World, shown: Proposal, *answers: Answer) -> Proposal:
    digest = shown.shown_digest
    return await answer_questions(world.store, RuntimeSettings(), shown, digest, answers)


async def test_claude_gets_its_answers_by_question_with_its_own_words(world):
    own = Answer(text="as before, with WAL")
    request = claude(DATABASE, FEATURES, DATABASE | {"question": "And then?"})
    answer = await answered(world, request, Answer((0,)), Answer((0, 2)), own)
    assert answer.allowed and answer.by == "person" and answer.input is not None
    assert answer.input["questions"] == request.input["questions"]
    assert answer.input["answers"] == {
        "Which database?": "SQLite",
        f"Which of {CANARY}?": "one, three",
        "And then?": "as before, with WAL",
    }
    revision = world.load(answer.proposal_id)
    assert revision.status == "approved" and CANARY not in str(revision)
    text = proposal_text(revision)
    assert "changed: answered by you" in text and "answer 2: one, three" in text
    assert "also:" not in text


async def test_a_question_is_not_approved_and_no_policy_answers_it(world):
    asking = asyncio.create_task(world.ask(claude(DATABASE), policy="all"))
    (shown,) = await world.pending()
    assert "1. SQLite: one file" in proposal_text(shown) and shown.title == "asks: Which database?"
    with pytest.raises(AnswerNeeded, match=f"cockpit proposals answer {shown.proposal_id}"):
        world.decide(shown, "approved")
    world.decide(shown, "rejected", "ask Ann")
    assert (await asking).message == "The user said no: ask Ann"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([Answer((0,))], "There are 2 questions and 1 answers"),
        ([Answer((5,)), Answer()], "has 2 options"),
        ([Answer((0, 1)), Answer((0,))], "takes one option"),
        ([Answer(), Answer((0,))], "needs an answer"),
        ([Answer(text=CANARY), Answer((0,))], "looks like a secret"),
        ([Answer(text="x" * 30_000), Answer((0,))], "more than 20,000"),
    ],
)
async def test_answers_that_do_not_fit_change_nothing(world, answers, words):
    asking = asyncio.create_task(world.ask(claude(DATABASE, FEATURES)))
    (shown,) = await world.pending()
    with pytest.raises(AnswerInvalid, match=words):
        await give(world, shown, *answers)
    assert world.load(shown.proposal_id).status == "pending"
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_form_gets_values_of_its_types(world):
    schema = {
        "properties": {
            "colour": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
            "count": {"type": "integer", "minimum": 2},
            "ratio": {"type": "number"},
            "sure": {"type": "boolean"},
            "note": {"type": "string"},
            "odd": {"type": "_mine"},
            "list": {
                "type": "array",
                "items": {"type": "string", "enum": ["a", "b"]},
                "maxItems": 1,
            },
        },
        "required": ["count"],
    }
    request = read_elicitation({"message": "Settings?", "requestedSchema": schema}, agent="x")
    given = [
        Answer((1,)), Answer(text="3"), Answer(text="0.5"), Answer(text="No"), Answer(), Answer((0,)),
    ]  # fmt: skip
    answer = await answered(world, request, *given)
    assert answer.input == {"colour": "b", "count": 3, "ratio": 0.5, "sure": False, "list": ["a"]}
    for place, wrong, words in (
        (1, Answer(text="1"), "at least 2"),
        (1, Answer(text="x"), "a whole number"),
        (1, Answer(text="nan"), "a whole number"),
        (3, Answer(text="maybe"), "yes or no"),
        (5, Answer((0, 1)), "at most 1"),
    ):
        with pytest.raises(AnswerInvalid, match=words):
            await answered(world, request, *given[:place], wrong, *given[place + 1 :])
        world.decide((await world.pending())[0], "rejected")


def test_what_an_agent_sends_is_never_too_odd_to_read():
    odd: Any
    for odd in (None, 7, [], {"properties": 3}, {"properties": {"a": 3, "b": {"type": ["x"]}}}):
        assert read_form(odd if isinstance(odd, dict) else {}) == ()
    many = {"properties": {str(n): {"type": "string"} for n in range(500)}}
    assert len(read_form(many)) == 20
    assert (
        read_claude_tool("AskUserQuestion", {"questions": [1, {"question": 3}]}).title == "asks: "
    )
    assert read_elicitation({"url": "http://[bad"}, agent="x").questions == ()


def test_answers_are_read_as_typed():
    one = {"options": [["Red", ""], ["Blue", ""]], "several": False}
    several = one | {"several": True}
    assert parse_answer(one, "2") == Answer((1,))
    assert parse_answer(one, "red") == Answer((0,))
    assert parse_answer(one, "green") == Answer(text="green")
    assert parse_answer(several, "blue, 1") == Answer((1, 0))
    assert parse_answer(several, "blue, pink") == Answer(text="blue, pink")
    assert parse_answer({"options": [], "several": False}, "2") == Answer(text="2")
