"""What a command cannot do inside a real bubblewrap. Collected where there is one that works."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
from pathlib import Path

import pytest
from act_sandbox import RUN, run
from act_world import git, queue, show
from test_act_crash import appears, start_victim, victim_goes

from cockpit.act.adapters import ADAPTERS
from cockpit.act.dispatch_actions import Dispatcher
from cockpit.act.workspace import Workspace

pytestmark = pytest.mark.slow


async def test_a_repository_that_a_command_makes_is_set_aside_and_said(confined):
    shutil.rmtree(confined.root / ".git")
    outcome = await run(confined, "python", "-c", "import os; os.system('git init -q .')")
    assert (outcome.failure, outcome.detail["set_aside"]) == ("permanent", [".git.set-aside-1"])
    assert not (confined.root / ".git").exists()
    assert (confined.root / ".git.set-aside-1" / "config").exists()


async def test_shown_confined_never_runs_unconfined(confined: Workspace, plain: Workspace) -> None:
    proposal = await show(confined, "run", argv=["touch", "made"], reason="r")
    outcome = await RUN.perform(proposal.payload, "k", plain)
    assert outcome.failure == "conflict"
    assert not (plain.root / "made").exists()


async def test_a_command_dies_with_its_killed_cockpit(store, ids, confined):
    script = (
        "import fcntl, signal\n"
        "file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX); open('began', 'w'); signal.pause()"
    )
    proposal = await show(confined, "run", argv=["python", "-c", script], reason="r")
    queue(store, ids, "run", proposal.payload)
    victim = start_victim(store.path, confined.root, ids[1])
    victim_goes(victim)
    await appears(confined.root / "began")
    victim.kill()
    victim.communicate()
    with (confined.root / "held").open() as file:
        await asyncio.wait_for(asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX), 60)
    assert (await Dispatcher(store, confined).recover(ids[0]))[0].phase == "uncertain"


def plant_hook(root: Path, text: str) -> Path:
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(text)
    hook.chmod(0o755)
    return hook


async def test_a_commits_hooks_run_confined_and_what_they_do_to_git_stays_behind(
    confined, tmp_path
):
    root = confined.root
    secret = tmp_path / "secret"
    secret.write_text("private")
    plant_hook(
        root,
        f"#!/bin/sh\ncat {secret} && exit 1\necho formatted > new.py; git add new.py\n"
        "git config core.fsmonitor ./evil; git branch stray; echo hook ran >&2\n",
    )
    (root / "new.py").write_text("x = 1\n")
    before = (root / ".git" / "config").read_text()
    proposal = await show(confined, "git_commit", message="m", paths=["new.py"])
    assert (
        "The repository's hooks run in the sandbox, without network: pre-commit." in proposal.notes
    )
    outcome = await ADAPTERS["git_commit"].perform(proposal.payload, "k", confined)
    assert outcome.status == "success" and "hook ran" in outcome.detail["stderr"], outcome
    assert outcome.detail["left"] == ["refs/heads/stray was moved in the sandbox only"]
    assert git(root, "log", "--format=%s") == "m\nBegin\n"
    assert git(root, "show", "HEAD:new.py") == "formatted\n"
    assert (root / ".git" / "config").read_text() == before
    assert git(root, "branch", "--format=%(refname:short)") == "main\n"
    assert git(root, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("late", ["changed", "new", "manager"])
async def test_a_hook_that_is_not_as_shown_stops_the_commit(confined: Workspace, late: str) -> None:
    root = confined.root
    (root / "new.py").write_text("x = 1\n")
    if late != "new":
        plant_hook(root, "#!/bin/sh\nexit 0\n")
    proposal = await show(confined, "git_commit", message="m", paths=["new.py"])
    if late == "manager":
        (root / "lefthook.yml").write_text("pre-commit: {}\n")
    else:
        plant_hook(root, "#!/bin/sh\ntouch ran\n")
    outcome = await ADAPTERS["git_commit"].perform(proposal.payload, "k", confined)
    assert outcome.failure == "conflict" and "since this was shown" in outcome.summary
    assert not (root / "ran").exists() and git(root, "log", "--format=%s") == "Begin\n"


async def test_a_commit_whose_cockpit_dies_in_a_hook_is_made_once(store, ids, confined):
    root = confined.root
    plant_hook(root, "#!/bin/sh\n[ -e began ] && exit 0\ntouch began\nexec sleep 600\n")
    (root / "new.py").write_text("x = 1\n")
    proposal = await show(confined, "git_commit", message="m", paths=["new.py"])
    queue(store, ids, "git_commit", proposal.payload)
    victim = start_victim(store.path, root, ids[1])
    victim_goes(victim)
    await appears(root / "began")
    victim.kill()
    victim.communicate()
    (recovered,) = await Dispatcher(store, confined).recover(ids[0])
    assert recovered.phase == "queued"
    (ended,) = await Dispatcher(store, confined).run_wave(ids[1])
    assert ended.phase == "confirmed"
    assert git(root, "log", "--format=%s") == "m\nBegin\n"
