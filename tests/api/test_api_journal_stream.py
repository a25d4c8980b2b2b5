"""The journal as server-sent events: no row is missed, none comes twice, and slow readers cost nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from api_world import PATIENCE_S, api_client, issue, told

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.api.application import application
from cockpit.api.routes import journal as journal_routes
from cockpit.api.server_sent_events import Filter, JournalStream
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.details.store import AccessRefused

pytestmark = pytest.mark.slow

EVERY = Filter()
FEW = 5


def write(store: Store, count: int, *, text: str = "") -> None:
    """Write ``count`` rows, one in a transaction."""
    for number in range(count):
        event = AccessRefused(
            face="test", count=number, since="", request="", message=text or "again"
        )
        store.write_now(lambda tx, event=event: tx.journal(event))


def seqs_of(data: bytes) -> list[int]:
    return [int(line[4:]) for line in data.decode().splitlines() if line.startswith("id: ")]


async def read_until(events: AsyncIterator[bytes], seqs: list[int], last: int) -> list[int]:
    """Read a stream up to row ``last``, after the ``seqs`` that were read before."""
    async with asyncio.timeout(PATIENCE_S):
        while not seqs or seqs[-1] < last:
            data = await anext(events, None)
            if data is None:
                break
            seqs += seqs_of(data)
    return seqs


async def test_readers_anywhere_in_the_journal_get_each_row_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        write(store, FEW)
        stream = JournalStream(store)
        start = store.read_now(journal.last_seq)
        late, early = stream.events(0, EVERY), stream.events(start, EVERY)
        first = seqs_of(await anext(late))
        waiting = asyncio.create_task(read_until(early, [], start + 1))
        writer = threading.Thread(target=write, args=(store, 40))
        writer.start()
        seen = await waiting
        await asyncio.to_thread(writer.join)
        last = store.read_now(journal.last_seq)
        await read_until(early, seen, last)
        assert seen == list(range(start + 1, last + 1))
        assert await read_until(late, first, last) == list(range(1, last + 1))
        filtered = stream.events(0, Filter(action="store.migrated"))
        assert seqs_of(await anext(filtered)) == [1]
        whole = [data async for data in stream.events(0, EVERY, follows=False)]
        assert seqs_of(b"".join(whole)) == list(range(1, last + 1))
        quiet = JournalStream(store, beat_s=0.02, look_s=0.01)
        beats = quiet.events(last, EVERY)
        assert [await anext(beats) for _ in range(4)] == [b"", b": \n\n"] * 2
        ended = asyncio.create_task(read_until(early, [], last + 100))
        await asyncio.sleep(0)
        await stream.close()
        assert await asyncio.wait_for(ended, PATIENCE_S) == []
        for each in (late, early, filtered, beats):
            await each.aclose()
        await quiet.close()


async def test_a_stream_ends_with_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_routes, "CHECK_S", 0.0)
    with Store.open(tmp_path / "cockpit.db") as store:
        token, secret = store.write_now(
            lambda tx: capability_tokens.issue(
                tx, namespace="watch", scopes=frozenset({"audit.read"}), by=PERSON
            )
        )
        store.write_now(lambda tx: capability_tokens.revoke(tx, token.cap_id, PERSON))
        bearer = issue(store, "watch", "audit.read")
        app = application(store, RuntimeSettings())
        async with api_client(app) as client:
            told(
                await client.get("/api/journal", headers={"Authorization": f"Bearer {secret}"}),
                401,
                "token_revoked",
            )
            ahead = await client.get("/api/journal?after=9999", headers=bearer)
            told(ahead, 409, "after_end")
            wrong = await client.get("/api/journal", headers={**bearer, "Last-Event-ID": "x"})
            told(wrong, 400, "malformed")
            whole = await client.get("/api/journal?follow=false", headers=bearer)
            assert whole.headers["content-type"].startswith("text/event-stream")
            assert whole.text.startswith("retry: 500\n\nid: 1\n")
            following = asyncio.create_task(client.get("/api/journal?after=1", headers=bearer))
            async with asyncio.timeout(PATIENCE_S):
                while not app.state.stream.readers:
                    await asyncio.sleep(0.005)
                token = store.read_now(capability_tokens.listed)[-1]
                await store.write(lambda tx: capability_tokens.revoke(tx, token.cap_id, PERSON))
                ended = (await following).text
            assert '\n\nevent: end\ndata: {"code":"token_revoked",' in ended
        await app.state.stream.close()
