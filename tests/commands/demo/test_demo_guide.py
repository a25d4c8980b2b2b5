"""The guide in a live session: notices that a person reads and the model does not."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.commands.demo.demo_guide import DISCUSS_WORDS, LINES, guide
from cockpit.commands.demo.sample_project import Sample
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.context import packets
from cockpit.store.journal.follow import follow
from cockpit.store.sessions import messages, proposals

pytestmark = pytest.mark.slow


async def notices(runtime: Runtime, session_id: str) -> list[str]:
    said = await runtime.store.read(lambda c: messages.select_for_session(c, session_id))
    return [message.text for message in said if message.role == "notice"]


async def noticed(runtime: Runtime, session_id: str, step: str) -> None:
    async for rows in follow(runtime.store, session_id=session_id):
        if any(row.raw_detail().get("text") == LINES[step] for row in rows):
            return


async def test_what_to_press_next_is_told_once_and_not_to_the_model(sample: Sample) -> None:
    settings = RuntimeSettings(user_dir=sample.root.parent / "user")
    async with open_runtime(locate_project(sample.root), settings) as runtime:
        session_id = await runtime.start(f"review main..{sample.branch}", model="offline")
        guiding = [asyncio.create_task(guide(runtime.store)) for _ in range(2)]
        work = asyncio.create_task(runtime.run(session_id))

        await noticed(runtime, session_id, "review.context")
        (first,) = await runtime.store.read(proposals.select_pending)
        await runtime.discuss(first.proposal_id, shown_digest=first.shown_digest)
        await noticed(runtime, session_id, "review.discussed")
        await runtime.say(session_id, DISCUSS_WORDS)
        await noticed(runtime, session_id, "review.context.again")
        (second,) = await runtime.store.read(proposals.select_pending)
        await runtime.approve(second.proposal_id, shown_digest=second.shown_digest)
        await noticed(runtime, session_id, "review.write_file")
        (review,) = await runtime.store.read(proposals.select_pending)
        await runtime.approve(review.proposal_id, shown_digest=review.shown_digest)
        await work
        await noticed(runtime, session_id, "review.completed")
        for task in guiding:
            task.cancel()
        await asyncio.gather(*guiding, return_exceptions=True)

        assert await notices(runtime, session_id) == [
            LINES[f"review.{step}"]
            for step in ("context", "discussed", "context.again", "write_file", "completed")
        ]
        made = await runtime.store.read(lambda c: packets.select_for_session(c, session_id))
        texts = await runtime.store.read(
            lambda c: [text for (text,) in c.execute("SELECT normalized_json FROM observed_facts")]
        )
    assert len(made) == 4
    assert texts
    assert not any("GUIDE" in text for text in texts)
