"""``diff:RANGE [in GLOB]``: what changed, one fact a file. The same bytes in every clone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from cockpit.access.run_program import Finished, run_git
from cockpit.access.secret_files import is_sensitive
from cockpit.core.canonical_json import text_digest
from cockpit.core.text import pluralize
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.path_globs import matches_glob
from cockpit.observe.preview_cost import Preview, band_for, estimate_sum
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.rendered_cost import sum_costs
from cockpit.observe.revision_ranges import RevisionRange, resolve_range
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.split_patch import FilePatch, cut_patch, split_patch
from cockpit.store.context.facts import Fact

MAX_DIFF_BYTES = 64_000_000
MAX_FILES = 1_000
"""Most files of one diff; narrower globs reach the rest."""

_FLAGS = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--full-index",
    "-M",
    "-O/dev/null",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


class DiffSource(Struct, frozen=True):
    """Compares two revisions, or one with the work tree."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By comparing; the patches of a sample of the files are measured, and all is discarded."""
        patches, marks = await _compare(item, ground)
        tokens = await asyncio.to_thread(_estimate, item, patches, marks)
        note = pluralize(len(patches), "file")
        return Preview(item, tokens, band_for(item.kind), note=note)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact for each changed file, in git's order (by path)."""
        patches, marks = await _compare(item, ground)
        return patch_facts(item, patches, marks)


Marks = dict[str, str | None]


async def _compare(item: ScopeItem, ground: ProjectSnapshot) -> tuple[list[FilePatch], Marks]:
    between = await resolve_range(ground, item.ref)
    done = await _git_diff(between, ground)
    patch = done.stdout.decode("utf-8", "replace")
    patches = [p for p in split_patch(patch) if matches_glob(p.path, item.glob)]
    if not patches:
        where = f" in {item.glob}" if item.glob else ""
        raise SourceFailed(f"nothing changed{where} in {item.ref}")
    return patches, {"range": item.ref, "old": between.old, "new": between.new}


def patch_facts(item: ScopeItem, patches: Sequence[FilePatch], marks: Marks) -> list[Fact]:
    """Facts of the files of a patch; ``marks`` tell in the provenance what was compared."""
    facts = [_patch_fact(item, patch, marks) for patch in patches[:MAX_FILES]]
    return [*facts, *_list_omitted(item, patches, marks)]


def _list_omitted(item: ScopeItem, patches: Sequence[FilePatch], marks: Marks) -> list[Fact]:
    omitted = patches[MAX_FILES:]
    if not omitted:
        return []
    listing = "\n".join(patch.title for patch in omitted[:MAX_FILES])
    text = f"{len(omitted)} more files changed; ask for them with `in GLOB`\n{listing}"
    return [
        make_fact(
            item,
            text,
            reference=f"{len(omitted)} more files changed in {item.ref}",
            provenance={**marks, "files": len(omitted), "sha256": text_digest(text)},
            key=f"{item.ref} more",
            source_type="diff",
        )
    ]


def _estimate(item: ScopeItem, patches: Sequence[FilePatch], marks: Marks) -> int:
    def cost_at(place: int) -> int:
        return sum_costs([_patch_fact(item, patches[place], marks)])

    sizes = [len(patch.text) for patch in patches[:MAX_FILES]]
    return estimate_sum(sizes, cost_at) + sum_costs(_list_omitted(item, patches, marks))


def _patch_fact(item: ScopeItem, patch: FilePatch, marks: Marks) -> Fact:
    secret = is_sensitive(patch.path) or is_sensitive(patch.old_path or "")
    return make_fact(
        ScopeItem(item.kind, item.ref, glob=patch.path, level=item.level),
        cut_patch(patch.text),
        # A hunk's heading quotes a line of the file.
        outline=patch.title if secret else "\n".join([patch.title, *patch.hunks[:100]]),
        by_reference=secret,
        reference=f"{item.kind} {item.ref}: {patch.title}",
        provenance={
            **marks,
            "path": patch.path,
            "old_path": patch.old_path,
            "status": patch.status,
            "added": patch.added,
            "removed": patch.removed,
            "sha256": text_digest(patch.text),
        },
        key=f"{item.kind}:{item.ref}:{patch.path}",
        source_type="diff",
    )


async def _git_diff(between: RevisionRange, ground: ProjectSnapshot) -> Finished:
    sides = (between.old,) if between.new is None else (between.old, between.new)
    done = await run_git(
        "diff", *_FLAGS, "-p", "--end-of-options", *sides, "--",
        cwd=ground.root, timeout_s=60.0, max_bytes=MAX_DIFF_BYTES,
    )  # fmt: skip
    if done.truncated:
        raise SourceFailed(
            f"the diff is larger than {MAX_DIFF_BYTES // 1_000_000} MB; compare nearer revisions"
        )
    if not done.ok:
        raise SourceFailed(f"the diff could not be made: {done.reason}")
    return done
