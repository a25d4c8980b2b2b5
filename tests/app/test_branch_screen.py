"""The branch of a chain on the screen: its files, commits and conflicts; merged without a shell."""

from __future__ import annotations

import pytest
from app_scenes import AFTER, BEFORE, Scene, to_decide
from app_world import look, on_screen, screen_of, settled, until
from tasks.taskrun_world import git

from cockpit.act.proposed_action import FileDiff
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.block_view import BlockView
from cockpit.app.dialogs.branch_view import BranchView, describe_branch
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.config.load_settings import load_settings
from cockpit.loop.runtime import runtime_over
from cockpit.store.chains import chains
from cockpit.store.chains.worktrees import Worktree
from cockpit.tasks.agent_changes.branch_change import Branch, BranchChange, Commit
from cockpit.tasks.agent_changes.read_change import WorktreeChange
from cockpit.tasks.worktree import ensure_chain_worktree
from widgets.proposals.diff_list import DiffList

pytestmark = pytest.mark.slow


def conflict() -> BranchChange:
    tree = Worktree(
        "ch-3", None, "ch-3", "/home/you/.local/state/cockpit/api/worktrees/ch-3", "cockpit/ch-3",
        "aaaa", "active", None, (), "", "",
    )  # fmt: skip
    change = WorktreeChange(
        base="b" * 40, tip="c" * 40, tree="d" * 40, fork="a" * 40, commits=2, uncommitted=("notes.md",),
        paths=("src/http/retry.py", "tests/test_retry.py"), added=9, removed=1,
        diffs=(
            FileDiff("src/http/retry.py", BEFORE, AFTER),
            FileDiff("tests/test_retry.py", None, "def test_retry():\n    assert after(3) == 8\n"),
        ),
        notes=("It conflicts with main in src/http/retry.py.",), risk="medium",
        conflicts=("src/http/retry.py",),
    )  # fmt: skip
    commits = (
        Commit("9f31c2e", "2026-01-05T12:00:00Z", "you", "Reset the backoff after a success"),
        Commit("1b2c3d4", "2026-01-05T11:00:00Z", "you", "Test the backoff"),
    )
    sides = (FileDiff("src/http/retry.py", BEFORE.replace("attempt", "count"), AFTER),)
    return BranchChange(
        Branch("ch-3", tree, "refs/heads/main", "a" * 40, False), change, commits, sides
    )


class Shown(BranchView):
    """A branch view of a branch that is in no repository."""

    async def action_read(self) -> None:
        self._shown = conflict()
        self.query_one(DiffList).show(tuple(describe_branch(self._shown)))


async def test_branch(still, picture):
    async with on_screen(still, size=(120, 36)) as (pilot, app, _):
        app.open_screen(Shown(app, "ch-3"))
        await until(
            pilot, lambda: isinstance(app.screen, Shown) and len(app.screen.query("FileDiff")) == 3
        )
        await picture(pilot, "branch")


async def test_block(still, project, picture):
    app = CockpitApp(still)
    scene = to_decide(Scene(still.store, project)).edit()
    scene.decide("p-action", "approved").ran("edit src/http/retry.py", "1 line changed.")
    async with app.run_test(size=(120, 36)) as pilot:
        app.attach(scene.session_id)
        await settled(pilot)
        await pilot.press("alt+c", "enter")
        await until(
            pilot, lambda: isinstance(app.screen, BlockView) and app.screen.query("FileDiff")
        )
        await picture(pilot, "block")


async def test_a_chain_s_work_is_taken_on_the_screen(still, project):
    place = still.place
    begun = await still.store.write(
        lambda tx: chains.create(
            tx, scope_kind="all", headless=True, batch="auto", approve="all", model=None, runner=None,
            max_chains=3, max_cost=None, max_wall_s=None,
            base_branch=git(project, "branch", "--show-current"),
            base_commit=git(project, "rev-parse", "HEAD"),
        )
    )  # fmt: skip
    tree = await ensure_chain_worktree(still.store, place, begun.branch, chain_id=begun.chain_id)
    work = type(project)(tree.path)
    (work / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    git(work, "config", "user.name", "T")
    git(work, "config", "user.email", "t@example.invalid")
    git(work, "commit", "--quiet", "-am", "Add")
    await still.store.write(lambda tx: chains.end(tx, begun.chain_id, "completed", "done"))
    settings = load_settings(place.folder, env={}).runtime
    async with (
        runtime_over(still.store, place, settings) as runtime,
        on_screen(runtime, size=(120, 40), ready=look) as (pilot, app, _),
    ):
        await pilot.press("alt+w")
        await until(pilot, lambda: screen_of(pilot).pane == "work")
        await pilot.press("alt+d")
        await until(
            pilot, lambda: isinstance(app.screen, BranchView) and app.screen.query("FileDiff")
        )
        await pilot.press("m")
        await until(pilot, lambda: screen_of(pilot).queue.front is not None)
        await look(pilot)
        assert screen_of(pilot).queue.front.title.startswith("take cockpit/ch-1")
        assert "a + b" not in (project / "calc.py").read_text()
        await pilot.press("enter")
        await until(pilot, lambda: "a + b" in (project / "calc.py").read_text())
        await pilot.press("alt+d")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BranchView))
        await pilot.press("x")
        await until(pilot, lambda: screen_of(pilot).queue.front is not None)
        await look(pilot)
        assert screen_of(pilot).queue.front.title.startswith("drop cockpit/ch-1")
        await pilot.press("enter")
        await until(pilot, lambda: git(project, "branch", "--list", "cockpit/ch-1") == "")
