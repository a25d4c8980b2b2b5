"""What compiling and handovers saved, from the packets of real sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from cockpit.backlog.service import create_task
from cockpit.chains.report.prompt_savings import PromptSavings, measure_prompts
from cockpit.chains.report.saving_rows import measure_savings, saving_rows
from cockpit.loop.runtime import Runtime
from cockpit.store.context import packets
from cockpit.store.db.transaction import Tx


async def test_prompts_are_compared_with_transcripts_and_handovers_with_going_on(
    opened: Callable[..., AbstractAsyncContextManager[Runtime]], fix: str, project: Path
) -> None:
    with (project / "test_calc.py").open("a", encoding="utf-8") as file:
        file.writelines(f"# case {number}: nothing to see\n" for number in range(3_000))
    async with opened(policy="all", token_budget=20_000) as runtime:
        store = runtime.store
        first = await runtime.start("Fix the bug in calc.py", model=fix, interactive=False)
        await runtime.run(first)
        alone = await store.read(lambda c: measure_prompts(c, "", "9999"))
        second = await runtime.start("Look at calc.py", model=fix, interactive=False)

        def join(tx: Tx) -> None:
            task = create_task(tx, "Fix calc", by="person")
            tx.execute("UPDATE sessions SET task_id=?", (task.task_id,))

        await store.write(join)
        await runtime.run(second)
        both = await store.read(lambda c: measure_prompts(c, "", "9999"))
        sizes = {sid: await store.read(lambda c, s=sid: _sizes(c, s)) for sid in (first, second)}
        assert (alone.handovers, both.handovers) == (0, 1)
        assert both.prompts == sum(map(len, sizes.values()))
        assert both.sent == sum(sum(each) for each in sizes.values())
        begins, last = sizes[second][0], sizes[first][-1]
        assert both.by_handover == max(0, last - begins) * len(sizes[second]) > 0
        # A transcript would have the long file in full; the packets have an outline of it.
        assert alone.by_compiling == await store.read(lambda c: _left_out(c, first)) > 20_000

        rows = await store.read(lambda c: saving_rows(measure_savings(c)))
        shown = {row.name: row.shown for row in rows}
        assert shown["Tokens saved by compiling"] == f"{both.by_compiling:,}"
        assert shown["Tokens saved by handover"] == f"{both.by_handover:,}"
        assert all("estimated" in row.detail for row in rows if row.name.startswith("Tokens"))
        later = await store.read(lambda c: measure_prompts(c, "9998", "9999"))
        assert later == PromptSavings()


def _sizes(connection: sqlite3.Connection, session_id: str) -> list[int]:
    stored = packets.select_for_session(connection, session_id)
    return [each.packet.rendered_tokens or 0 for each in stored]


def _left_out(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the tokens of facts, over all waves, that were observed and are not in the wave's prompt."""
    total = around = 0
    for place, stored in enumerate(packets.select_for_session(connection, session_id)):
        packet = stored.packet
        (cost,) = connection.execute(
            "SELECT sum(max(cost_full, tokens_full)) FROM session_facts WHERE session_id=? AND ordinal<=?",
            (session_id, packet.ordinal),
        ).fetchone()
        prompt = packet.rendered_tokens or 0
        if not place:
            around = prompt - packet.token_used + packet.overheads.total
        total += around + int(cost) - prompt
    return total
