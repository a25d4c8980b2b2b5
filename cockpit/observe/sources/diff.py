"""``diff:RANGE [in GLOB]``: what changed, one fact a file. The same bytes in every clone."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cockpit.access.run_program import Finished, run_git
from cockpit.access.secret_files import is_sensitive
from cockpit.core.canonical_json import text_digest
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import estimate_lines
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.path_globs import matches_glob
from cockpit.observe.preview_cost import Preview, estimate_preview
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
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
_HUNK_LINES = 7
_HEAD_LINES = 11


class DiffSource(Struct, frozen=True):
    """Compares two revisions, or one with the work tree."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By git's own counts of changed lines."""
        between = await resolve_range(ground, item.ref)
        done = await _git_diff(between, ground, "--numstat", "-z")
        lines = files = 0
        for path, added, removed in _numbers(done.stdout):
            if matches_glob(path, item.glob):
                files += 1
                changed = min(added + removed, 5_000)
                lines += changed + _HUNK_LINES * (1 + changed // 20) + _HEAD_LINES
        if not files:
            raise SourceFailed(_empty(item))
        return estimate_preview(item, estimate_lines(lines), note=pluralize(files, "file"))

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact for each changed file, in git's order (by path)."""
        between = await resolve_range(ground, item.ref)
        done = await _git_diff(between, ground, "-p")
        patch = done.stdout.decode("utf-8", "replace")
        patches = [p for p in split_patch(patch) if matches_glob(p.path, item.glob)]
        if not patches:
            raise SourceFailed(_empty(item))
        marks = {"range": item.ref, "old": between.old, "new": between.new}
        return patch_facts(item, patches, marks)


def patch_facts(
    item: ScopeItem, patches: Sequence[FilePatch], marks: dict[str, str | None]
) -> list[Fact]:
    """Facts of the files of a patch; ``marks`` tell in the provenance what was compared."""
    facts = [_patch_fact(item, patch, marks) for patch in patches[:MAX_FILES]]
    omitted = patches[MAX_FILES:]
    if omitted:
        listing = "\n".join(patch.title for patch in omitted[:MAX_FILES])
        text = f"{len(omitted)} more files changed; ask for them with `in GLOB`\n{listing}"
        facts.append(
            make_fact(
                item,
                text,
                reference=f"{len(omitted)} more files changed in {item.ref}",
                provenance={**marks, "files": len(omitted), "sha256": text_digest(text)},
                key=f"{item.ref} more",
                source_type="diff",
            )
        )
    return facts


def _patch_fact(item: ScopeItem, patch: FilePatch, marks: dict[str, str | None]) -> Fact:
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


async def _git_diff(between: RevisionRange, ground: ProjectSnapshot, *form: str) -> Finished:
    sides = (between.old,) if between.new is None else (between.old, between.new)
    done = await run_git(
        "diff", *_FLAGS, *form, "--end-of-options", *sides, "--",
        cwd=ground.root, timeout_s=60.0, max_bytes=MAX_DIFF_BYTES,
    )  # fmt: skip
    if done.truncated:
        raise SourceFailed(
            f"the diff is larger than {MAX_DIFF_BYTES // 1_000_000} MB; compare nearer revisions"
        )
    if not done.ok:
        raise SourceFailed(f"the diff could not be made: {done.reason}")
    return done


def _numbers(output: bytes) -> list[tuple[str, int, int]]:
    """Path, added and removed lines of ``--numstat -z`` (a rename's names follow as two fields)."""
    fields = output.decode("utf-8", "replace").split("\0")
    counts: list[tuple[str, int, int]] = []
    at = 0
    while at < len(fields) and fields[at]:
        added, removed, path = fields[at].split("\t", 2)
        at += 1
        if not path:
            path = fields[at + 1]
            at += 2
        counts.append((path, _count(added), _count(removed)))
    return counts


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _empty(item: ScopeItem) -> str:
    where = f" in {item.glob}" if item.glob else ""
    return f"nothing changed{where} in {item.ref}"
