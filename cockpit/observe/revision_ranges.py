"""Ranges of revisions, resolved to commit ids before any other code uses them."""

from __future__ import annotations

from msgspec import Struct

from cockpit.access.git_folders import is_bare
from cockpit.access.run_program import run_git
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import range_parts


class RevisionRange(Struct, frozen=True):
    """The two sides of a comparison as commit ids; ``new`` None is the worktree.

    ``old`` is already the merge base when the range was written with three dots, or between two branches.
    ``single`` is True when one revision was named.
    """

    old: str
    new: str | None
    single: bool


async def resolve_range(ground: ProjectSnapshot, text: str) -> RevisionRange:
    """Resolve ``A..B``, ``A...B`` or ``A``. Raises :class:`SourceFailed` with the reason.

    ``A`` alone compares A with the reviewed revision or, if there is none, with the worktree. Between two
    branches two dots mean what three do: what A has gained since they parted is no change of B.
    """
    await check_repository(ground)
    left, dots, right = range_parts(text)
    if not dots:
        return RevisionRange(await resolve_commit(ground, left), ground.rev, True)
    old = await resolve_commit(ground, left)
    new = await resolve_commit(ground, right or ground.rev or "HEAD")
    if dots == "..." or (await _is_branch(ground, left) and await _is_branch(ground, right)):
        old = await find_merge_base(ground, old, new)
    return RevisionRange(old, new, False)


async def _is_branch(ground: ProjectSnapshot, name: str) -> bool:
    """Whether a side of a range is a branch; a side that is left out is HEAD, which is one."""
    if name in ("", "HEAD"):
        return True
    if name.startswith("-"):
        return False
    done = await run_git("rev-parse", "--symbolic-full-name", name, cwd=ground.root)
    return done.ok and done.text.startswith(("refs/heads/", "refs/remotes/"))


async def resolve_commit(ground: ProjectSnapshot, revision: str) -> str:
    """Resolve one revision to its full commit id. Raises :class:`SourceFailed`."""
    done = await run_git(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
        cwd=ground.root,
    )  # fmt: skip
    if done.ok:
        return done.text.strip()
    if not (await run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=ground.root)).ok:
        raise SourceFailed(f"{revision!r} names no commit: the repository has no commits yet")
    raise SourceFailed(f"{revision!r} names no commit of this repository")


async def check_repository(ground: ProjectSnapshot) -> None:
    """Raise :class:`SourceFailed` when the project is not in a git repository."""
    done = await run_git("rev-parse", "--git-dir", cwd=ground.root)
    if not done.ok:
        why = done.reason
        kind = "a bare" if is_bare(ground.root) else "not a git"
        plain = f"the project is {kind} repository"
        raise SourceFailed(plain if "not a git repository" in why else f"{plain} ({why})")


async def find_merge_base(ground: ProjectSnapshot, old: str, new: str) -> str:
    """Find the best common ancestor. Raises :class:`SourceFailed` when there is none."""
    done = await run_git("merge-base", old, new, cwd=ground.root)
    if not done.ok:
        raise SourceFailed(f"{old[:12]} and {new[:12]} have no commit in common; use two dots")
    return done.text.split()[0]
