"""Rare tools are offered where the task or what happened asks for them, and may be called without."""

from __future__ import annotations

from itertools import pairwise

from loop_calc import git
from loop_runs import read_details, run_to_end
from scenario import ask, finish, turn

from cockpit.act.model_tools import GROW, RESUME
from cockpit.core.skills import skill_layers
from cockpit.decide.measure_prompt import digest_prompt
from cockpit.loop.phases.wave_prompt import render_stored_prompt
from cockpit.loop.tools.rare_tools import (
    GITHUB,
    PROFILE_CHANGE,
    RARE,
    SKILL,
    Attempt,
    Evidence,
    choose_rare_tools,
)
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context.packets import Packet
from cockpit.store.journal.details.tools import ToolsOffered
from cockpit.store.journal.details.waves import ModelMalformedCall
from cockpit.store.sessions import waves


async def read_waves(opened, session_id: str, **settings) -> list[tuple[set[str], Packet]]:
    """Return each wave's rare tools and packet, read by another process; the prompts are those sent."""
    async with opened(**settings) as runtime:

        def read(connection):
            seen = []
            for wave in waves.select_for_session(connection, session_id):
                prompt, packet = render_stored_prompt(connection, runtime.engine, wave.wave_id)
                assert digest_prompt(prompt) == packet.rendering.prompt_sha256
                assert recompile_packet(connection, wave.wave_id).ok
                listed = next(fact.text for fact in prompt.facts if fact.source_type == "tools")
                names = {tool.name for tool in prompt.tools} & set(RARE)
                assert names == {name for name in RARE if f"`{name}`" in listed}
                seen.append((names, packet))
            return seen

        return await runtime.store.read(read)


async def test_a_kept_action_and_a_dropped_fact_bring_their_tools_and_these_stay(
    opened, script, project
):
    for name in ("one.md", "two.md"):
        (project / name).write_text("\n".join(f"{name} line {n} of many words" for n in range(900)))
    model = script(
        turn("edit_file", "wave = 1", path="calc.py", old="a - b", new="a + b")
        + turn("resume_action", "wave = 2", call="1.1")
        + ask("file:one.md", when="wave = 3")
        + ask("file:two.md", when="wave = 4")
        + ask("file:test_calc.py", when="wave = 5")
        + turn("github", "wave = 6")
        + finish("wave_from = 7")
    )
    async with opened(token_budget=20_000) as runtime:
        session = await run_to_end(runtime, model)
        assert session.result["status"] == "done", session.result
        assert "a + b" in (project / "calc.py").read_text()
        events = await read_details(runtime, session.session_id, ToolsOffered)
        malformed = await read_details(runtime, session.session_id, ModelMalformedCall)
        assert "command" in malformed[0].message, "taken without an offer, and read"
    waves_seen = await read_waves(opened, session.session_id, token_budget=20_000)
    kept, lost = {RESUME}, {RESUME, PROFILE_CHANGE}
    expected = [set(), kept, kept, kept, kept, lost, {*lost, GITHUB}]
    assert [names for names, _ in waves_seen] == expected
    assert {each.name: each.why for each in events[-1].rare} == {
        GITHUB: "the agent called it",
        RESUME: "an action is kept",
        PROFILE_CHANGE: "2 facts had no room",
    }
    for (before, _), (names, packet) in pairwise(waves_seen):
        assert (packet.epoch.reason == "head") == (before != names)


async def test_words_and_a_remote_offer_tools_from_the_first_wave(
    opened, script, project, monkeypatch
):
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    git(project, "remote", "add", "origin", "https://github.com/acme/api.git")
    async with opened(skills_most=3) as runtime:
        ended = await run_to_end(runtime, script(finish()), "write a skill for releases")
    ((names, packet),) = await read_waves(opened, ended.session_id, skills_most=3)
    assert (names, packet.epoch.reason) == ({GITHUB, SKILL}, "first")


def test_what_is_offered_follows_from_the_evidence_alone():
    def chosen(**fields):
        return set(choose_rare_tools(Evidence(**fields), {}))

    def tried(result, call="request_context", scope=()):
        return (Attempt(call, scope, result),)

    assert chosen(words="fix add in calc.py and run the tests") == set()
    assert chosen(type_lines=("`github` with `gh pr view`",)) == {GITHUB}
    assert chosen(on_github=True, allowed=frozenset()) == set(), "a type that only reads"
    sought = tried("Refused: docs:pcab: no document mentions 'pcab'", scope=("docs:pcab",))
    assert chosen(attempts=sought) == {GROW}
    assert (
        chosen(attempts=tried("Approved by user; it is in the context.", scope=("docs:a",)))
        == set()
    )
    assert chosen(attempts=tried("'x' is binary", scope=("file:x",))) == {GROW}
    printed = tried("'x' is binary", "run")
    assert chosen(attempts=printed) == set(), "words that a command printed offer nothing"
    assert choose_rare_tools(Evidence(), {PROFILE_CHANGE: "2 facts had no room"}) == {
        PROFILE_CHANGE: "2 facts had no room"
    }
