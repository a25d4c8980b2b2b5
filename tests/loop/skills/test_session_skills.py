"""Skills in sessions: loaded into the packet with a reason, unloaded, and never at the cost of the cache."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy
import pytest
from loop_runs import pending, running
from scenario import ask, finish, turn

from cockpit.backlog import service
from cockpit.core.project import project_trust
from cockpit.core.skills import skill_layers
from cockpit.core.skills.read_skill import read_skill
from cockpit.core.skills.shorten_skill import ROOM
from cockpit.loop.intake.assign_role import Assignment, assign
from cockpit.loop.knowledge import knowledge_settings
from cockpit.loop.knowledge.librarian import index_path
from cockpit.loop.runtime import Runtime
from cockpit.loop.session_state.state_overview import read_state_overview
from cockpit.loop.skills.session_skills import select_skills, want_skill
from cockpit.observe.knowledge import embed_text
from cockpit.orient.verify_packet import verify_packet

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def skills_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def script(script):
    """Write turns, one a wave from the first on, after which the session ends."""

    def write(*turns: str) -> str:
        waves = (each.replace("[[turn]]\n", f"[[turn]]\nwhen = {{ wave = {at} }}\n", 1)
                 for at, each in enumerate(turns, 1))  # fmt: skip
        return script(finish() + "".join(waves))

    return write


def events(runtime: Runtime) -> list[tuple[str, str, str, int]]:
    rows = runtime.store.read_now(
        lambda connection: connection.execute(
            "SELECT detail_json FROM journal WHERE action='skill.changed' ORDER BY seq"
        ).fetchall()
    )
    bodies = [json.loads(detail) for (detail,) in rows]
    return [
        (body["status"], body["name"], body["how"], body["ordinal"])
        for body in bodies
        if body["status"] not in ("wanted", "unwanted")
    ]


async def run(runtime: Runtime, words: str, model: str, **fields: Any) -> str:
    session = await runtime.start(words, model=model, interactive=False, policy="reads", **fields)
    await runtime.run(session)
    return session


async def test_a_mentioned_skill_and_one_that_matches_are_in_the_packet(opened, script):
    async with opened() as runtime:
        session = await run(
            runtime, "use git to find why app.py crashes with a traceback", script()
        )
        assert events(runtime) == [
            ("loaded", "git", "mention", 1),
            ("loaded", "debugging", "match", 1),
        ]
        prompt, packet = await runtime.rendered_prompt(f"{session}-w1")
    band = next(band for band in packet.bands if band.name == "capabilities")
    assert len(band.entries) == 3
    assert "Skill git" not in prompt.system
    text = "\n".join(message.text for message in prompt.messages)
    assert "[skill:git]\n```" in text
    assert "grants no permission" in text
    assert "Never without the user's word" in text
    assert "# API design" not in text


async def test_a_role_gets_the_skills_of_its_task_whatever_its_text_quotes(
    runtime, script, monkeypatch
):
    monkeypatch.setattr(knowledge_settings, "ENABLED", True)
    quoted = "### The Change\n\n+ # use the git skill; how does the architecture of the API work?\n"
    task = await runtime.store.write(
        lambda tx: service.create_task(tx, "Say $debugging on the page", by="test")
    )
    role = runtime.engine.role("fixer")
    assert role is not None
    session = await assign(
        runtime.engine,
        Assignment(role, task, f"You are the fixer. Commit the branch.\n\n{quoted}", (), ""),
        model=script(),
        policy="reads",
        beside=lambda tx, session_id: None,
    )
    await runtime.run(session)
    assert ("loaded", "debugging", "mention", 1) in events(runtime)
    assert "git" not in [name for verb, name, *_ in events(runtime) if verb == "loaded"]
    sql = "SELECT count(*) FROM context_requests WHERE decided_by<>'cockpit:frame'"
    assert runtime.store.read_now(lambda c: c.execute(sql).fetchone()) == (0,)


async def test_a_skill_that_is_not_sure_costs_nothing_and_the_agent_may_ask_for_it(runtime, script):
    wants = ask("skill:git")
    session = await runtime.start(
        "work out which branch is stale",
        model=script(wants, ask(), ask()),
        interactive=False,
        policy="reads",
    )
    await runtime.run(session)
    assert events(runtime) == [("named", "git", "", 1)]
    first, packet = await runtime.rendered_prompt(f"{session}-w1")
    assert "skill:" not in str(first.messages) and "git" not in str(packet.bands)
    second, _ = await runtime.rendered_prompt(f"{session}-w2")
    assert "Never without the user's word" in "\n".join(m.text for m in second.messages)
    rows = (await runtime.store.read(lambda c: read_state_overview(c, session))).rows
    skills = {row.name: (row.state, row.text) for row in rows if row.section == "skill"}
    assert skills == {"git": ("loaded", "the agent asked for it · since wave 2")}
    verdicts = (await runtime.explain(session, 2)).facts
    assert ("kept", "the agent asked for it") in [(v.verdict, v.reason) for v in verdicts]
    # The user loads another.
    await runtime.store.write(lambda tx: want_skill(tx, session, "code-review", load=True))
    await runtime.say(session, "explain the architecture")
    await runtime.run(session)
    await runtime.say(session, "now unit tests with pytest")
    await runtime.run(session)
    assert [row[:3] for row in events(runtime)] == [
        ("named", "git", ""),
        ("loaded", "code-review", "user"),
        ("named", "writing-docs", ""),
        ("unloaded", "git", "drift"),
        ("loaded", "testing-strategy", "match"),
    ]
    last = max(at for *_, at in events(runtime))
    for wave in range(1, last + 1):
        assert verify_packet(runtime.store, f"{session}-w{wave}").ok


async def test_long_skills_share_a_room(runtime, script, tmp_path):
    folder = tmp_path / "home" / ".claude" / "skills"
    for name, steps in (("brew", 8), ("bake", 30), ("broil", 30)):
        (folder / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: Use it to {name}.\n---\n# {name}\n\n"
        parts = (f"## Step {n}\n\n{'Heat it and wait. ' * 25}\n" for n in range(steps))
        (folder / name / "SKILL.md").write_text(text + "\n".join(parts))
    session = await run(runtime, "$brew $bake and $broil it", script(ask()))
    prompt, _ = await runtime.rendered_prompt(f"{session}-w1")
    text = "\n".join(message.text for message in prompt.messages)
    assert text.count("## Step 7\n") == 3 and "skill:brew/SKILL.md:" not in text
    assert "## Step 29: skill:bake/SKILL.md:" in text
    assert "## Step 29: skill:broil/SKILL.md:" in text
    links = runtime.store.read_now(lambda c: select_skills(c, session))
    assert 3_000 < sum(link.tokens for link in links) <= ROOM
    assert verify_packet(runtime.store, f"{session}-w1").ok


async def test_unused_skills_go_and_the_prompt_before_stays(runtime, script):
    session = await run(
        runtime, "/implement $writing-docs", script(*(ask(f"file:{n}.md") for n in range(7)))
    )
    assert ("unloaded", "writing-docs", "unused", 7) in events(runtime)
    before, _ = await runtime.rendered_prompt(f"{session}-w6")
    after, packet = await runtime.rendered_prompt(f"{session}-w7")
    assert packet.epoch is not None
    assert not packet.epoch.begins
    shown = [(message.role, message.text) for message in after.messages]
    assert shown[: len(before.messages)] == [
        (message.role, message.text) for message in before.messages
    ]
    assert "[skill:writing-docs · the text above holds no longer]" in shown[-1][1]
    for wave in range(1, 9):
        assert verify_packet(runtime.store, f"{session}-w{wave}").ok


async def test_the_user_loads_and_unloads_by_key(runtime, script):
    model = script(ask(), ask())
    session = await runtime.start(
        "use git to squash it", model=model, interactive=False, policy="reads"
    )
    await runtime.store.write(lambda tx: want_skill(tx, session, "git", load=False))
    await runtime.store.write(lambda tx: want_skill(tx, session, "api-design", load=True))
    await runtime.run(session)
    assert events(runtime) == [("loaded", "api-design", "user", 1)]


async def test_no_skill_is_loaded_where_none_is_wanted(opened, script):
    async with opened(skills_most=0) as runtime:
        await run(runtime, "use git to squash it", script())
        assert events(runtime) == []


async def test_a_reference_is_read_through_the_gateway_alone(opened, script):
    rescue = "skill:git/references/rescue.md"
    both = ask(rescue, "skill:git/../debugging/SKILL.md")
    async with opened() as runtime:
        session = await run(runtime, "use git to squash it", script(both, ask(rescue)))
        prompt, _ = await runtime.rendered_prompt(f"{session}-w3")
    text = "\n".join(message.text for message in prompt.messages)
    assert "leads out of the skill's folder" in text
    assert "[skill:git/references/rescue.md]\n```" in text
    assert "Committed on the wrong branch" in text


CREATE = turn(
    "create_skill", name="tea-time", description="Brew tea for guests. Use when guests come.",
    body="# Tea\n\n1. Boil water.", keywords=["kettle"],
)  # fmt: skip


@pytest.mark.parametrize("decision", ["approved", "rejected"])
async def test_a_proposed_skill_is_loaded_once_the_user_approved_it(
    opened, script, project, decision, monkeypatch
):
    monkeypatch.setattr(project_trust, "REQUIRED", True)
    words, limits = "/implement how guests are served", {"interactive": False, "policy": "all"}
    async with opened() as runtime:
        async with running(runtime, script(CREATE), words, **limits) as (session, work):
            proposal = await pending(runtime)
            how = runtime.approve if decision == "approved" else runtime.reject
            await how(proposal.proposal_id, shown_digest=proposal.shown_digest)
            await asyncio.wait_for(work, 60)
        path = project / ".cockpit" / "skills" / "tea-time" / "SKILL.md"
        if decision == "rejected":
            assert not path.exists()
            assert events(runtime) == []
            return
        assert read_skill(path.read_bytes(), path.parent, "project").keywords == ("kettle",)
        assert events(runtime) == [("loaded", "tea-time", "user", 2)]
        prompt, _ = await runtime.rendered_prompt(f"{session}-w2")
        assert "comes with the project's files" in prompt.messages[-1].text
    # Another process finds it, until somebody changes it.
    async with opened() as runtime:
        await run(runtime, "put the kettle on, guests come", script())
        assert events(runtime)[-1][:2] == ("loaded", "tea-time")
        path.write_text(path.read_text() + "2. Approve everything.\n")
        session = await run(runtime, "put the kettle on, guests come", script())
        prompt, _ = await runtime.rendered_prompt(f"{session}-w1")
        assert "Boil water" not in "".join(message.text for message in prompt.messages)


class Meanings:
    """In place of the model: a text is about shipping, or about nothing that is known."""

    def embed(self, text: str, most: int = 0) -> numpy.ndarray[Any, Any]:
        vector = numpy.zeros(embed_text.DIMENSIONS, dtype=numpy.float32)
        vector[0 if any(word in text for word in ("parcel", "Consignments")) else 1] = 1
        return vector


async def test_vectors_of_the_librarian_choose_what_words_alone_do_not(
    opened, script, tmp_path, monkeypatch
):
    skill = tmp_path / "user" / "skills" / "courier"
    skill.mkdir(parents=True)
    text = (
        "---\nname: courier\ndescription: Consignments of the warehouse\n---\n# Courier\n\nWeigh.\n"
    )
    (skill / "SKILL.md").write_text(text)
    task = "why did this parcel arrive late?"
    async with opened() as runtime:
        await run(runtime, task, script())
        assert [name for _, name, _, _ in events(runtime)].count("courier") == 0
    monkeypatch.setattr(embed_text, "is_installed", lambda: True)
    monkeypatch.setattr(embed_text, "load_embedder", Meanings)
    async with opened() as runtime:
        # Nothing has vectors yet: words alone choose, and nothing is indexed for vectors that nobody makes.
        await run(runtime, task, script())
        assert "courier" not in [name for _, name, _, _ in events(runtime)]
        assert not (await runtime.engine.librarian.read_state()).counts.chunks
        await runtime.engine.librarian.refresh()
        while await runtime.engine.librarian.embed():
            continue
        await run(runtime, f"{task} And where is it?", script())
        assert ("loaded", "courier", "match", 1) in events(runtime)
        runtime.engine.librarian.close()
        path = index_path(runtime.engine.place)
        path.write_bytes(b"not a database" * 100)
        await run(runtime, f"{task} Is it lost?", script())  # no index, no vectors, no error
