"""Before an implementer begins: the worktree is set up, and the tests run once on the base."""

from __future__ import annotations

from pathlib import Path

import pytest
from taskrun_world import AT_ONCE, NOTES, PASSES, WorkSettings, World, git

CHECK = (
    "test -e node_modules/one || { echo \"Error: Cannot find module 'one'\"; exit 1; }\n"
    'test -n "$PORT" || test ! -e needs_port\n'
)


def depend_on_one(world: World) -> None:
    """Let the tests need a folder that git ignores, which the checkout has."""
    (world.root / "check.sh").write_text(CHECK, encoding="utf-8")
    (world.root / ".gitignore").write_text("node_modules/\n.env\n", encoding="utf-8")
    (world.root / "package-lock.json").write_text("{}", encoding="utf-8")
    git(world.root, "add", ".")
    git(world.root, "commit", "--quiet", "-m", "Depend on one")
    (world.root / "node_modules" / "one").mkdir(parents=True)
    (world.root / ".env").write_text("KEY=1", encoding="utf-8")
    world.work = WorkSettings(test_command="sh check.sh")


async def test_where_the_tests_cannot_run_nothing_is_paid(world: World) -> None:
    depend_on_one(world)
    ended = await world.do(AT_ONCE, world.task())
    assert ended.status == "blocked" and ended.tokens == 0
    assert "Cannot find module 'one'" in ended.summary and 'setup = "npm ci"' in ended.summary


@pytest.mark.parametrize("missing", ["node_modules", "../outside", "gone"])
async def test_links_lead_into_the_checkout_alone(world: World, missing: str) -> None:
    depend_on_one(world)
    world.work = WorkSettings(test_command="sh check.sh", link=(missing,))
    task_id = world.task()
    ended = await world.do(AT_ONCE, task_id)
    assert ended.status == ("done" if missing == "node_modules" else "blocked"), ended.summary
    assert "node_modules" not in git(world.root, "ls-tree", "-r", "--name-only", "cockpit/ch-1")


async def test_the_setup_runs_once_for_its_lock_files(world: World) -> None:
    depend_on_one(world)
    (world.root / "needs_port").write_text("", encoding="utf-8")
    setup = "mkdir -p node_modules/one && test ! -e .env && echo run >> node_modules/one/log"
    (world.root / "setup.sh").write_text(setup, encoding="utf-8")
    git(world.root, "add", ".")
    git(world.root, "commit", "--quiet", "-m", "Set up")
    world.work = WorkSettings(
        test_command="sh check.sh",
        setup=("sh setup.sh",),
        copy=(".env",),
        env={"PORT": "{port}", "NAME": "{task}"},
    )
    for title in ("Make add add", "Note it"):
        task_id = world.task(title, description="It reads .env.")
        ended = await world.do(AT_ONCE if title != "Note it" else NOTES + PASSES, task_id)
        assert ended.status == "done", ended.summary
    assert ".env" not in git(world.root, "ls-tree", "-r", "--name-only", "cockpit/ch-1").split()
    kept = next((world.place.state / "setups").glob("*/node_modules/one/log"))
    assert kept.read_text(encoding="utf-8") == "run\n"


async def test_a_copy_follows_no_link_of_the_repository(world: World) -> None:
    depend_on_one(world)
    outside = world.folder / "outside"
    git(world.root, "checkout", "--quiet", "-b", "linked")
    (world.root / "conf").symlink_to(outside)
    git(world.root, "add", ".")
    git(world.root, "commit", "--quiet", "-m", "Link")
    (world.root / "conf").unlink()
    (world.root / "conf").write_text("KEY=1", encoding="utf-8")
    world.work = WorkSettings(copy=("conf",))
    ended = await world.do(AT_ONCE, world.task())
    assert ended.status == "blocked" and "link" in ended.summary
    assert not outside.exists()


async def test_a_failing_setup_blocks_with_its_output(world: World) -> None:
    depend_on_one(world)
    world.work = WorkSettings(setup=("sh -c 'echo no network; exit 3'",))
    ended = await world.do(AT_ONCE, world.task())
    assert ended.status == "blocked" and "no network" in ended.summary


async def test_tests_that_were_red_before_are_named_and_block_nothing(world: World) -> None:
    others = Path(world.root, "test_other.py")
    others.write_text(
        "import unittest\n\n\nclass Network(unittest.TestCase):\n"
        "    def test_timeout(self):\n        self.fail()\n",
        encoding="utf-8",
    )
    git(world.root, "add", ".")
    git(world.root, "commit", "--quiet", "-m", "Test the network")
    ended = await world.do(AT_ONCE, world.task(), work=WorkSettings())
    assert ended.status == "done", ended.summary
    assert "1 test failed before the task, too: test_other.Network.test_timeout" in ended.summary
