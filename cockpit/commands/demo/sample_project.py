"""The demo's sample project: a small repository with history, made from ``cockpit/data/demo``.

Authors, dates and contents are fixed and the user's git configuration is ignored, so every copy has the
same commit ids.
"""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from cockpit.access.run_program import run_git
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert

PERSON = ("cockpit demo", "demo@cockpit.example")
"""Name and address of the sample's own git configuration, so that the user needs none."""

_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "TZ": "UTC"}


class SampleFailed(CockpitError):
    """The sample project cannot be made."""

    code = "sample"


class Sample(Struct, frozen=True):
    """A sample project: its folder, the branch to review, and the commit of ``main``."""

    root: Path
    branch: str
    main: str


class _Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    author: str
    date: str
    message: str
    files: tuple[str, ...]


class _Branch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    author: str
    patches: tuple[str, ...]


class _History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    authors: dict[str, str]
    commit: tuple[_Commit, ...]
    branch: _Branch


def shipped(*parts: str) -> Traversable:
    """Return a file or folder of the demo's data."""
    return files("cockpit").joinpath("data", "demo", *parts)


async def make_sample(root: Path) -> Sample:
    """Make the sample project in ``root``, which must be empty or new.

    ``main`` is checked out, clean. Raises :class:`SampleFailed`, and ``ProgramMissing`` without git.
    """
    history = convert(tomllib.loads(shipped("history.toml").read_text("utf-8")), _History)
    try:
        await asyncio.to_thread(_empty, root)
        await _git(root, "init", "--quiet", "--template=", "--object-format=sha1", ".")
        await _git(root, "symbolic-ref", "HEAD", "refs/heads/main")
        for name, value in zip(("user.name", "user.email"), PERSON, strict=True):
            await _git(root, "config", name, value)
        for commit in history.commit:
            await asyncio.to_thread(_lay_out, root, commit.files)
            await _git(root, "add", "--", *map(_placed, commit.files))
            who = _signed(history.authors[commit.author], commit.date)
            await _git(
                root, "commit", "--quiet", "--no-verify", "--message", commit.message, env=who
            )
        await _git(root, "checkout", "--quiet", "-b", history.branch.name)
        await _git(
            root,
            "am",
            "--quiet",
            "--keep-cr",
            "--committer-date-is-author-date",
            stdin=b"".join(shipped("branch", name).read_bytes() for name in history.branch.patches),
            env=_signed(history.authors[history.branch.author]),
        )
        await _git(root, "checkout", "--quiet", "main")
        main = await _git(root, "rev-parse", "main")
    except OSError as error:
        raise SampleFailed(
            f"The sample project cannot be made in {root}: {error.strerror or error}. "
            "Name another folder with --dir."
        ) from error
    return Sample(root, history.branch.name, main.strip())


def _empty(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise SampleFailed(
            f"{root} is not empty. Pass an empty or new folder with --dir, or leave --dir out."
        )


def _lay_out(root: Path, names: tuple[str, ...]) -> None:
    source = shipped("project")
    for name in names:
        place = root / _placed(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.joinpath(*PurePosixPath(name).parts).read_bytes())


def _placed(name: str) -> str:
    """Return the path of a shipped file in the project: packaging ignores names that begin with a dot."""
    return f".{name.removeprefix('dot-')}" if name.startswith("dot-") else name


def _signed(author: str, date: str = "") -> dict[str, str]:
    name, _, address = author.rstrip(">").partition(" <")
    fields = {"NAME": name, "EMAIL": address} | ({"DATE": date} if date else {})
    return {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in fields.items()
    }


async def _git(
    root: Path,
    *arguments: str,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    ended = await run_git(*arguments, cwd=root, stdin=stdin, env={**_ALONE, **(env or {})})
    if not ended.ok:
        git_output = ended.error_text or ended.text.strip() or f"exit status {ended.code}"
        raise SampleFailed(f"The sample project cannot be made: git {arguments[0]}: {git_output}")
    return ended.text
