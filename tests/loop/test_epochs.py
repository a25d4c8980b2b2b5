"""The packets of a session in epochs, through the real loop: appending, differences, verification."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace
from scenario import ask, finish, turn

from cockpit.loop.views.packet_inspection import explained
from cockpit.loop.views.session_report import session_document
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.sessions import waves

FILE = "\n".join(f"def part_{number}():\n    return {number}\n" for number in range(60))
EDITS = (
    ask("file:parts.py", text="I read the file.")
    + turn("edit_file", "wave = 2", path="parts.py", old="    return 7\n", new="    return 700\n")
    + turn("edit_file", "wave = 3", path="parts.py", old="    return 700\n", new="    return 7\n")
    + turn("run", "wave = 4", argv=["mv", "parts.py", "done.py"], reason="it is done")
    + turn("run", "wave = 5", argv=["true"], reason="look again")
    + finish("wave_from = 6")
)


@pytest.fixture
async def session(opened, script, project):
    """A finished session of six waves that changes a file that it read, changes it back and moves it away."""
    (project / "parts.py").write_text(FILE)
    async with opened() as runtime:
        sid = await runtime.start(
            "implement parts", model=script(EDITS), policy="all", interactive=False
        )
        assert (await runtime.run(sid)).result["status"] == "done"
        yield runtime, sid


async def test_prompts_append_and_a_changed_file_is_shown_as_its_difference(session):
    runtime, sid = session
    seen = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
    sent = [await runtime.rendered_prompt(wave.wave_id) for wave in seen]
    assert len(sent) == 6
    for (before, old), (prompt, packet) in pairwise(sent):
        assert not packet.epoch.begins
        assert packet.epoch.cached == old.rendered_tokens
        assert (prompt.system, prompt.tools) == (before.system, before.tools)
        begun = [replace(message, cache=False) for message in before.messages]
        assert [replace(m, cache=False) for m in prompt.messages[: len(begun)]] == begun
    added = [prompt.messages[-1].text for prompt, _ in sent]
    assert "return 59" in added[1]
    assert "[file:parts.py · changed: the difference from the text above]" in added[2]
    assert "-    return 7\n+    return 700" in added[2]
    # Changed back: what stood there first does not hold by itself again.
    assert "-    return 700\n+    return 7" in added[3]
    whole = [prompt.system + "".join(m.text for m in prompt.messages) for prompt, _ in sent]
    assert whole[-1].count("return 59") == 1
    for wave in seen:
        assert (await runtime.store.read(lambda c, w=wave.wave_id: recompile_packet(c, w))).ok


async def test_explain_and_the_report_say_how_each_wave_stands(session):
    runtime, sid = session
    verdicts = await runtime.store.read(lambda c: explained(c, sid, 3).facts)
    standing = {fact.source_ref: fact for fact in verdicts}
    assert standing["file:parts.py"].standing == "appended"
    assert standing["file:parts.py"].level == "diff"
    assert {fact.standing for fact in verdicts} == {"appended", "carried"}
    document = await runtime.store.read(lambda c: session_document(c, sid))
    first, second, *_ = [wave["packet"] for wave in document["waves"]]
    assert first["epoch"] == {"first": 1, "reason": "first", "headroom": 0}
    assert second["cached_expected"] == first["rendered_tokens"]
    assert first["cost_units"] > first["rendered_tokens"]
    cached, tokens = second["cached_expected"], second["rendered_tokens"]
    assert second["cost_units"] == -(-(100 * cached + 1_250 * (tokens - cached)) // 1_000)
    assert second["cached_reported"] is None
