"""The recorder of the demo's animation: the keys that the guide asks for lead to its last scene."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest
from commands.demo.test_demo_guide import notices

from cockpit.commands.demo.demo_guide import LINES
from cockpit.commands.demo.sample_project import Sample

RECORDER = Path(__file__).parents[3] / "docs" / "record_demo.py"


@pytest.fixture(scope="module")
def recorder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record_demo", RECORDER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


async def test_the_keys_that_the_guide_asks_for_lead_to_the_last_scene(
    recorder: ModuleType, sample: Sample
) -> None:
    pictures: list[float] = []

    async def shoot(seconds: float) -> None:
        pictures.append(seconds)

    async with recorder.play(sample, recorder.SIZE) as pilot:
        await recorder.review(pilot, shoot)
        last = recorder.Frame(pilot.app.export_screenshot(), pictures[-1])
        texts = await notices(pilot.app.engine, pilot.app.session_id)

    assert len(pictures) >= 10
    # Text that is sent at once needs no second invitation: no line of "review.discussed".
    steps = ("context", "context.again", "write_file", "completed")
    assert texts == [LINES[f"review.{step}"] for step in steps]
    drawn = "".join(ET.fromstring(recorder.animated([last, last])).itertext())
    assert "@keyframes f1" in drawn
    assert "Bands" in drawn and "situational" in drawn
