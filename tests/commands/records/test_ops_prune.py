"""Pruning: archived first, nothing that is needed, everything verifiable, and a way back."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
from pathlib import Path

import pytest

from cockpit.app.screens.replay_screen import run_replay
from cockpit.core.errors import NotFound, StoreError
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.session_loop import SessionPruned
from cockpit.loop.views.metrics import fold_counts
from cockpit.orient.verify_packet import verify_packet
from cockpit.store.context import facts, packets
from cockpit.store.context.prune import prune, restore, select_prunable
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.prune_journal import prune_journal
from cockpit.store.sessions import events, proposals

LATER = "2999-01-01T00:00:00.000000Z"
SCRIPT = """
[[turn]]
text = "I look at it."
[[turn.call]]
name = "request_context"
arguments = { purpose = "see", question = "what is there?", scope = ["file:one.py"] }
[[turn]]
when = { called = ["request_context"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "one.py").write_text("ONE = 1\n")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    (tmp_path / "script.toml").write_text(SCRIPT)
    return root


def opened(project: Path) -> object:
    return open_runtime(locate_project(project), RuntimeSettings(user_dir=project.parent / "user"))


async def seen(runtime: Runtime, policy: str = "all") -> str:
    model = f"script:{runtime.place.root.parent / 'script.toml'}"
    return await runtime.start("look at one", model=model, policy=policy, interactive=False)


async def test_an_ended_session_goes_into_an_archive_and_comes_back(project: Path) -> None:
    async with opened(project) as runtime:
        sid = await seen(runtime)
        await runtime.run(sid)
        store = runtime.store
        rows = await store.read(journal.last_seq)
        dry = await asyncio.to_thread(prune, store, LATER, dry_run=True)
        assert (dry.sessions, dry.packets, dry.archive) == ((sid,), 2, None)
        none = await asyncio.to_thread(prune, store, "2000-01-01T00:00:00.000000Z")
        assert (none.sessions, none.archive) == ((), None)
        assert await store.read(journal.last_seq) == rows, "neither has changed anything"
        before = await store.read(lambda c: [p.digest for p in packets.select_for_session(c, sid)])
        whole = await store.read(lambda c: facts.select_linked(c, sid, 99))
        done = await asyncio.to_thread(prune, store, LATER)
        assert (done.sessions, done.packets, done.links) == ((sid,), 2, len(whole))
        assert done.archive is not None
        assert done.archive.stat().st_mode & 0o777 == 0o600
        with gzip.open(done.archive, "rt") as file:
            tables = [json.loads(line)["table"] for line in file]
        assert tables.count("orientation_packets") == 2
        assert tables.count("observed_facts") == done.facts == len(whole)
        assert tables.count("observation_jobs") == done.jobs == 1
        assert await store.read(lambda c: packets.select_for_session(c, sid)) == []
        assert (await store.read(verify_chain.verify)).ok
        with pytest.raises(SessionPruned, match="prune --restore"):
            await runtime.run(sid)
        cut = await asyncio.to_thread(prune_journal, store, LATER, fold_counts)
        assert cut.rows > 0
        with pytest.raises(NotFound, match="were pruned"):
            await run_replay(store, sid)
        damaged = project.parent / "cut.jsonl.gz"
        damaged.write_bytes(done.archive.read_bytes()[:-40])
        with pytest.raises(StoreError, match="not a complete archive"):
            await asyncio.to_thread(restore, store, damaged)
        assert await asyncio.to_thread(restore, store, done.archive) == len(tables)
        assert await asyncio.to_thread(restore, store, done.archive) == 0
        assert await store.read(lambda c: facts.select_linked(c, sid, 99)) == whole
        assert (
            await store.read(lambda c: [p.digest for p in packets.select_for_session(c, sid)])
            == before
        )
        for wave in (1, 2):
            verdict = await asyncio.to_thread(verify_packet, store, f"{sid}-w{wave}")
            assert verdict.ok
        assert (await store.read(verify_chain.verify)).ok


async def test_what_an_open_session_needs_stays(project: Path) -> None:
    async with opened(project) as runtime:
        ended = await seen(runtime)
        await runtime.run(ended)
        waits = await seen(runtime, policy="ask")
        run = asyncio.create_task(runtime.run(waits))

        def asked() -> bool | None:
            return bool(runtime.store.read_now(proposals.select_pending)) or None

        await asyncio.wait_for(runtime.engine.change_waiter.wait_for(asked), 20)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        store = runtime.store
        assert await store.read(lambda c: select_prunable(c, LATER)) == [ended]
        needed = await store.read(lambda c: facts.select_linked(c, waits, 99))
        done = await asyncio.to_thread(prune, store, LATER)
        assert done.sessions == (ended,)
        words = await store.read(lambda c: facts.load_texts(c, [fact.fact_id for fact in needed]))
        assert len(words) == len(needed) > 0
        assert (await asyncio.to_thread(verify_packet, store, f"{waits}-w1")).ok
        await runtime.change(waits, policy="all")
        for proposal in await store.read(proposals.select_pending):
            await runtime.approve(proposal.proposal_id)
        assert (await runtime.run(waits)).status == "completed"
        assert await store.read(lambda c: select_prunable(c, LATER)) == [waits]
        # As between two waves: none is open, and one is due.
        await store.write(
            lambda tx: events.ingest(
                tx,
                source=f"session/{waits}",
                source_event_id="due",
                event_type="session.continued",
                payload={},
            )
        )
        assert await store.read(lambda c: select_prunable(c, LATER)) == []
