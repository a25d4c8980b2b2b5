"""``skill:NAME[/FILE][:A-B]``: a skill's text or a file of its folder, and nothing outside of it.

See ``docs/reference/skills.md``, references.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.core.skills.skill import SKILL_FILE
from cockpit.observe.preview_cost import Preview, band_for, initial_utility
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.rendered_cost import with_cost
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.file import FileSource
from cockpit.store.context.facts import UTILITY_MAX, Fact

_SHOWN = 12
_FILES = FileSource()


class SkillSource(Struct, frozen=True):
    """Reads files in the folders of the skills that the session has."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By the size of the file."""
        inner, folder = _file_item(item, ground)
        preview = await _FILES.preview(inner, folder)
        return replace(preview, item=item, band=band_for(item.kind))

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact. Its provenance has the skill, the file, the lines and the SHA-256 of the file."""
        inner, folder = _file_item(item, ground)
        return [_of_skill(fact, item) for fact in await _FILES.fetch(inner, folder)]


def _file_item(item: ScopeItem, ground: ProjectSnapshot) -> tuple[ScopeItem, ProjectSnapshot]:
    """Return the item as one of a file, and the skill's folder as the project that has it."""
    name, _, path = item.ref.partition("/")
    folder = (ground.skills or {}).get(name)
    if folder is None:
        names = ", ".join(sorted(ground.skills or ())[:_SHOWN])
        installed = f"there are {names}" if names else "no skill is installed"
        raise SourceFailed(f"there is no skill {name!r}; {installed}")
    try:
        snapshot = ProjectSnapshot(Confined(Path(folder)))
    except PathRefused as error:
        raise SourceFailed(f"the folder of skill {name!r} cannot be read") from error
    if any(sign in path for sign in "*?["):
        raise SourceFailed(f"{str(item)!r}: name one file of the skill")
    return replace(item, kind="file", ref=path or SKILL_FILE), snapshot


def _of_skill(fact: Fact, item: ScopeItem) -> Fact:
    marks = {
        key: value for key, value in (fact.provenance or {}).items() if key not in ("path", "rev")
    }
    name, _, path = item.ref.partition("/")
    is_whole = not path and item.lines is None and item.level == "full"
    utility = initial_utility(item.kind) * fact.quality // UTILITY_MAX
    return with_cost(
        replace(
            fact,
            source_type=item.kind,
            source_ref=str(item),
            band=band_for(item.kind),
            provenance={**marks, "skill": name, "file": path or SKILL_FILE},
            # The whole skill takes the place of its line, or of its core, in the session's facts.
            dedupe_key=f"skill:{name}"
            if is_whole
            else f"skill-file:{item.ref}:{item.lines or ''}@{item.level}",
            utility=utility,
        )
    )
