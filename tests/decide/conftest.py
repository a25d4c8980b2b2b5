from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from loopback.server import Loopback
from models_talk import Talk


@pytest.fixture(params=["anthropic", "openai", "openai-compatible"])
async def talk(request: pytest.FixtureRequest) -> AsyncIterator[Talk]:
    async with Loopback() as server:
        yield Talk(request.param, server)
        assert server.unexpected == []


def _talk_with(vendor: str) -> Any:
    @pytest.fixture
    async def made() -> AsyncIterator[Talk]:
        async with Loopback() as server:
            yield Talk(vendor, server)

    return made


anthropic, openai, compatible = map(_talk_with, ("anthropic", "openai", "openai-compatible"))
