from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from loopback.server import Loopback
from models_talk import Talk


@pytest.fixture(params=["anthropic", "openai", "openai-compatible"])
async def talk(request: pytest.FixtureRequest) -> AsyncIterator[Talk]:
    async with Loopback() as server:
        yield Talk(request.param, server)
        assert server.unexpected == []


@pytest.fixture
async def anthropic() -> AsyncIterator[Talk]:
    async with Loopback() as server:
        yield Talk("anthropic", server)


@pytest.fixture
async def openai() -> AsyncIterator[Talk]:
    async with Loopback() as server:
        yield Talk("openai", server)


@pytest.fixture
async def compatible() -> AsyncIterator[Talk]:
    async with Loopback() as server:
        yield Talk("openai-compatible", server)
