"""``log:RANGE``: the commits of a range, newest first."""

from __future__ import annotations

from msgspec import Struct

from cockpit.access.run_program import run_git
from cockpit.core.canonical_json import text_digest
from cockpit.core.text import pluralize
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, preview_facts
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.revision_ranges import check_repository, resolve_commit
from cockpit.observe.scope_items import ScopeItem, range_parts
from cockpit.store.context.facts import Fact

MAX_COMMITS = 50
"""Most commits of one log; the rest are counted."""

_FORMAT = "--format=%H%x1f%aI%x1f%an%x1f%s%x1f%b"


class LogSource(Struct, frozen=True):
    """Reads commit messages: full ids, authors' names and dates, subjects and bodies."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By reading it; the text is measured and discarded."""
        count, fact = await _read_log(item, ground)
        shown = f", the newest {MAX_COMMITS} shown" if count > MAX_COMMITS else ""
        return preview_facts(item, [fact], note=pluralize(count, "commit") + shown)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact with at most 50 commits; its outline has their subjects."""
        return [(await _read_log(item, ground))[1]]


async def _read_log(item: ScopeItem, ground: ProjectSnapshot) -> tuple[int, Fact]:
    """Return how many commits the range has, and the fact."""
    revisions = await _resolved(item, ground)
    done = await run_git(
        "log", "-z", "--no-color", "--no-show-signature", "--no-notes", "--encoding=UTF-8",
        "--topo-order", f"--max-count={MAX_COMMITS}", _FORMAT, "--end-of-options", revisions,
        "--", cwd=ground.root,
    )  # fmt: skip
    if not done.ok:
        raise SourceFailed(f"the log could not be read: {done.reason}")
    commits = [row.split("\x1f", 4) for row in done.text.split("\0") if row]
    if not commits:
        raise SourceFailed(f"there are no commits in {item.ref}")
    count = len(commits)
    if count == MAX_COMMITS:
        count = max(count, await _count(revisions, ground))
    more = count - len(commits)
    tail = [f"… {pluralize(more, 'older commit')}"] if more > 0 else []
    text = "\n\n".join([*(_whole(fields) for fields in commits), *tail])
    return count, make_fact(
        item,
        text,
        outline="\n".join([*(f"{f[0][:12]} {f[1][:10]} {f[3]}" for f in commits), *tail]),
        reference=f"log {item.ref}: {pluralize(count, 'commit')}",
        provenance={
            "range": item.ref,
            "newest": commits[0][0],
            "commits": len(commits),
            "sha256": text_digest(text),
        },
        key=item.ref,
    )


async def _resolved(item: ScopeItem, ground: ProjectSnapshot) -> str:
    """The range as one argument made of commit ids alone."""
    await check_repository(ground)
    left, dots, right = range_parts(item.ref)
    if not dots:
        return await resolve_commit(ground, left)
    oldest = await resolve_commit(ground, left)
    newest = await resolve_commit(ground, right or ground.rev or "HEAD")
    return f"{oldest}{dots}{newest}"


async def _count(revisions: str, ground: ProjectSnapshot) -> int:
    done = await run_git(
        "rev-list", "--count", "--end-of-options", revisions, "--", cwd=ground.root
    )
    if not done.ok:
        raise SourceFailed(f"the commits could not be counted: {done.reason}")
    return int(done.text)


def _whole(fields: list[str]) -> str:
    commit_id, date, author, subject, body = fields
    lines = [f"commit {commit_id}", f"author {author}", f"date {date}", "", f"    {subject}"]
    rest = body.strip("\n")
    if rest:
        lines += ["", *(f"    {line}".rstrip() for line in rest.split("\n"))]
    return "\n".join(lines)
