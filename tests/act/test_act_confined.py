"""What a command cannot do inside a real bubblewrap. Collected where there is one that works."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from pathlib import Path

import pytest
from act_sandbox import RUN, run, said
from act_world import environment, git, queue, show
from test_act_crash import Ids, appears, start_victim, victim_goes

from cockpit.act.adapters import ADAPTERS
from cockpit.act.dispatch_actions import Dispatcher
from cockpit.act.workspace import Workspace, open_workspace
from cockpit.store.db.database import Store


async def test_home_network_tmp_and_system_are_out_of_reach(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("private")
    secret_tmp = Path("/tmp") / f"cockpit-test-{os.getpid()}"
    secret_tmp.write_text("other people's")
    mine = Path("/tmp") / f"cockpit-mine-{os.getpid()}"
    ground = await open_workspace(project, environment={**environment(), "HOME": str(home)})
    try:
        script = (
            "import os, socket, pathlib\n"
            f"print(os.path.exists({str(home / '.ssh')!r}), os.path.exists({str(secret_tmp)!r}))\n"
            "print(os.listdir('/run') if os.path.isdir('/run') else [])\n"
            "for place in ('/etc/x', '/usr/x'):\n"
            "    try: open(place, 'w'); print('written')\n"
            "    except OSError: print('refused')\n"
            "try: socket.create_connection(('192.0.2.1', 80), 5); print('connected')\n"
            "except OSError as e: print('no network')\n"
            f"pathlib.Path({str(mine)!r}).write_text('x'); print(os.environ['TMPDIR'])\n"
        )
        outcome = await run(ground, "python", "-c", script)
    finally:
        secret_tmp.unlink()
    assert said(outcome).splitlines() == [
        "False False", "[]", "refused", "refused", "no network", "/tmp",
    ]  # fmt: skip
    assert not mine.exists()


@pytest.mark.parametrize(
    "script",
    [
        "echo evil >> .git/config",
        "git config core.fsmonitor ./evil",
        "echo evil > .git/hooks/pre-commit",
        "mv .git .away",
        "rm -rf .git/hooks && mkdir .git/hooks",
        "mkdir -p .cockpit/state && echo x > .cockpit/state/cockpit.db",
        "mkdir evil && echo ../evil > .git/commondir",
        "echo '[core]' > .git/config.worktree",
        "rm -rf .git/hooks; ln -s ../evil .git/hooks",
    ],
)
async def test_git_and_cockpit_cannot_be_redirected(confined: Workspace, script: str) -> None:
    root = confined.root
    (root / ".cockpit/state").mkdir(parents=True)
    (root / ".cockpit/state/cockpit.db").write_text("the store")
    (root / ".git/hooks").mkdir(exist_ok=True)
    config = (root / ".git/config").read_text()
    hooks = sorted(path.name for path in (root / ".git/hooks").iterdir())
    await run(confined, "python", "-c", f"import os; os.system({script!r})")
    assert (root / ".git/config").read_text() == config
    assert sorted(path.name for path in (root / ".git/hooks").iterdir()) == hooks
    assert (root / ".cockpit/state/cockpit.db").read_text() == "the store"
    assert not (root / ".git/commondir").exists() and not (root / ".git/config.worktree").exists()
    assert git(root, "log", "--format=%s") == "Begin\n"


async def test_a_repository_that_a_command_makes_is_set_aside_and_said(
    confined: Workspace,
) -> None:
    shutil.rmtree(confined.root / ".git")
    outcome = await run(confined, "python", "-c", "import os; os.system('git init -q .')")
    assert (outcome.failure, outcome.detail["set_aside"]) == ("permanent", [".git.set-aside-1"])
    assert not (confined.root / ".git").exists()
    assert (confined.root / ".git.set-aside-1" / "config").exists()


async def test_a_linked_worktree_works_and_its_main_checkout_is_read_only(
    confined: Workspace, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    git(confined.root, "worktree", "add", "-q", "-b", "side", str(tree))
    (confined.root / ".cockpit/state").mkdir(parents=True)
    (confined.root / ".cockpit/state/cockpit.db").write_text("the store")
    ground = await open_workspace(tree)
    (tree / "app.py").write_text("changed\n")
    assert (await run(ground, "git", "add", "app.py")).status == "success"
    assert git(tree, "diff", "--cached", "--name-only") == "app.py\n"
    script = (
        "import pathlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(pathlib.Path(name).read_text()[:9]); pathlib.Path(name).write_text('x')\n"
        "    except OSError: print('refused')\n"
    )
    main = confined.root
    names = [f"{main}/.cockpit/state/cockpit.db", f"{main}/.git/config", f"{tree}/.git"]
    outcome = await run(ground, "python", "-c", script, *names)
    assert said(outcome).count("refused") == 3
    assert "the store" not in said(outcome)
    assert (main / ".cockpit/state/cockpit.db").read_text() == "the store"
    assert (tree / ".git").read_text().startswith("gitdir: ")


async def test_nothing_outlives_a_command(confined: Workspace) -> None:
    held = confined.root / "held"
    child = (
        "import fcntl, os, signal\n"
        "file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX)\n"
        "os.write(1, b'held'); os.close(1); signal.pause()\n"
    )
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE,"
        " stderr=subprocess.DEVNULL, start_new_session=True)\n"
        "print(child.stdout.read())\n"
    )
    outcome = await run(confined, "python", "-c", script)
    assert said(outcome) == "b'held'\n"
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while the child lives


async def test_shown_confined_never_runs_unconfined(confined: Workspace, plain: Workspace) -> None:
    proposal = await show(confined, "run", argv=["touch", "made"], reason="r")
    outcome = await RUN.perform(proposal.payload, "k", plain)
    assert outcome.failure == "conflict"
    assert not (plain.root / "made").exists()


async def test_a_command_dies_with_its_killed_cockpit(
    store: Store, ids: Ids, confined: Workspace
) -> None:
    script = (
        "import fcntl, signal\n"
        "file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX); open('began', 'w'); signal.pause()"
    )
    proposal = await show(confined, "run", argv=["python", "-c", script], reason="r")
    queue(store, ids, "run", proposal.payload)
    victim = start_victim(store, confined.root, ids[1], "race")
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
    confined: Workspace, tmp_path: Path
) -> None:
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


async def test_a_commit_whose_cockpit_dies_in_a_hook_is_made_once(
    store: Store, ids: Ids, confined: Workspace
) -> None:
    root = confined.root
    plant_hook(root, "#!/bin/sh\n[ -e began ] && exit 0\ntouch began\nexec sleep 600\n")
    (root / "new.py").write_text("x = 1\n")
    proposal = await show(confined, "git_commit", message="m", paths=["new.py"])
    queue(store, ids, "git_commit", proposal.payload)
    victim = start_victim(store, root, ids[1], "race")
    victim_goes(victim)
    await appears(root / "began")
    victim.kill()
    victim.communicate()
    (recovered,) = await Dispatcher(store, confined).recover(ids[0])
    assert recovered.phase == "queued"
    (ended,) = await Dispatcher(store, confined).run_wave(ids[1])
    assert ended.phase == "confirmed"
    assert git(root, "log", "--format=%s") == "m\nBegin\n"


async def test_a_project_that_contains_the_home_says_that_it_is_not_hidden(project: Path) -> None:
    ground = await open_workspace(
        project, environment={**environment(), "HOME": str(project / "me")}
    )
    proposal = await show(ground, "run", argv=["ls"], reason="r")
    assert any("contains your home directory" in note for note in proposal.notes)
