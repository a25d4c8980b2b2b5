"""The rules of a growth, and what happens where nothing can be confined."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from types import ModuleType

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.act.own_tools.run_child import NoSandbox
from cockpit.act.own_tools.run_suite import run_suite
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.decide.model import Done, ModelEvent, Prompt, TextDelta, ToolCall, Usage
from cockpit.evolve.evolve import begin_evolution
from cockpit.evolve.growth import (
    SAME_ROUNDS,
    Growth,
    SourceRefused,
    SuiteRun,
    check_code,
    check_test,
    judge_code,
    judge_test,
    read_run,
)
from cockpit.evolve.growth_dialogue import Dialogue, WriteTest
from cockpit.loop.runtime import Runtime
from cockpit.store.sessions import sessions

TEST = "from double_it import double_it\n\ndef test_it():\n    assert double_it(2) == 4\n"
OTHER = TEST.replace("2", "3").replace("4", "6")
RED = SuiteRun(1, failed=(("test_it", "AssertionError"),))
GREEN = SuiteRun(1)
LOADING = SuiteRun(0, failed=(("(loading)", "SyntaxError: bad"),))
GROWTH = Growth("double numbers")


def test_code_comes_after_a_red_test_which_stands_then() -> None:
    with pytest.raises(SourceRefused, match="test first"):
        check_code(GROWTH, "x = 1\n")
    judge_test(RED, LOADING)
    red = replace(GROWTH, test=TEST)
    check_code(red, "x = 1\n")
    begun = judge_code(red, "x = 1\n", RED)
    with pytest.raises(SourceRefused, match="The test stands"):
        check_test(begun, "double_it", TEST, OTHER)
    assert "No code passed its test. The last fault: AssertionError" in begun.what_is_missing
    assert judge_code(begun, "x = 2\n", GREEN).green
    for run in (SuiteRun(0), RED, SuiteRun(2, skipped=1), SuiteRun(1, error="no result")):
        assert not run.is_green and run.describe()


RUNS = st.sampled_from([GREEN, RED, SuiteRun(1, failed=(("test_it", "TypeError"),)), LOADING])


@pytest.mark.search
@settings(max_examples=examples(25))
@given(st.lists(st.tuples(st.sampled_from(["a = 1\n", "a = 2\n"]), RUNS), max_size=12))
def test_a_growth_stagnates_exactly_when_rounds_change_nothing(
    rounds: list[tuple[str, SuiteRun]],
) -> None:
    growth = replace(GROWTH, test=TEST)
    same, before = 0, (growth.code, growth.last_failure)
    for source, run in rounds:
        growth = judge_code(growth, source, run)
        failure = "" if run.is_green else run.describe()
        is_same = not run.is_green and (source == before[0] or failure == before[1])
        same = same + 1 if is_same else 0
        before = (source, failure)
        assert growth.stagnates == (same >= SAME_ROUNDS)
        assert growth.green == run.is_green


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["ran", "failed", "skipped"]), inner)
    ),
    max_leaves=6,
)


@pytest.mark.search
@settings(max_examples=examples(25))
@given(JSON)
def test_any_answer_of_a_child_reads_as_a_run(answer: object) -> None:
    run = read_run(answer if isinstance(answer, dict) else {})
    assert isinstance(run.describe(), str)


async def test_without_a_sandbox_nothing_grows_and_it_is_said(
    opened: Callable[[str], AbstractAsyncContextManager[Runtime]],
) -> None:
    async with opened('[[turn]]\ntext = "never asked"\n') as runtime:
        none = Sandbox(None, None, missing="bubblewrap (bwrap) is not installed")
        engine = replace(runtime.engine, ground=replace(runtime.engine.ground, sandbox=none))
        with pytest.raises(NoSandbox, match="is not installed"):
            await begin_evolution(engine, "double numbers")
        assert await runtime.store.read(sessions.find_latest) is None


def test_a_test_that_cannot_be_the_first_step_is_refused() -> None:
    for name, source, words in (
        ("double_it", "from other import x\n", "does not import double_it"),
        ("double_it", "def test(:\n", "line 1"),
        ("double_it", " ", "is empty"),
        ("double_it", TEST + "#" * 70_000, "are the most"),
        ("Double", TEST, "is not a name of a tool"),
        ("../double", TEST, "is not a name of a tool"),
        ("double_it", f"{TEST}\nKEY = 'ghp_{'A1b2C3d4E5' * 4}'\n", "looks like a key"),
    ):
        with pytest.raises(SourceRefused, match=words):
            check_test(GROWTH, name, source, OTHER)
    for withheld, words in (
        (TEST, "no value that the test"),
        ("x = 9", "does not import"),
        (" ", "is empty"),
    ):
        with pytest.raises(SourceRefused, match=f"The withheld test .*{words}"):
            check_test(GROWTH, "double_it", TEST, withheld)


def test_a_test_that_proves_nothing_is_refused() -> None:
    for with_stub, without, words in (
        (GREEN, RED, "passes although there is no code"),
        (RED, GREEN, "passes without any code"),
        (SuiteRun(0), RED, "runs nothing"),
        (LOADING, RED, "cannot be run"),
        (SuiteRun(0, error="It was ended after 60 s."), RED, "cannot be run"),
    ):
        with pytest.raises(SourceRefused, match=words):
            judge_test(with_stub, without)


def test_a_failing_assert_shows_both_sides() -> None:
    source = "\n".join(
        [
            "from other import got",
            *(f"def test_{n}():\n    {text}" for n, text in enumerate(ASSERTS)),
        ]
    )
    module = ModuleType("other")
    vars(module)["got"] = lambda: [1, 2]
    failed = run_suite(module, "other", source)["failed"]
    for (_, trace), (text, words) in zip(failed, ASSERTS.items(), strict=True):
        assert text in trace and f"AssertionError: {words}" in trace


ASSERTS = {
    "assert got() == [1, 3]": "Lists differ: [1, 2] != [1, 3]",
    "assert 5 in got(), 'the five'": "the five: 5 in [1, 2] does not hold",
    "assert len(got()) > 2": "2 > 2 does not hold",
    "assert not got()": "the value is False",
    "assert got() is None": "[1, 2] is None does not hold",
}


class Writer:
    """A model that answers with one call, and keeps its prompts."""

    name = "writer"

    def __init__(self, arguments: str) -> None:
        self.arguments, self.prompts = arguments, list[Prompt]()

    async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
        self.prompts.append(prompt)
        yield TextDelta("Its result for 777 is kept apart.")
        yield ToolCall("c-1", "write_test", self.arguments)
        yield Done("tool", Usage())


@pytest.mark.parametrize("end", ["}", ""])
async def test_the_coder_does_not_see_the_withheld_test(end: str) -> None:
    body = {"name": "double_it", "purpose": "doubles", "source": TEST, "withheld": "f(777) == 1554"}
    model = Writer(json.dumps(body)[:-1] + end)
    dialogue, resumed = Dialogue("double", []), Dialogue("double", [])
    reply = await dialogue.ask(model)
    assert isinstance(reply.call, WriteTest) == bool(end)
    dialogue.answer("Red.")
    await dialogue.ask(model)
    resumed.restore(1, reply.text, "write_test", model.arguments, "Red.")
    await resumed.ask(model)
    first, second, again = model.prompts
    assert second.messages == again.messages != first.messages
    assert "777" not in repr(second.messages)
    assert ("double_it(2) == 4" in repr(second.messages)) == bool(end)
