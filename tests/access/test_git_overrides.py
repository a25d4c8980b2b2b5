"""A repository whose every setting, attribute, hook and submodule tries to run a program."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from copied_repository import begin_repository, copy_repository, git

from cockpit.access.git_overrides import Setting, safe_settings
from cockpit.access.run_program import run_gh, run_git
from cockpit.core.errors import CockpitError

pytestmark = pytest.mark.slow

ARMED = """
[core]
  fsmonitor = {core-fsmonitor}
  sshCommand = {core-sshCommand}
  pager = {core-pager}
  editor = {core-editor}
  askPass = {core-askPass}
  hooksPath = {hooks}
  alternateRefsCommand = {core-alternateRefs}
[diff]
  external = {diff-external}
  ignoreSubmodules = none
[diff "evil"]
  command = {diff-command}
  textconv = {diff-textconv}
[filter "evil"]
  clean = {filter-clean}
  smudge = {filter-smudge}
  required = true
[filter "evil.too"]
  process = {filter-process}
[merge "evil"]
  driver = {merge-driver} %A
[gpg]
  program = {gpg-program}
[log]
  showSignature = true
[alias]
  status = !{alias-status}
[credential]
  helper = {credential-helper}
[remote "origin"]
  url = ext::{remote-ext}
  fetch = +refs/heads/*:refs/remotes/origin/*
[remote "near"]
  url = {root}
  uploadpack = {remote-uploadpack}
[protocol "ext"]
  allow = always
[submodule]
  recurse = true
[submodule "sub"]
  ignore = none
"""
HOOKS = (
    "post-index-change", "reference-transaction", "post-checkout", "post-merge", "pre-merge-commit",
    "commit-msg", "post-commit", "pre-auto-gc", "prepare-commit-msg", "pre-commit",
)  # fmt: skip


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The folder where every program that ran leaves its name."""
    folder = tmp_path / "ran"
    folder.mkdir()
    return folder


@pytest.fixture
def hostile(tmp_path: Path, ran: Path) -> Path:
    """A repository with two commits, a branch to merge, a submodule, and everything armed."""
    root = copy_repository(_make_unarmed, tmp_path / "hostile")

    def program(name: str) -> str:
        path = tmp_path / "programs" / name
        path.parent.mkdir(exist_ok=True)
        reads = name.startswith(("filter", "diff-textconv"))
        ending = "cat" if reads else f"exit {int(name not in HOOKS)}"
        path.write_text(f"#!/bin/sh\ntouch {ran}/{name}\n{ending}\n")
        path.chmod(0o755)
        return str(path)

    class Programs(dict[str, str]):
        def __missing__(self, name: str) -> str:
            return program(name)

    hooks = tmp_path / "programs"
    for place in (root, root / "sub"):
        for hook in HOOKS:
            program(hook)
            inner = place / ".git" / "hooks" / hook
            inner.parent.mkdir(exist_ok=True)
            inner.write_text(f"#!/bin/sh\ntouch {ran}/{hook}\n")
            inner.chmod(0o755)
        with (place / ".git" / "config").open("a") as file:
            file.write(ARMED.format_map(Programs(hooks=str(hooks), root=str(root))))
    return root


def _make_unarmed(root: Path) -> None:
    begin_repository(root, {"a.txt": "outer\n"})
    begin_repository(root / "sub", {"a.txt": "inner\n"})
    (root / ".gitmodules").write_text(
        '[submodule "sub"]\n  path = sub\n  url = ./sub\n  ignore = none\n'
    )
    git(root, "add", ".gitmodules", "sub")
    git(root, "commit", "-q", "-m", "two")
    git(root, "checkout", "-q", "-b", "other")
    (root / "a.txt").write_text("theirs\n")
    git(root, "commit", "-q", "-am", "theirs")
    git(root, "checkout", "-q", "main")
    (root / "a.txt").write_text("ours\n")
    (root / "b.bin").write_text("b\n")
    git(root, "add", "a.txt", "b.bin")
    git(root, "commit", "-q", "-m", "three")
    (root / "sub" / "a.txt").write_text("changed within\n")
    (root / "a.txt").write_text("changed\n")
    (root / "b.bin").write_text("changed too\n")
    (root / ".gitattributes").write_text(
        "*.txt filter=evil diff=evil merge=evil\n*.bin filter=evil.too diff=evil\n"
    )


COMMANDS = (
    *("status --porcelain", "diff", "diff HEAD~1..HEAD", "diff --submodule=diff HEAD"),
    *("log -p --max-count=3", "show HEAD", "blame a.txt"),
    *("ls-files --others --modified --exclude-standard", "add a.txt b.bin", "stash create"),
    *("checkout -- a.txt", "worktree add -q --detach ../tree", "merge --no-edit other"),
    *("-c user.name=T commit --allow-empty -m x --no-gpg-sign", "fetch origin", "fetch near"),
    *("hash-object -w a.txt", "archive HEAD", "update-ref refs/heads/new HEAD", "gc --auto"),
)


async def test_no_program_of_a_repository_runs(hostile, ran):
    for command in COMMANDS:
        await run_git(*command.split(), cwd=hostile)
        assert [path.name for path in ran.iterdir()] == [], command


async def test_the_attack_works_without_the_defence(hostile: Path, ran: Path) -> None:
    """The same commands by plain git run nearly all of the programs."""
    for command in COMMANDS:
        subprocess.run(
            ["git", *command.split()],
            cwd=hostile, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
        )  # fmt: skip
    names = {path.name for path in ran.iterdir()}
    assert {"core-fsmonitor", "diff-command", "filter-clean", "filter-process"} <= names
    assert {"post-index-change", "post-checkout", "remote-uploadpack"} <= names


@pytest.mark.parametrize("name", ["a=b", ""])
async def test_odd_names_of_filters_are_switched_off_too(hostile, ran, name):
    git(hostile, "config", f"filter.{name}.clean", f"touch {ran}/odd; cat")
    value = name if " " not in name else ""
    (hostile / ".gitattributes").write_text(f"*.txt filter={value}\n")
    await run_git("add", "a.txt", cwd=hostile)
    await run_git("diff", cwd=hostile)
    assert list(ran.iterdir()) == []


async def test_a_file_that_settings_include_later_is_noticed(hostile: Path, ran: Path) -> None:
    git(hostile, "config", "include.path", "../later")
    await run_git("status", cwd=hostile)
    (hostile / "later").write_text(f'[filter "late"]\n  clean = touch {ran}/late; cat\n')
    (hostile / ".gitattributes").write_text("*.txt filter=late\n")
    await run_git("diff", "--", "a.txt", cwd=hostile)
    assert list(ran.iterdir()) == []


async def test_settings_that_cannot_be_listed_stop_git(hostile: Path, ran: Path) -> None:
    with (hostile / ".git" / "config").open("a") as file:
        file.write("[many]\n" + f"  x = {'y' * 1_000}\n" * 5_000)
    with pytest.raises(CockpitError, match="settings of git"):
        await run_git("diff", cwd=hostile)
    assert list(ran.iterdir()) == []


async def test_hooks_run_only_where_they_are_asked_for(hostile: Path, ran: Path) -> None:
    (hostile / ".gitattributes").unlink()
    done = await run_git(
        "commit", "-m", "x", "--no-gpg-sign", "--", "a.txt", cwd=hostile, hooks=True
    )
    assert done.ok
    assert {path.name for path in ran.iterdir()} <= set(HOOKS)
    assert "pre-commit" in {path.name for path in ran.iterdir()}


async def test_what_a_folder_says_of_a_submodule_does_not_count(tmp_path: Path, ran: Path) -> None:
    """Neither its commit nor its files are read from the checkout; commits are compared as they are."""
    root = begin_repository(tmp_path / "outer", {})
    inner = begin_repository(root / "sub", {})
    add = ("-c", "advice.addEmbeddedRepo=false", "add", "sub")
    git(root, *add)
    git(root, "commit", "-q", "-m", "x")
    git(inner, "commit", "-q", "--allow-empty", "-m", "y")
    git(inner, "config", "core.fsmonitor", f"touch {ran}/sub")
    (root / ".gitmodules").write_text('[submodule "sub"]\n path = sub\n ignore = none\n')
    git(root, "config", "submodule.sub.ignore", "none")
    for words in ("status --porcelain", "diff", "diff-files -p", "diff-index HEAD", "stash create"):
        done = await run_git(*words.split(), cwd=root)
        assert done.ok and "sub" not in done.text.replace("?? .gitmodules", ""), words
    assert list(ran.iterdir()) == []
    git(root, *add)
    git(root, "commit", "-q", "-m", "y")
    ends = [git(root, "rev-parse", rev).strip() for rev in ("HEAD~1", "HEAD")]
    assert "sub" in (await run_git("diff", *ends, cwd=root)).text
    assert "sub" in (await run_git("log", "-p", "-1", cwd=root)).text


async def test_the_git_that_gh_starts_is_as_careful(hostile, ran, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ngit status --porcelain\ngit diff -- a.txt\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    done = await run_gh(["gh", "pr", "view", "1"], cwd=hostile)
    assert "a.txt" in done.text
    assert list(ran.iterdir()) == []


def test_the_users_own_settings_come_back() -> None:
    settings = [
        Setting("system", "file:/etc/gitconfig", "credential.helper", "store"),
        Setting("global", "file:~/.gitconfig", "filter.lfs.clean", "git-lfs clean -- %f"),
        Setting("global", "file:~/.gitconfig", "filter.lfs.required", "true"),
        Setting("local", "file:.git/config", "filter.lfs.clean", "./evil"),
        Setting("local", "file:.git/config", "filter.other.clean", "./evil"),
        Setting("local", "file:.git/config", "credential.helper", "./evil"),
        Setting("worktree", "file:.git/config.worktree", "merge.x.driver", "./evil"),
        Setting("local", "file:.git/config", "user.name", "M"),
    ]
    assert safe_settings(settings) == [
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.other.clean", ""),
        ("credential.helper", ""),
        ("credential.helper", "store"),
        ("merge.x.driver", "git merge-file --quiet %A %O %B"),
    ]


def _worktree(root: Path) -> Path:
    git(root, "worktree", "add", "-q", "-b", "other", str(root.parent / "other"))
    return root.parent / "other"


def _aim_worktree(top: Path, evil: Path) -> None:
    (top / ".git").write_text(f"gitdir: {evil}/.git\n")


def _aim_common_folder(top: Path, evil: Path) -> None:
    (top / ".git" / "commondir").write_text(f"{evil}/.git\n")


def _replace_settings(top: Path, evil: Path) -> None:
    """As long and as old as before, in the same file."""
    config, armed = top / ".git" / "config", (evil / ".git" / "config").read_text()
    before = config.stat()
    config.write_text(config.read_text() + "#" * 400)
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))
    config.write_text(armed.ljust(config.stat().st_size, "#"))
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))


def _remove_head(top: Path, evil: Path) -> None:
    """Git takes the repository around it then."""
    shutil.copytree(evil / ".git", top.parent / ".git")
    git(top.parent, "config", "core.worktree", str(top))
    (top / ".git" / "HEAD").unlink()


@pytest.mark.parametrize(
    ("checkout", "attack"),
    [
        (_worktree, _aim_worktree),
        (Path, _aim_common_folder),
        (Path, _replace_settings),
        (Path, _remove_head),
    ],
)
async def test_a_folder_aimed_at_another_repository_runs_no_program_of_it(
    tmp_path, ran, checkout, attack
):
    top = checkout(begin_repository(tmp_path / "main", {"a.txt": "a\n"}))
    evil = begin_repository(tmp_path / "evil", {"a.txt": "a\n"})
    git(evil, "config", "filter.evil.clean", f"touch {ran}/evil; cat")
    (top / ".gitattributes").write_text("*.txt filter=evil\n")
    await run_git("status", cwd=top)
    attack(top, evil)
    for text in ("changed\n", "again\n"):
        (top / "a.txt").write_text(text)
        with contextlib.suppress(CockpitError):  # one that shares another repository is refused
            await run_git("diff", cwd=top)
        assert list(ran.iterdir()) == []
    git(top, "diff")
    assert [path.name for path in ran.iterdir()] == ["evil"]
