"""The packets of a session in epochs, through the real loop: appending, differences, verification."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from msgspec.structs import replace

from cockpit.loop.views.packet_inspection import explained
from cockpit.loop.views.session_report import session_document
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context import packets
from cockpit.store.sessions import waves

FILE = "\n".join(f"def part_{number}():\n    return {number}\n" for number in range(60))
EDITS = """
[[turn]]
text = "I read the file."
[[turn.call]]
name = "request_context"
arguments = { purpose = "look", question = "what is there?", scope = ["file:parts.py"] }
[[turn]]
when = { wave = 2 }
[[turn.call]]
name = "edit_file"
arguments = { path = "parts.py", old = "    return 7\\n", new = "    return 700\\n" }
[[turn]]
when = { wave = 3 }
[[turn.call]]
name = "edit_file"
arguments = { path = "parts.py", old = "    return 700\\n", new = "    return 7\\n" }
[[turn]]
when = { wave = 4 }
[[turn.call]]
name = "run"
arguments = { argv = ["rm", "parts.py"], reason = "it is done" }
[[turn]]
when = { wave = 5 }
[[turn.call]]
name = "run"
arguments = { argv = ["true"], reason = "look again" }
[[turn]]
when = { wave_from = 6 }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""


@pytest.fixture
async def session(opened, script, project):
    """A finished session of six waves that changes a file that it read, changes it back and deletes it."""
    (project / "parts.py").write_text(FILE)
    async with opened() as runtime:
        sid = await runtime.start(
            "implement parts", model=script(EDITS), policy="all", interactive=False
        )
        assert (await runtime.run(sid)).result["status"] == "done"
        yield runtime, sid


async def read_waves(runtime, sid):
    """(prompt, packet) of every wave."""
    seen = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
    return [await runtime.rendered_prompt(wave.wave_id) for wave in seen]


async def test_each_prompt_begins_with_the_one_before(session):
    runtime, sid = session
    sent = await read_waves(runtime, sid)
    assert len(sent) == 6
    for (before, old), (prompt, packet) in pairwise(sent):
        assert not packet.epoch.begins
        assert packet.epoch.cached == old.rendered_tokens
        assert (prompt.system, prompt.tools) == (before.system, before.tools)
        begun = [replace(message, cache=False) for message in before.messages]
        assert [replace(m, cache=False) for m in prompt.messages[: len(begun)]] == begun


async def test_a_changed_file_is_shown_as_its_difference(session):
    runtime, sid = session
    sent = await read_waves(runtime, sid)
    added = [prompt.messages[-1].text for prompt, _ in sent]
    assert "return 59" in added[1]
    assert "[file:parts.py · changed: the difference from the text above]" in added[2]
    assert "-    return 7\n+    return 700" in added[2]
    # Changed back: what stood there first does not hold by itself again.
    assert "-    return 700\n+    return 7" in added[3]
    for text in added[2:4]:
        assert "return 59" not in text
    whole = [prompt.system + "".join(m.text for m in prompt.messages) for prompt, _ in sent]
    assert whole[-1].count("return 59") == 1


async def test_every_packet_of_an_epoch_compiles_again(session):
    runtime, sid = session
    seen = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
    for wave in seen:
        again = await runtime.store.read(lambda c, w=wave.wave_id: recompile_packet(c, w))
        assert again.ok


async def test_a_changed_packet_before_is_noticed(session):
    """A packet stands on the one before: that cannot be another one."""
    runtime, sid = session
    seen = await runtime.store.read(lambda c: waves.select_for_session(c, sid))

    def change(tx):
        tx.execute("DROP TRIGGER IF EXISTS packets_are_final")
        for (name,) in tx.execute(
            "SELECT name FROM sqlite_master WHERE type='trigger' AND tbl_name='orientation_packets'"
        ).fetchall():
            tx.execute(f"DROP TRIGGER {name}")
        body = json.loads(packets.load(tx.connection, seen[1].wave_id).body_json)
        body["quality_ppm"] = 1
        tx.execute(
            "UPDATE orientation_packets SET packet_json=? WHERE wave_id=?",
            (json.dumps(body), seen[1].wave_id),
        )

    await runtime.store.write(change)
    again = await runtime.store.read(lambda c: recompile_packet(c, seen[2].wave_id))
    assert not again.ok


async def test_explain_and_the_report_say_how_each_wave_stands(session):
    runtime, sid = session
    verdicts = await runtime.store.read(lambda c: explained(c, sid, 3).facts)
    standing = {fact.source_ref: fact for fact in verdicts}
    assert standing["file:parts.py"].standing == "appended"
    assert standing["file:parts.py"].level == "diff"
    assert {fact.standing for fact in verdicts} == {"appended", "carried", "stale"}
    document = await runtime.store.read(lambda c: session_document(c, sid))
    first, second, *_ = [wave["packet"] for wave in document["waves"]]
    assert first["epoch"] == {"first": 1, "reason": "first", "stale": 0}
    assert second["cached_expected"] == first["rendered_tokens"]
    assert first["cost_units"] > first["rendered_tokens"]
    cached, tokens = second["cached_expected"], second["rendered_tokens"]
    assert second["cost_units"] == -(-(100 * cached + 1_250 * (tokens - cached)) // 1_000)
    assert second["cached_reported"] is None


LOOKS = "\n".join(
    f"""[[turn]]
{f"when = {{ wave = {wave} }}" if wave > 1 else ""}
text = "Step {wave}."
[[turn.call]]
name = "run"
arguments = {{ argv = ["echo", "{wave}"], reason = "look" }}
"""
    for wave in range(1, 31)
)
LOOKS += """
[[turn]]
when = { wave_from = 31 }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""


async def test_an_epoch_in_the_course_of_a_session_begins_with_what_is_spent_shortened(
    opened, script
):
    """Results that name no file: none of them is worth its price in every wave."""
    async with opened() as runtime:
        sid = await runtime.start(
            "investigate numbers", model=script(LOOKS), policy="all", interactive=False
        )
        assert (await runtime.run(sid)).result["status"] == "done"
        seen = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        begun = []
        for wave in seen:
            packet = (await runtime.store.read(lambda c, w=wave: packets.load(c, w.wave_id))).packet
            assert packet.epoch is not None
            if packet.epoch.reason == "stale":
                begun.append(packet)
            verified = await runtime.store.read(lambda c, w=wave: recompile_packet(c, w.wave_id))
            assert verified.ok
        assert begun
        packet = begun[0]
        assert packet.epoch is not None
        verdicts = (await runtime.store.read(lambda c: explained(c, sid, packet.ordinal))).facts
        calls = [each for each in verdicts if each.source_type == "exchange"]
        assert {each.standing for each in calls[:-2]} == {"spent"}
        assert {each.level for each in calls[:-2]} <= {"outline", "reference"}
        assert [each.level for each in calls[-2:]] == ["full", "full"]
