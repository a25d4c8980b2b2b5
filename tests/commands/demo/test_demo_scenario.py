"""The script of the bug fits the project that it is played on."""

from __future__ import annotations

from importlib.resources import as_file

import msgspec
from commands.demo.demo_world import unittest

from cockpit.access.confined_paths import Confined
from cockpit.act.model_tools import parse_call
from cockpit.commands.demo.sample_project import Sample, shipped
from cockpit.core.secrets import mask_value
from cockpit.decide.offline.scenario import Scenario, load_scenario
from cockpit.observe.context_request import parse_request


def scenario() -> Scenario:
    with as_file(shipped("bug.toml")) as path:
        return load_scenario(path)


def edits(path: str) -> list[dict[str, str]]:
    found = [
        call.arguments or {}
        for turn in scenario().turn
        for call in turn.call
        if call.name == "edit_file"
    ]
    return [msgspec.convert(edit, dict[str, str]) for edit in found if edit["path"] == path]


def test_every_call_is_one_that_cockpit_reads() -> None:
    for turn in scenario().turn:
        for call in turn.call:
            read = parse_call(call.name, call.text)
            assert mask_value(dict(read.arguments)) == read.arguments
            if call.name == "request_context":
                assert parse_request(read.arguments, rev=None).scope


async def test_the_tests_fail_first_and_the_fix_mends_them(sample: Sample) -> None:
    for path, ending, said in [
        ("tests/test_rates.py", 1, "FAILED (failures=1, errors=1)"),
        ("parcel/rates.py", 0, "OK"),
    ]:
        ways = {(edit["old"], edit["new"]) for edit in edits(path)}
        assert len(ways) == 1, "a step that is put again is the same step"
        ((old, new),) = ways
        file = Confined(sample.root).inside(path)
        before = file.read_text()
        assert before.count(old) == 1
        file.write_text(before.replace(old, new))
        ran = unittest(sample.root)
        assert ran.returncode == ending
        assert ran.stderr.strip().endswith(said)
        assert "Ran 28 tests" in ran.stderr
