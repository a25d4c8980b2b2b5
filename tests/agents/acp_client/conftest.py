from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agents.acp_client.acp_world import Acp, open_acp


@pytest.fixture
async def acp(tmp_path: Path) -> AsyncIterator[Acp]:
    """A project with the scripted agent."""
    async with open_acp(tmp_path) as opened:
        yield opened
