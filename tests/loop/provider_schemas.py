"""What the warm server says to each provider before it forks processes that do.

The SDKs build the schemas of their answers when the first answers arrive, which takes a second for each.
"""

from __future__ import annotations

import asyncio

from decide.models_talk import Talk
from decide.prompts import PLAIN
from loopback.replies import Reply, Say, Use
from loopback.server import Loopback

VENDORS = ("anthropic", "openai", "openai-compatible")
REPLIES: tuple[Reply, ...] = (
    Say("I look.", calls=(Use("finish", {"status": "done"}),)),
    Say("", calls=(Use("finish", {"status": "done"}),)),
    Say("All is well."),
)


async def _talk_with(vendor: str) -> None:
    async with Loopback(REPLIES) as server:
        for _ in REPLIES:
            await Talk(vendor, server).say(PLAIN)
        assert server.unexpected == []


def talk_with_each() -> None:
    for vendor in VENDORS:
        asyncio.run(_talk_with(vendor))
