"""What a checkout says of itself when a session starts: its repository on GitHub and its branch."""

from __future__ import annotations

import asyncio

from cockpit.access.git_folders import locate_git_folders, read_head
from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.intake.review_target import Repository


async def find_repository(place: ProjectPaths) -> str | None:
    """Return ``owner/name`` of the project's remote on GitHub, if there is exactly one."""
    if not place.git:
        return None
    names = await Repository(place.root).repositories()
    return next(iter(names)) if len(names) == 1 else None


async def read_branch(place: ProjectPaths) -> str:
    """Return the branch that is checked out, else the commit; empty without git or a commit."""
    if not place.git:
        return ""
    for arguments in (("symbolic-ref", "--quiet", "--short", "HEAD"), ("rev-parse", "HEAD")):
        try:
            finished = await run_git(*arguments, cwd=place.root)
        except ProgramMissing:
            return ""
        if finished.ok:
            return finished.text.strip()[:40]
    return ""


async def read_head_reference(place: ProjectPaths) -> str:
    """Return the branch of the checkout as a full reference; '' where it is on none."""
    folders = await asyncio.to_thread(locate_git_folders, place.root)
    head = None if folders is None else await asyncio.to_thread(read_head, folders)
    return head if head and head.startswith("refs/heads/") else ""
