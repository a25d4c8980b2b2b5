"""The budget bounds what the model gets: the whole prompt, its tools, and the room for its answer."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.decide.measure_prompt import count_prompt, digest_prompt
from cockpit.observe.count_tokens import count_tokens
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context import packets, pins, profiles
from cockpit.store.sessions import sessions, waves

FILES = 700
LOOK = """
[[turn]]
text = "I read everything."
[[turn.call]]
name = "request_context"
arguments = { purpose = "look", question = "what is there?", scope = ["file:small/*.py"] }
[[turn]]
when = { wave_from = 2 }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""


@pytest.mark.parametrize("budget", [8_000, 20_000])
async def test_thousands_of_small_files_render_into_the_budget(opened, script, project, budget):
    (project / "small").mkdir()
    for number in range(FILES):
        text = f"# part {number}\nVALUE = {number}\n"
        (project / "small" / f"part_{number:04}.py").write_text(text)
    async with opened(token_budget=budget) as runtime:
        sid = await runtime.start("look", model=script(LOOK), policy="all", interactive=False)
        assert (await runtime.run(sid)).result["status"] == "done"
        for wave in await runtime.store.read(lambda c: waves.select_for_session(c, sid)):
            prompt, packet = await runtime.rendered_prompt(wave.wave_id)
            counted = count_prompt(prompt, count_tokens)
            assert packet.rendered_tokens == counted
            assert counted + prompt.max_output_tokens <= packet.token_used <= budget
            assert packet.rendering.prompt_sha256 == digest_prompt(prompt)
            again = await runtime.store.read(lambda c, w=wave.wave_id: recompile_packet(c, w))
            assert again.ok
        assert packet.dropped > 0
        # What is left is less than one more file would take.
        assert packet.token_used > budget * 0.75


STUCK = """
[[turn]]
when = { wave_from = 1 }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "free" }
"""


@pytest.fixture
def crowded(project):
    """A project whose AGENTS.md alone is larger than the budget of the tests below."""
    (project / "AGENTS.md").write_text("Always be careful with the parts of this project.\n" * 900)
    return project


async def stuck(runtime, model):
    """A session whose first wave failed for its pins."""
    sid = await runtime.start("look", model=model, policy="all", interactive=False)
    with pytest.raises(Exception, match=r"project:AGENTS.md .*") as failure:
        await runtime.run(sid)
    assert failure.value.code == "pinned_over_budget"
    for way in ("packet unpin", "AGENTS.md", "ORIENTATION_TOKEN_BUDGET", "profile change"):
        assert way in str(failure.value)
    return sid


async def test_a_shorter_agents_file_frees_a_wave_that_failed_for_its_pins(opened, script, crowded):
    async with opened(token_budget=8_000) as runtime:
        sid = await stuck(runtime, script(STUCK))
        (crowded / "AGENTS.md").write_text("Be careful.\n")
        assert (await runtime.run(sid)).result["status"] == "done"


async def test_a_larger_budget_frees_a_wave_that_failed_for_its_pins(opened, script, crowded):
    async with opened(token_budget=8_000) as runtime:
        sid = await stuck(runtime, script(STUCK))
    async with opened(token_budget=30_000) as runtime:
        assert (await runtime.run(sid)).result["status"] == "done"
        (wave,) = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        stored = await runtime.store.read(lambda c: packets.load(c, wave.wave_id))
        assert stored.packet.token_budget == 30_000
        assert (await runtime.store.read(lambda c: recompile_packet(c, wave.wave_id))).ok


async def test_an_approved_profile_frees_a_wave_that_failed_for_its_pins(opened, script, crowded):
    async with opened(token_budget=8_000) as runtime:
        sid = await stuck(runtime, script(STUCK))

        def approve(tx):
            session = sessions.load(tx.connection, sid)
            current = profiles.load_current(tx.connection, session.profile_id)
            wider = profiles.scale(current, 30_000)
            profiles.insert_version(
                tx, profiles.replace(wider, version=current.version + 1, updated_by="main")
            )

        await runtime.store.write(approve)
        assert (await runtime.run(sid)).result["status"] == "done"


async def test_unpinning_frees_a_wave_that_failed_for_its_pins(opened, script, project):
    async with opened(token_budget=8_000) as runtime:
        words = "look at the parts " * 2_500
        sid = await runtime.start(words, model=script(STUCK), policy="all", interactive=False)
        with pytest.raises(Exception, match="task:opening"):
            await asyncio.wait_for(runtime.run(sid), 30)
        fact = await runtime.store.read(lambda c: pins.find_fact_id(c, sid, "task:opening"))
        assert (await runtime.unpin(sid, fact)).ordinal == 1
        assert (await runtime.run(sid)).result["status"] == "done"
