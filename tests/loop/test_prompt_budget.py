"""The budget bounds the whole prompt, and what failed stays in it with its meaning."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from scenario import ask, finish, turn

from cockpit.backlog import service
from cockpit.decide.measure_prompt import count_prompt, digest_prompt
from cockpit.decide.model_settings import ModelSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.backlog import handoffs, tasks, wip
from cockpit.store.context import facts, packets, pins, profiles
from cockpit.store.journal import journal
from cockpit.store.sessions import sessions, waves

pytestmark = pytest.mark.slow

FILES = 300
LOOK = ask("file:small/*.py", text="I read everything.") + finish("wave_from = 2")


async def test_hundreds_of_small_files_render_into_the_budget(opened, script, project):
    budget = 8_000
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


STUCK = finish("wave_from = 1")


async def test_rules_of_the_user_are_never_shortened_and_shorter_ones_free_the_wave(
    opened, script, tmp_path
):
    rules = tmp_path / "user" / "non-negotiables.md"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("Always be careful with the parts of this project.\n" * 900)
    async with opened(token_budget=8_000) as runtime:
        sid = await runtime.start("look", model=script(STUCK), policy="all", interactive=False)
        with pytest.raises(Exception, match=r"rule:user .*") as failure:
            await runtime.run(sid)
        assert failure.value.code == "pinned_over_budget"
        for way in ("packet pin", "AGENTS.md", "ORIENTATION_TOKEN_BUDGET", "profile change"):
            assert way in str(failure.value)
        rules.write_text("Be careful.\n")
        assert (await runtime.run(sid)).result["status"] == "done"


async def test_an_agents_file_that_is_larger_than_the_budget_is_shown_in_part(
    opened, script, project
):
    (project / "AGENTS.md").write_text("First of all.\n" + "Be careful with the parts.\n" * 1_500)
    async with opened(token_budget=8_000) as runtime:
        sid = await runtime.start("look", model=script(STUCK), policy="all", interactive=False)
        assert (await runtime.run(sid)).result["status"] == "done"
        prompt, packet = await runtime.rendered_prompt(f"{sid}-w1")
    assert packet.token_used <= 8_000
    assert "First of all." in prompt.system
    assert "[cut: ask for file:AGENTS.md to read the rest]" in prompt.system


async def test_unpinning_frees_a_wave_that_failed_for_its_pins(opened, script, project):
    async with opened(token_budget=8_000) as runtime:
        words = "look at the parts " * 2_500
        sid = await runtime.start(words, model=script(STUCK), policy="all", interactive=False)
        with pytest.raises(Exception, match="task:opening"):
            await asyncio.wait_for(runtime.run(sid), 30)
        fact = await runtime.store.read(lambda c: pins.find_fact_id(c, sid, "task:opening"))
        assert (await runtime.unpin(sid, fact)).ordinal == 1
        assert (await runtime.run(sid)).result["status"] == "done"


LOUD = (
    "import sys\n"
    "for number in range(60):\n    print(f'collected part {number} of the run, all is well')\n"
    "print('FAILED test_calc.py::test_add - AssertionError: -1 != 3')\n"
    "for number in range(60):\n    print(f'closing part {number} of the run, all is well')\n"
    "sys.exit(1)\n"
)
SCOPE = ("receipt:1.1", "docs:rounding of sums", "note:sums", "handoff:T-1", "wip:T-2")
RUNS = (
    turn("run", argv=["python3", "loud.py"], reason="see")
    + turn("run", "wave = 2", argv=["python3", "loud.py"], reason="see again")
    + ask(*SCOPE, when="wave = 3")
    + finish("wave = 4")
)


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
            if entry.level in ("full", "pointed")
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
        assert level in ("full", "pointed")
        assert "collected part 0 " in whole
        assert "closing part 59 " in whole
        assert "half to even" in seen[3]["file:rounding.md:1-3"][1]
        assert "sums are added" in seen[3]["handoff:T-1"][1]
        assert "keep the sign" in seen[3]["wip:T-2"][1]


async def test_a_session_with_a_window_of_8k_goes_on(opened, script, project):
    """Reads of three files that fill it, and an edit: each wave's prompt and answer fit the window."""
    for name in ("one", "two", "three"):
        text = "".join(f"{name} says line {number} of many.\n" for number in range(300))
        (project / f"{name}.md").write_text(text)
    names = ("one.md", "two.md", "three.md", "calc.py")
    reads = (ask(f"file:{name}", when=f"wave = {at}") for at, name in enumerate(names, start=1))
    edit = turn("edit_file", "wave = 5", path="calc.py", old="a - b", new="a + b")
    model = script("".join([*reads, edit, finish("wave_from = 6")]))
    async with opened(model=ModelSettings(context_window=8_192)) as runtime:
        sid = await runtime.start("fix add", model=model, policy="all", interactive=False)
        ended = await runtime.run(sid)
        assert ended.result["status"] == "done", ended.result
        for wave in await runtime.store.read(lambda c: waves.select_for_session(c, sid)):
            prompt, packet = await runtime.rendered_prompt(wave.wave_id)
            assert packet.token_budget == 7_680
            assert packet.rendered_tokens + prompt.max_output_tokens <= packet.token_budget
            floors = [(band.name, band.min_tokens) for band in packet.bands]
            assert sum(floor for _, floor in floors) <= packet.token_budget, floors
