"""What a tool returns becomes strict JSON, or an error in words; and one call has one answer."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import pytest

from cockpit.act.own_tools import child
from cockpit.act.own_tools.check_arguments import describe_parameters, find_argument_problem
from cockpit.act.own_tools.tool_definition import ToolDefinition, clean_schema
from cockpit.core.read_record import parse_object

LOOP: list[Any] = []
LOOP.append(LOOP)
RESULTS = {
    "nan": float("nan"),
    "deep": {"mean": [float("inf"), -float("inf"), 1.5]},
    "name": "caf\udce9",
    "set": {1},
    "none": None,
}


def plain(what: str) -> Any:
    return RESULTS[what]


async def awaited(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


def yields(n: int) -> Iterator[int]:
    yield from range(n)


async def yields_slowly(n: int) -> AsyncIterator[int]:
    for number in range(n):
        await asyncio.sleep(0)
        yield number


def never_ends() -> Iterator[int]:
    while True:
        yield 1


async def never_ends_either() -> AsyncIterator[int]:
    while True:
        yield 1


def call(function: Any, **arguments: Any) -> Any:
    module = ModuleType("tools")
    module.function = function  # type: ignore[attr-defined]
    result = child.call(module, "function", arguments)
    # The parent reads the answer strictly.
    return parse_object(json.dumps({"result": result}), name="it", max_characters=10_000)["result"]


def test_what_json_has_no_word_for_becomes_text() -> None:
    assert call(plain, what="nan") == "nan"
    assert call(plain, what="deep") == {"mean": ["inf", "-inf", 1.5]}
    assert call(plain, what="name") == "caf?"
    assert (call(plain, what="set"), call(plain, what="none")) == ([1], None)


def test_coroutines_and_generators_are_results() -> None:
    assert call(awaited, n=1) == 2
    assert call(yields, n=3) == call(yields_slowly, n=3) == [0, 1, 2]
    for endless in (never_ends, never_ends_either):
        with pytest.raises(ValueError, match="yields more than 100000 values"):
            call(endless)


def test_a_copy_of_the_process_gives_no_second_answer(tmp_path) -> None:
    source = (
        "import os\nfrom cockpit import tool\n\n@tool\ndef fork() -> str:\n"
        '    """Fork."""\n    os.fork()\n    return "once"\n'
    )
    request = {
        "mode": "call", "function": "fork", "arguments": {}, "folder": str(tmp_path), "main": "f.py",
        "sources": {"f.py": source},
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-I", "-B", child.__file__],
        input=json.dumps(request).encode(),
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert json.loads(ended.stdout) == {"result": "once"}


def test_a_hint_without_a_schema_names_its_function() -> None:
    class Opaque:
        pass

    def odd(what: Opaque) -> str:
        return str(what)

    odd.__annotations__["what"] = Opaque
    module = ModuleType("tools")
    odd.__cockpit_tool__ = ("", "", (), "reads", 60)  # type: ignore[attr-defined]
    module.odd = odd  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="the type hints of odd have no JSON Schema"):
        child.describe(module)


def test_arguments_that_are_defined_elsewhere_in_the_schema_are_described_and_checked() -> None:
    schema = clean_schema(
        {
            "type": "object",
            "$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}},
            "properties": {"colour": {"$ref": "#/$defs/Colour"}},
            "required": ["colour"],
        }
    )
    definition = ToolDefinition("project:t", "t", "own", "project", "d", schema, "0")
    assert describe_parameters(schema) == "colour (one of 'red', 'blue')"
    assert "one of 'red', 'blue'" in find_argument_problem(definition, {"colour": "RED"})
    assert find_argument_problem(definition, {"colour": "red"}) == ""
