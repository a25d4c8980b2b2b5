from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.commands.demo.sample_project import Sample, make_sample


@pytest.fixture
async def sample(tmp_path: Path) -> Sample:
    return await make_sample(tmp_path / "sample")
