"""Ranges of revisions, resolved to commit ids before anything else sees them."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.access.run_program import run_git
from cockpit.observe.project_files import reason
from cockpit.observe.project_snapshot import Ground, SourceFailed
from cockpit.observe.scope_items import range_parts


@dataclass(frozen=True, slots=True)
class Range:
    """Two sides of a comparison as commit ids. ``new`` None is the work tree.

    ``old`` is already the merge base when the range was written with three dots. ``single`` is True
    when one revision was named.
    """

    old: str
    new: str | None
    single: bool


async def resolve(ground: Ground, text: str) -> Range:
    """Resolve ``A..B``, ``A...B`` or ``A``. Raises :class:`SourceFailed` with a clear reason.

    ``A`` alone is A against the reviewed revision, or against the work tree when there is none.
    """
    await check_repository(ground)
    left, dots, right = range_parts(text)
    if not dots:
        return Range(await commit(ground, left), ground.rev, True)
    old = await commit(ground, left)
    new = await commit(ground, right or ground.rev or "HEAD")
    return Range(await merge_base(ground, old, new) if dots == "..." else old, new, False)


async def commit(ground: Ground, revision: str) -> str:
    """The full commit id of one revision. Raises :class:`SourceFailed`."""
    done = await run_git(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
        cwd=ground.root,
    )  # fmt: skip
    if done.ok:
        return done.text.strip()
    if not (await run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=ground.root)).ok:
        raise SourceFailed(f"{revision!r} names no commit: the repository has no commits yet")
    raise SourceFailed(f"{revision!r} names no commit of this repository")


async def check_repository(ground: Ground) -> None:
    """Raises :class:`SourceFailed` when the project is not in a git repository."""
    done = await run_git("rev-parse", "--git-dir", cwd=ground.root)
    if not done.ok:
        why = reason(done)
        plain = "the project is not a git repository"
        raise SourceFailed(plain if "not a git repository" in why else f"{plain} ({why})")


async def merge_base(ground: Ground, old: str, new: str) -> str:
    """The best common ancestor. Raises :class:`SourceFailed` when there is none."""
    done = await run_git("merge-base", old, new, cwd=ground.root)
    if not done.ok:
        raise SourceFailed(f"{old[:12]} and {new[:12]} have no commit in common; use two dots")
    return done.text.split()[0]
