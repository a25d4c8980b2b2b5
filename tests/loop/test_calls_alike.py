"""Equal calls of low risk in one answer wait together, and each is decided on its own."""

from __future__ import annotations

import asyncio

from loop_runs import pending, run_to_end, running, wait_until
from scenario import call, finish, turn

from cockpit.store.sessions import proposals

NEVER = 'not_called = ["write_file"]'


def notes(*paths: str, when: str = NEVER, content: str = "- note\n") -> str:
    """One answer that writes each of the files; prose is of low risk."""
    rest = (call("write_file", path=path, content=content) for path in paths[1:])
    return turn("write_file", when, path=paths[0], content=content) + "".join(rest)


def waiting(runtime) -> list[str]:
    """What waits, the oldest first, by the name of its file."""
    rows = runtime.store.read_now(proposals.select_pending)
    return [row.body["payload"]["path"] for row in rows]


async def decide(runtime, path: str, verdict: str = "approve", **fields) -> None:
    rows = runtime.store.read_now(proposals.select_pending)
    row = next(each for each in rows if each.body["payload"]["path"] == path)
    await getattr(runtime, verdict)(row.proposal_id, shown_digest=row.shown_digest, **fields)


async def test_they_wait_together_and_run_in_their_order(runtime, project, script):
    model = script(notes("a.md", "b.md", "c.md") + finish('called = ["write_file"]'))
    async with running(runtime, model) as (_, work):
        await pending(runtime)
        assert waiting(runtime) == ["a.md", "b.md", "c.md"]
        for path in ("c.md", "b.md"):
            await decide(runtime, path)
        assert not (project / "b.md").exists(), "what stands before it is not decided"
        await decide(runtime, "a.md")
        ended = await asyncio.wait_for(work, 60)
        assert ended.result["status"] == "done"
        assert {path.name for path in project.glob("*.md")} == {"a.md", "b.md", "c.md"}


async def test_what_the_first_decides_ends_the_rest(runtime, project, script):
    again = notes("a.md", when='contains = ["wants to discuss"]', content="- better\n")
    async with running(runtime, script(notes("a.md", "b.md") + again)):
        await pending(runtime)
        await decide(runtime, "a.md", "discuss", words="say more")
        assert await wait_until(runtime, lambda: waiting(runtime) == ["a.md"] or None)
        (row,) = runtime.store.read_now(proposals.select_pending)
        before = runtime.store.read_now(lambda c: proposals.load(c, row.revises))
        assert before.reason == "say more", "the new one answers what was discussed"
        assert not list(project.glob("*.md"))


async def test_one_that_differs_in_its_turn_is_asked_about_again(runtime, project, script):
    model = script(notes("a.md", "sub/b.md"))
    async with running(runtime, model):
        await pending(runtime)
        assert waiting(runtime) == ["a.md", "sub/b.md"]
        await decide(runtime, "sub/b.md")  # as it was shown, it would make the folder
        (project / "sub").mkdir()
        await decide(runtime, "a.md")
        assert await wait_until(runtime, lambda: waiting(runtime) == ["sub/b.md"] or None)
        assert not (project / "sub" / "b.md").exists()


async def test_others_wait_for_their_turn(opened, script):
    for answer in (
        notes("a.md", "a.md"),  # the second changes what the first made
        notes("sub/a.md", "sub/b.md"),  # both would make the folder
        notes("a.md", "calc.py", "b.md"),  # code is of medium risk
        notes("calc.py", "a.md"),
        notes("a.md", "../b.md"),  # refused
        notes("a.md") + call("run", argv=["true"], reason="look") + notes("b.md"),
    ):
        async with opened() as runtime, running(runtime, script(answer)):
            await pending(runtime)
            assert len(waiting(runtime)) == 1, answer


async def test_without_a_user_at_the_screen_each_has_its_own_deadline(runtime, script):
    model = script(notes("a.md", "b.md"))
    work = asyncio.create_task(run_to_end(runtime, model, policy="ask"))
    await pending(runtime)
    assert waiting(runtime) == ["a.md"]
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
