"""What failed stays in every packet with its meaning, and what was dropped comes back when asked for."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.backlog import service
from cockpit.store.backlog import handoffs, tasks, wip
from cockpit.store.context import facts, packets, profiles
from cockpit.store.journal import journal
from cockpit.store.sessions import sessions, waves

LOUD = (
    "import sys\n"
    "for number in range(60):\n    print(f'collected part {number} of the run, all is well')\n"
    "print('FAILED test_calc.py::test_add - AssertionError: -1 != 3')\n"
    "for number in range(60):\n    print(f'closing part {number} of the run, all is well')\n"
    "sys.exit(1)\n"
)
RUNS = """
[[turn]]
[[turn.call]]
name = "run"
arguments = { argv = ["python3", "loud.py"], reason = "see" }
[[turn]]
when = { wave = 2 }
[[turn.call]]
name = "run"
arguments = { argv = ["python3", "loud.py"], reason = "see again" }
[[turn]]
when = { wave = 3 }
[[turn.call]]
name = "request_context"
arguments.purpose = "see"
arguments.question = "what failed?"
arguments.scope = ["receipt:1.1", "docs:rounding of sums", "note:sums", "handoff:T-1", "wip:T-2"]
[[turn]]
when = { wave = 4 }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""


def weaken(tx, session_id):
    """A change of weights only: results of calls at their least."""
    session = sessions.load(tx.connection, session_id)
    current = profiles.load_current(tx.connection, session.profile_id)
    weak = [
        replace(rule, priority_weight=250, recency_half_life=1)
        if rule.source_type == "exchange"
        else rule
        for rule in current.rules
    ]
    changed = replace(current, version=current.version + 1, rules=tuple(weak), updated_by="main")
    profiles.insert_version(tx, changed)


def held(connection, wave_id):
    """The entries of a wave's packet by source, with the text that the model read."""
    packet = packets.load(connection, wave_id).packet
    entries = [entry for _, entry in packet.rendered()]
    texts = facts.load_texts(connection, [entry.fact_id for entry in entries])
    return {
        texts[entry.fact_id].source_ref: (
            entry.level,
            texts[entry.fact_id].full
            if entry.level == "full"
            else texts[entry.fact_id].outline or texts[entry.fact_id].reference,
        )
        for entry in entries
    }


async def test_a_failure_keeps_its_meaning_and_comes_back_whole(opened, script, project):
    (project / "loud.py").write_text(LOUD)
    (project / "rounding.md").write_text("# Rounding of sums\n\nSums are rounded half to even.\n")

    def backlog(tx):
        first = service.create_task(tx, "Add the sums", by="main")
        second = service.create_task(tx, "Subtract", by="main")
        handoffs.set_handoff(tx, first.task_id, "PASS", "The sums are added in calc.", by="main")
        wip.update(tx, second.task_id, {"decisions": ["keep the sign"]}, by="main")
        return tasks.load(tx.connection, first.task_id)

    async with opened(token_budget=10_000) as runtime:
        await runtime.store.write(backlog)
        sid = await runtime.start("fix it", model=script(RUNS), policy="all", interactive=False)
        await runtime.store.write(lambda tx: weaken(tx, sid))
        assert (await runtime.run(sid)).result["status"] == "done"
        done = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        seen = [await runtime.store.read(lambda c, w=w: held(c, w.wave_id)) for w in done]
        for later in seen[1:]:
            level, text = later["exchange:1.1"]
            assert level in ("outline", "full")
            assert "FAILED test_calc.py::test_add - AssertionError: -1 != 3" in text
        rows = await runtime.store.read(lambda c: list(journal.rows(c, session_id=sid)))
        refused = [row for row in rows if str(row.action) == "action.refused"]
        assert "[exchange:1.1]" in refused[0].detail.message
        assert "receipt:1.1" in refused[0].detail.message
        level, whole = seen[3]["receipt:1.1"]
        assert level == "full"
        assert "collected part 0 " in whole
        assert "closing part 59 " in whole
        assert "half to even" in seen[3]["file:rounding.md:1-3"][1]
        assert "sums are added" in seen[3]["handoff:T-1"][1]
        assert "keep the sign" in seen[3]["wip:T-2"][1]


async def test_a_failure_in_the_middle_of_very_long_output_is_kept(opened, script, project):
    (project / "loud.py").write_text(LOUD.replace("range(60)", "range(4_000)"))
    async with opened(token_budget=10_000) as runtime:
        sid = await runtime.start("fix it", model=script(RUNS), policy="all", interactive=False)
        assert (await runtime.run(sid)).result["status"] == "done"
        done = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        for wave in done[1:]:
            seen = await runtime.store.read(lambda c, w=wave: held(c, w.wave_id))
            level, text = seen["exchange:1.1"]
            assert level in ("outline", "full")
            assert "FAILED test_calc.py::test_add - AssertionError: -1 != 3" in text
            assert "closing part 3999 " in text
