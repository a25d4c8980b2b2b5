"""The sample project of the demo: a small repository with a branch that deserves a review."""

from __future__ import annotations

import shutil
import tomllib
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from cockpit.access.programs import run_git
from cockpit.store.errors import CockpitError


class SampleFailed(CockpitError):
    """The sample project could not be made."""

    code = "sample"


class _Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: str
    branch: str
    title: str
    author: str
    at: str
    body: str = ""
    remove: tuple[str, ...] = ()


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``sample.toml``: the project's name, what to review in it, and its history."""

    name: str
    review: str
    commit: tuple[_Commit, ...]


def _shipped() -> Traversable:
    return files("cockpit").joinpath("data").joinpath("sample")


def sample() -> Sample:
    """The sample project that is shipped."""
    text = _shipped().joinpath("sample.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Sample)


async def make(target: Path) -> Sample:
    """Make the repository in the empty folder ``target``; its commits have the same ids everywhere.

    It is left on the branch under review. Raises :class:`SampleFailed` and ``ProgramMissing``.
    """
    plan = sample()
    await _git(target, "init", "--quiet", "--initial-branch", plan.commit[0].branch)
    with as_file(_shipped()) as source:
        for commit in plan.commit:
            await _commit(target, source / commit.folder, commit)
    return plan


async def _commit(target: Path, source: Path, commit: _Commit) -> None:
    known = await run_git("branch", "--list", commit.branch, cwd=target)
    await _git(target, "checkout", "--quiet", *([] if known.text else ["-B"]), commit.branch)
    shutil.copytree(
        source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in commit.remove:
        (target / path).unlink()
    await _git(target, "add", "--all")
    name, _, address = commit.author.rstrip(">").partition(" <")
    who = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", name), ("EMAIL", address), ("DATE", commit.at))
    }
    message = commit.title + (f"\n\n{commit.body}" if commit.body else "")
    await _git(target, "commit", "--quiet", "--no-gpg-sign", "--message", message, env=who)


async def _git(target: Path, *arguments: str, env: dict[str, Any] | None = None) -> None:
    plain = ("-c", "core.autocrlf=false", "-c", "core.hooksPath=/dev/null")
    ended = await run_git(*plain, *arguments, cwd=target, env=env)
    if not ended.ok:
        raise SampleFailed(f"git {arguments[0]} failed in {target}: {ended.error_text}")
