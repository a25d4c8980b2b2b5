"""What a command laid where git would find a repository: looked for before git runs there again.

In the sandbox a repository cannot be changed. But where there was none, a command can make one, whose
settings name programs; and a link can be turned to another place.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from cockpit.act.sandbox.git_places import find_git_places


class Mark(Struct, frozen=True):
    """What ``.git`` of a project was before a command ran."""

    kind: str
    """``none``, ``link TARGET``, ``repository``, or ``other``: git takes no notice of that one."""


def mark_repository(root: Path) -> Mark:
    """Note what ``.git`` is."""
    dot = root / ".git"
    if dot.is_symlink():
        return Mark(f"link {os.readlink(dot)}")  # noqa: PTH115 - as it is written
    if not dot.exists():
        return Mark("none")
    return Mark("other" if find_git_places(root) is None else "repository")


def set_aside_planted(root: Path, before: Mark) -> tuple[str, ...]:
    """Move what would lead git elsewhere out of its sight; returns its new names. Nothing is deleted."""
    after = mark_repository(root)
    if after == before or after.kind == "none":
        return ()
    dot, number = root / ".git", 1
    while os.path.lexists(aside := root / f".git.set-aside-{number}"):
        number += 1
    dot.rename(aside)
    if before.kind.startswith("link "):
        dot.symlink_to(before.kind.removeprefix("link "))
    return (aside.name,)
