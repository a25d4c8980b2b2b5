"""Places outside the project that a confined command still needs.

Interpreters and compilers often live in a home directory; hiding the home must not hide them. Only
their own directories become visible again, read-only, never those beside them with keys or mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_HOMES = (
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/registry",
    ".deno/bin",
    ".gem",
    ".goenv",
    ".linuxbrew",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/uv",
    ".nodenv",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "anaconda3",
    "go/bin",
    "go/pkg",
    "miniconda3",
    "miniforge3",
)
_REDIRECTS = ("commondir", "config.worktree", "gitdir")


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """``mounts``: git's directories and files, outermost first, each with whether it may be written;
    ``states``: cockpit's state directories, which are hidden."""

    mounts: tuple[tuple[Path, bool], ...]
    states: tuple[Path, ...]


def readable_places(
    root: Path, environment: Mapping[str, str], hidden: Iterable[Path]
) -> list[Path]:
    """List the toolchains under the ``hidden`` places, outermost first, none inside another."""
    under = tuple(hidden)
    home = Path(environment.get("HOME", "/root"))
    on_path = [Path(part) for part in environment.get("PATH", "").split(":") if part[:1] == "/"]
    beside = [root / ".venv" / "bin", root / "venv" / "bin"]
    places = [home / name for name in _HOMES]
    for directory in [*on_path, *beside]:
        if not directory.is_dir():
            continue
        if directory in on_path:
            places.append(directory)
            places += [
                above / name
                for above in directory.parents
                for name in _HOMES
                if directory.is_relative_to(above / name)
            ]
        if (directory.parent / "pyvenv.cfg").is_file() and directory in on_path:
            places.append(directory.parent)
        places += _prefixes(directory)
    return _outermost(
        place
        for place in places
        if place.is_dir()
        and any(place.is_relative_to(tree) and place != tree for tree in under)
        and not root.is_relative_to(place)
        and place != home
    )


def _prefixes(directory: Path) -> list[Path]:
    """List where the interpreters in ``directory`` are really installed."""
    prefixes = []
    for name in ("python", "python3", "node", "ruby", "perl"):
        program = directory / name
        if program.is_symlink():
            real = program.resolve()
            if real.parent.name == "bin" and (real.parent.parent / "lib").is_dir():
                prefixes.append(real.parent.parent)
    return prefixes


def _outermost(places: Iterable[Path]) -> list[Path]:
    outermost: list[Path] = []
    for place in sorted(set(places), key=lambda p: (len(p.parts), str(p))):
        if not any(place.is_relative_to(other) for other in outermost):
            outermost.append(place)
    return outermost


def git_places(root: Path) -> GitPlaces:
    """Return the git directories of the project at ``root``, a linked worktree's included."""
    dot = root / ".git"
    states = {root / ".cockpit" / "state"}
    if dot.is_symlink() or not dot.exists():
        return GitPlaces((), _there(states))
    frozen: set[Path] = set()
    if dot.is_file():
        private, common = _linked(dot)
        frozen |= {dot, private / "gitdir", private / "commondir"}
        states.add(common.parent / ".cockpit" / "state")
    else:
        private = common = dot
    for name in ("hooks", "config", "config.worktree", "modules", "worktrees"):
        frozen |= {common / name, private / name}
    writable = [place for place in (common, private) if place.is_dir()]
    if root.is_relative_to(common.parent / ".cockpit" / "state"):
        # A task's own tree: of the repository's branches only those that cockpit made may move.
        frozen |= {common / name for name in ("HEAD", "index", "info", "refs", "packed-refs")}
        writable += _there([common / "refs" / "heads" / "cockpit"])
    modes = dict.fromkeys(_there(frozen), False) | dict.fromkeys(writable, True)
    mounts = sorted(modes.items(), key=lambda mount: (len(mount[0].parts), str(mount[0])))
    return GitPlaces(tuple(mounts), _there(states))


def redirects(root: Path) -> frozenset[Path]:
    """List the existing files that send git to another configuration; none may appear during a run."""
    dot = root / ".git"
    if not dot.is_dir() or dot.is_symlink():
        private, common = _linked(dot) if dot.is_file() else (root, root)
    else:
        private = common = dot
    names = [place / name for place in {private, common} for name in _REDIRECTS]
    if private == root:
        names = [dot]
    else:
        names.append(common / "hooks")
    return frozenset(place for place in names if place.exists() or place.is_symlink())


def _linked(dot: Path) -> tuple[Path, Path]:
    """Return the private and the common git directory that a ``.git`` file leads to."""
    match = re.match(r"gitdir: (.+)", dot.read_text("utf-8", "surrogateescape"))
    private = (dot.parent / match.group(1).strip()).resolve() if match else dot.parent
    listed = private / "commondir"
    if not listed.is_file():
        return private, private
    return private, (private / listed.read_text("utf-8", "surrogateescape").strip()).resolve()


def _there(places: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(place for place in places if place.exists() and not place.is_symlink()))
