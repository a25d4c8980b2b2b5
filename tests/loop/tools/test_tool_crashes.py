"""A call that a crash cut off: one that cannot write runs again, any other asks the user."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tool_world import approve, calling, read_results, run_session, write_tool

from cockpit.decide.provider_names import provider_name
from cockpit.store.sessions import outbox
from cockpit.store.tools import approved_tools

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "arguments", "found", "phase"),
    [
        ("count_words", '{ path = "calc.py" }', "not_done", "confirmed"),
        ("add_line", '{ path = "notes.txt", line = "one" }', "unknown", "failed_terminal"),
    ],
)
async def test_nothing_that_writes_runs_twice(
    opened, script, project, monkeypatch, name, arguments, found, phase
):
    write_tool(project)
    model = script(calling(name, arguments))
    async with opened() as runtime:
        await approve(runtime)

        async def die(*_: object, **__: object) -> None:
            (project / "notes.txt").write_text("one\n")
            raise KeyboardInterrupt

        session_id = await runtime.start(
            "implement it", model=model, policy="all", interactive=False
        )
        with monkeypatch.context() as patched:
            patched.setattr("cockpit.act.own_tools.own_tool_adapter.run_child", die)
            patched.setattr("cockpit.act.dispatch_actions.current_process", lambda: "1:dead")
            with pytest.raises(KeyboardInterrupt):
                await runtime.run(session_id)
        (action,) = await runtime.store.read(lambda c: outbox.select_for_session(c, session_id))
        assert action.phase == "dispatched"
        await runtime.run(session_id)
        (action,) = await runtime.store.read(lambda c: outbox.select_for_session(c, session_id))
        probed = await runtime.store.read(
            lambda c: c.execute(
                "SELECT json_extract(detail_json, '$.found') FROM journal WHERE action='action.probed'"
            ).fetchall()
        )
        assert ((probed[0][0],), action.phase) == ((found,), phase)
        assert (project / "notes.txt").read_text() == "one\n"


async def test_a_tool_of_the_user_is_there_in_every_project(opened, script, project, tmp_path):
    folder = tmp_path / "user" / "tools"
    folder.mkdir(parents=True)
    (folder / "words.py").write_text(write_tool(project).read_text())
    async with opened() as runtime:
        await approve(runtime, place="user")
        await approve(runtime)
        usable = await runtime.store.read(runtime.engine.added.catalog.read_usable)
        # The user's names win.
        assert [(each.place, each.name) for each in usable] == [
            ("user", "add_line"),
            ("user", "count_words"),
        ]
        session = await run_session(runtime, script(calling("wc", '{ path = "calc.py" }')))
        (result,) = await read_results(runtime, session.session_id)
        assert '"words"' in result


async def test_a_skill_brings_tools(opened, project, tmp_path, monkeypatch):
    monkeypatch.setattr("cockpit.core.skills.skill_layers.ENABLED", True)
    skill = tmp_path / "user" / "skills" / "counting"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: counting\ndescription: Count words.\n---\nCount.\n")
    (skill / "scripts" / "words.py").write_text(write_tool(tmp_path / "other").read_text())
    async with opened() as runtime:
        await approve(runtime, place="skill:counting")
        usable = await runtime.store.read(runtime.engine.added.catalog.read_usable)
        assert {each.place for each in usable} == {"skill:counting"}
        (skill / "SKILL.md").unlink()
        assert await runtime.store.read(runtime.engine.added.catalog.read_usable) == ()


async def test_names_that_a_provider_cannot_tell_apart_are_not_both_offered(opened, project):
    write_tool(project)
    async with opened() as runtime:
        (first, second) = await approve(runtime)
        twins = [
            replace(first, tool_id="project:archive__search", name="archive__search"),
            replace(second, tool_id="user:archive__search", name="archive.search", place="project"),
        ]
        await runtime.store.write(
            lambda tx: [approved_tools.approve(tx, each.body(), by="person") for each in twins]
        )
        usable = await runtime.store.read(runtime.engine.added.catalog.read_usable)
        names = [provider_name(each.name) for each in usable]
        assert len(names) == len(set(names)) == 3
