"""What an agent did in a worktree of its own: one proposal, taken once, discussed with words, or dropped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from agents.acp_client.acp_world import Acp
from tasks.taskrun_world import git

from cockpit.loop.runtime import runtime_over
from cockpit.store.chains import worktrees
from cockpit.store.sessions import messages, outbox
from cockpit.store.sessions.proposals import Proposal
from cockpit.tasks.git import WorktreeError

pytestmark = pytest.mark.slow


@dataclass
class Work:
    """One agent's session in a worktree of its own."""

    acp: Acp
    session: str
    root: Path

    @property
    def branch(self) -> str:
        return git(self.root, "branch", "--show-current").strip()

    def proposal(self) -> Proposal:
        (shown,) = [each for each in self.acp.pending() if each.session_id == self.session]
        return shown


async def work(acp: Acp, act: str) -> Work:
    done = await acp.run(f"do {act}", where="worktree")
    assert done.cwd != str(top(acp))
    return Work(acp, done.session_id, Path(done.cwd))


def top(acp: Acp) -> Path:
    return acp.world.place.root


def tip(acp: Acp, name: str = "HEAD") -> str:
    return git(top(acp), "rev-parse", name).strip()


def notices(acp: Acp, session: str) -> str:
    rows = acp.world.store.read_now(
        lambda seen: messages.select_for_session(seen, session, role="notice")
    )
    return "\n".join(row.text for row in rows)


async def test_committed_and_uncommitted_work_is_one_proposal_and_is_merged_once(acp: Acp) -> None:
    git(top(acp), "config", "core.hooksPath", "hooks")
    (top(acp) / "mine.txt").write_text("not committed\n", encoding="utf-8")
    done = await work(acp, "echo one > one.txt")
    shown = done.proposal()
    assert shown.kind == "action" and shown.body["type"] == "take_worktree"
    assert shown.title == f"take {done.branch} into main: +1 −0 in 1 file"
    assert shown.body["diffs"] == [{"path": "one.txt", "before": None, "after": "one\n"}]
    await acp.approve(shown)
    assert (top(acp) / "one.txt").read_text(encoding="utf-8") == "one\n"
    assert (top(acp) / "mine.txt").read_text(encoding="utf-8") == "not committed\n"
    assert git(top(acp), "log", "-1", "--format=%an").strip() == "scripted"
    actions = acp.world.store.read_now(lambda seen: outbox.select_for_session(seen, done.session))
    assert [action.phase for action in actions] == ["confirmed"]
    (row,) = acp.world.store.read_now(worktrees.select)
    assert (row.status, row.merged_commit) == ("merged", tip(acp))
    assert acp.pending() == []


async def test_a_second_agent_gets_a_worktree_of_its_own(acp: Acp) -> None:
    runs = []
    for number, name in enumerate(("here", "there"), 1):
        runs.append(acp.begin(await acp.start(f"command touch {name}.txt")))
        await acp.asked(number)
    for waiting in acp.pending():
        await acp.approve(waiting)
    first, second = [await run for run in runs]
    assert first.cwd == str(top(acp)) and (top(acp) / "here.txt").exists()
    assert (Path(second.cwd) / "there.txt").exists() and not (top(acp) / "there.txt").exists()
    assert git(Path(second.cwd), "branch", "--show-current").startswith("cockpit/scripted-")


async def test_two_agents_that_conflict(acp: Acp) -> None:
    first = await work(acp, "echo first > same.txt")
    second = await work(acp, "echo second > same.txt")
    await acp.approve(first.proposal())
    with pytest.raises(WorktreeError, match="moved"):
        await acp.approve(second.proposal())
    shown = second.proposal()
    assert shown.title.endswith("conflicts")
    assert shown.body["notes"][0] == "It conflicts with main in same.txt."
    before, status = tip(acp), git(top(acp), "status", "--porcelain")
    with pytest.raises(
        WorktreeError, match=r"conflicts with main in same\.txt; nothing was merged"
    ):
        await acp.approve(shown)
    assert (tip(acp), git(top(acp), "status", "--porcelain")) == (before, status)
    assert second.proposal().revises == shown.proposal_id


async def test_uncommitted_changes_of_the_user_are_never_touched(acp: Acp) -> None:
    done = await work(acp, "echo agent > clash.txt")
    (top(acp) / "clash.txt").write_text("mine\n", encoding="utf-8")
    before = tip(acp)
    with pytest.raises(WorktreeError, match=r"in the way \(clash\.txt\)"):
        await acp.approve(done.proposal())
    assert tip(acp) == before
    assert (top(acp) / "clash.txt").read_text(encoding="utf-8") == "mine\n"


async def test_work_that_goes_on_after_it_was_shown_is_not_merged(acp: Acp) -> None:
    done = await work(acp, "echo one > one.txt")
    (done.root / "two.txt").write_text("unseen\n", encoding="utf-8")
    before = tip(acp)
    with pytest.raises(WorktreeError, match=r"changed .* since it was shown"):
        await acp.approve(done.proposal())
    assert tip(acp) == before
    assert {diff["path"] for diff in done.proposal().body["diffs"]} == {"one.txt", "two.txt"}


class _Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("effect", ["_commit_rest", "_move_on after"])
async def test_a_kill_between_effects_is_merged_once(
    acp: Acp, monkeypatch: pytest.MonkeyPatch, effect: str
) -> None:
    from cockpit.tasks.agent_changes import merge_or_drop

    done = await work(acp, "echo one > one.txt")
    git(top(acp), "commit", "-q", "--allow-empty", "-m", "meanwhile")
    with pytest.raises(WorktreeError):
        await acp.approve(done.proposal())
    name, _, after = effect.partition(" ")
    owner = merge_or_drop._TakeAdapter
    real = getattr(owner, name)

    async def die(*words: object) -> None:
        if after:
            await real(*words)
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, die)
        with pytest.raises(_Killed):
            await acp.approve(done.proposal())
    (last,) = [
        each
        for each in acp.world.store.read_now(
            lambda seen: outbox.select_for_session(seen, done.session)
        )
        if each.phase == "dispatched"
    ]
    async with runtime_over(acp.world.store, acp.world.place, acp.runtime.engine.settings):
        pass
    ended = acp.world.store.read_now(lambda seen: outbox.load(seen, last.action_id))
    assert ended.phase == "confirmed"
    assert (top(acp) / "one.txt").read_text(encoding="utf-8") == "one\n"
    assert git(top(acp), "rev-list", "--count", "--merges", "HEAD").strip() == "1"
    assert [row.status for row in acp.world.store.read_now(worktrees.select)] == ["merged"]
    assert git(top(acp), "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.parametrize("step", ["_keep", "git"])
async def test_a_kill_at_any_step_of_a_drop_drops_once_and_keeps_the_work(
    acp: Acp, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from cockpit.tasks.agent_changes import merge_or_drop

    done = await work(acp, "echo one > one.txt; git add -A; git commit -qm one; echo two > two.txt")
    branch = done.branch
    await acp.reject(done.proposal())
    owner = merge_or_drop._DropAdapter if step == "_keep" else merge_or_drop
    real = getattr(owner, step)

    async def die(*words: object) -> None:
        if step == "git" and "branch" not in words:
            return await real(*words)
        await real(*words)
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, die)
        with pytest.raises(_Killed):
            await acp.approve(done.proposal())
    (action,) = acp.world.store.read_now(lambda seen: outbox.select_for_session(seen, done.session))
    assert action.phase == "dispatched"
    for _ in range(2):  # the second opening finds nothing left to do
        async with runtime_over(acp.world.store, acp.world.place, acp.runtime.engine.settings):
            pass
    ended = acp.world.store.read_now(lambda seen: outbox.load(seen, action.action_id))
    assert ended.phase == "confirmed", ended.last_error
    assert not done.root.exists() and git(top(acp), "branch", "--list", branch) == ""
    kept = git(top(acp), "for-each-ref", "--format=%(refname)", "refs/cockpit/dropped/").split()
    assert kept == [f"refs/cockpit/dropped/{done.session}"]
    assert git(top(acp), "show", f"{kept[0]}:one.txt") == "one"
    assert git(top(acp), "show", f"{kept[0]}:two.txt") == "two"
    assert acp.world.store.read_now(worktrees.select) == []
    assert acp.pending() == []
    assert notices(acp, done.session).count("are removed") == 1


async def test_hostile_names_and_kinds_of_files(acp: Acp) -> None:
    done = await work(
        acp,
        "mkdir -p .github/workflows tests; echo x > .github/workflows/ci.yml; echo x > tests/test_a.py;"
        " ln -s /etc/passwd link; printf 'x\\n' > \"$(printf 'a\\033[31m\\nb.txt')\";"
        " printf '\\000\\001' > binary; echo K=1 > .env; echo x > ':(top)*'; echo x > -n",
    )
    shown = done.proposal()
    notes = "\n".join(shown.body["notes"])
    assert shown.risk == "high"
    for words in (
        "Steers what runs",
        "Tests, or",
        "symbolic link: link",
        "Not drawn",
        "hold secrets",
    ):
        assert words in notes
    assert "K=1" not in str(shown.body)
    await acp.approve(shown)
    assert (top(acp) / ":(top)*").exists() and (top(acp) / "a\x1b[31m\nb.txt").exists()
    assert (top(acp) / "link").is_symlink()


async def test_a_branch_that_nobody_checked_out_is_moved(acp: Acp) -> None:
    done = await work(acp, "echo one > one.txt")
    git(top(acp), "switch", "-q", "-c", "elsewhere")
    before = tip(acp)
    await acp.approve(done.proposal())
    assert tip(acp) == before and not (top(acp) / "one.txt").exists()
    assert git(top(acp), "show", "main:one.txt") == "one"


async def test_what_it_writes_into_the_users_checkout_is_said(acp: Acp) -> None:
    done = await work(acp, f"echo one > one.txt; echo x > {top(acp)}/stray.txt")
    (said,) = [row["message"] for row in acp.rows(done.session, "runner.noted")]
    assert f"your checkout {top(acp)} changed: stray.txt." in said
