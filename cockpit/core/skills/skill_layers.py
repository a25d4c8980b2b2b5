"""The skills of all layers: built-in, the user's, the project's; a later one replaces a former.

Folders of other agents are read where they are. A project's skill is loaded only with content that the user
has trusted, and no link of a project is followed. See ``docs/reference/skills.md``, layers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.project.project_trust import PROJECT_SKILLS, is_trusted
from cockpit.core.skills.read_skill import LARGEST_FILE, read_skill
from cockpit.core.skills.skill import SKILL_FILE, Skill, SkillInvalid

ENABLED = True
"""Whether sessions load skills. Only tests of other things set it to False."""
MOST_SKILLS = 2_000
"""Skills of one folder that are read, by name."""
MOST_FILES = 200
"""Files of one skill that are listed."""
_DEEPEST = 4
_SKIPPED = frozenset({"node_modules", "__pycache__", ".git", ".venv"})
USER_FOLDERS = (".claude/skills", ".agents/skills")
"""Folders of other agents in the user's home directory."""


class SkillPlace(Struct, frozen=True):
    """A folder of skills."""

    layer: str
    folder: Path


class Replaced(Struct, frozen=True):
    """A skill that another one of the same name takes the place of."""

    name: str
    layer: str
    """The layer of the skill that is not used."""
    by: str
    """The layer of the one that is."""
    folder: Path


class LoadedSkills(Struct, frozen=True):
    """The skills that can be used, and what became of the others."""

    skills: Mapping[str, Skill]
    """By name, in the order of names."""
    problems: tuple[str, ...] = ()
    """One sentence for each skill that is not used because it is invalid."""
    untrusted: tuple[str, ...] = ()
    """Project skills that wait for the user's trust, as paths."""
    replaced: tuple[Replaced, ...] = ()


def list_places(home: Path, user_dir: Path, user_home: Path) -> tuple[SkillPlace, ...]:
    """List the folders of skills, the first layer first; within a layer cockpit's own folder is last.

    ``home`` is the main checkout, ``user_dir`` the user's folder of cockpit, ``user_home`` the home
    directory.
    """
    built_in = Path(__file__).resolve().parents[2] / "data" / "skills"
    users = [SkillPlace("user", user_home / name) for name in USER_FOLDERS]
    if user_dir != Path():
        users.append(SkillPlace("user", user_dir / "skills"))
    projects = [SkillPlace("project", home / name) for name in PROJECT_SKILLS]
    # A home directory under version control has both: what is the project's is not the user's own.
    own = {place.folder for place in projects}
    return (
        SkillPlace("built-in", built_in),
        *(place for place in users if place.folder not in own),
        *projects,
    )


def load_skills(
    places: Sequence[SkillPlace], trusts: Callable[[Path, bytes], bool] = is_trusted
) -> LoadedSkills:
    """Read every skill of ``places``; what cannot be used is told, and stops nothing else."""
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    untrusted: list[str] = []
    replaced: list[Replaced] = []
    for place in places:
        for folder in map(Path, _list_folders(place, problems)):
            data = _read_file(folder / SKILL_FILE, place.layer, problems)
            if data is None:
                continue
            if place.layer == "project" and not trusts(folder / SKILL_FILE, data):
                untrusted.append(str(folder / SKILL_FILE))
                continue
            try:
                skill = read_skill(data, folder, place.layer, files=list_files(folder))
            except SkillInvalid as error:
                problems.append(str(error))
                continue
            before = skills.get(skill.name)
            if before is not None:
                replaced.append(Replaced(skill.name, before.layer, place.layer, before.folder))
                skill = replace(skill, replaces=before.layer)
            skills[skill.name] = skill
    return LoadedSkills(
        MappingProxyType(dict(sorted(skills.items()))),
        tuple(problems),
        tuple(untrusted),
        tuple(replaced),
    )


def read_folder(folder: Path, layer: str = "user") -> Skill:
    """Read the skill in ``folder`` alone. Raises :class:`SkillInvalid`."""
    problems: list[str] = []
    data = _read_file(folder / SKILL_FILE, layer, problems)
    if data is None:
        raise SkillInvalid(problems[0] if problems else f"There is no {SKILL_FILE} in {folder}.")
    return read_skill(data, folder, layer, files=list_files(folder))


def stamp_places(places: Sequence[SkillPlace]) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when a skill is added, changed or removed: times and sizes of files."""
    stamps: list[tuple[str, int, int]] = []
    for place in places:
        look = os.lstat if place.layer == "project" else os.stat
        for folder in _list_folders(place, []):
            path = f"{folder}/{SKILL_FILE}"
            try:
                status = look(path)
            except OSError:
                continue
            stamps.append((path, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def list_files(folder: Path) -> tuple[str, ...]:
    """List the further files of a skill by their paths in its folder, without following links."""
    return tuple(sorted(_walk(folder, "", 1)))[:MOST_FILES]


def _walk(folder: Path, before: str, depth: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[: 2 * MOST_FILES]
    except OSError:
        return
    for entry in entries:
        name = f"{before}{entry.name}"
        if entry.name in _SKIPPED or not entry.name.isprintable() or name == SKILL_FILE:
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _DEEPEST:
                yield from _walk(Path(entry.path), f"{name}/", depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield name


def _list_folders(place: SkillPlace, problems: list[str]) -> list[str]:
    """List the folders of a place that may be skills, by name."""
    is_project = place.layer == "project"
    where = str(place.folder)
    try:
        # As text: this is asked before each wave, and paths as objects take most of the time.
        if is_project and (os.path.islink(where) or os.path.islink(os.path.dirname(where))):  # noqa: PTH114, PTH120
            problems.append(f"{where} is a link; a project's skills must be its own files.")
            return []
        entries = sorted(os.scandir(where), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(f"{where} cannot be read: {error.strerror or error}.")
        return []
    folders = []
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=not is_project):
                folders.append(entry.path)
        except OSError as error:  # a link to itself, or into a folder of somebody else
            problems.append(f"{entry.path} cannot be read: {error.strerror or error}.")
    if len(folders) > MOST_SKILLS:
        problems.append(f"{where} has more than {MOST_SKILLS} skills; the rest is not read.")
    return folders[:MOST_SKILLS]


def _read_file(path: Path, layer: str, problems: list[str]) -> bytes | None:
    """Return the bytes of a plain file; None where there is none. A project's link is not followed."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if layer == "project":
        flags |= os.O_NOFOLLOW
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "is a link" if path.is_symlink() else f"cannot be read: {error.strerror or error}"
        problems.append(f"skill {path.parent.name} ({layer} layer): {SKILL_FILE} {why}.")
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            problems.append(
                f"skill {path.parent.name} ({layer} layer): {SKILL_FILE} is not a plain file."
            )
            return None
        return file.read(LARGEST_FILE + 1)
