"""Copy skills out of a folder, a checkout or a ZIP file. Nothing is run, and no link is followed.

See ``docs/reference/skills.md``, installing.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cockpit.core.skills.read_skill import read_skill
from cockpit.core.skills.skill import SKILL_FILE, Skill, SkillInvalid

MOST_FILES = 500
"""Files of one installation."""
MOST_BYTES = 20_000_000
"""Bytes of one installation."""
_DEEPEST = 6
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", ".hg", ".svn"})
_BEGIN = b"PK\x03\x04"


class SourceFile(Struct, frozen=True):
    """A file to copy: its path from the top, and its content."""

    path: PurePosixPath
    data: bytes


class InstallableSkill(Struct, frozen=True):
    """A skill that was found in the source, and its files as paths in its folder."""

    skill: Skill
    files: tuple[SourceFile, ...]


def read_source(source: Path) -> tuple[InstallableSkill, ...]:
    """Read the skills in ``source``, by name: of a skill's folder, a folder with several, or a ZIP file.

    Raises :class:`SkillInvalid` for a source without a skill, with an invalid one, with names that lead
    out, or that is too large.
    """
    if source.is_dir():
        files = list(_read_folder(source))
    elif source.is_file():
        files = _read_zip(source)
    else:
        raise SkillInvalid(f"There is no folder or ZIP file {source}.")
    tops = sorted({file.path.parent for file in files if file.path.name == SKILL_FILE})
    # A skill inside another one is a file of it.
    tops = [top for top in tops if not any(other in top.parents for other in tops)]
    if not tops:
        raise SkillInvalid(f"{source} has no {SKILL_FILE}, so there is no skill to install.")
    skills: dict[str, InstallableSkill] = {}
    for top in tops:
        inner = tuple(
            SourceFile(file.path.relative_to(top), file.data)
            for file in files
            if file.path.is_relative_to(top)
        )
        main = next(file.data for file in inner if str(file.path) == SKILL_FILE)
        name = top.name or source.resolve().stem
        listed = tuple(sorted(str(file.path) for file in inner if str(file.path) != SKILL_FILE))
        skill = read_skill(main, source, "user", files=listed, name=name)
        if skill.name in skills:
            raise SkillInvalid(
                f"{source} has two skills with the name {skill.name}. Nothing was written. Rename"
                " one."
            )
        skills[skill.name] = InstallableSkill(skill, inner)
    return tuple(skills[name] for name in sorted(skills))


def install_skill(installable: InstallableSkill, folder: Path, *, replaces: bool = False) -> Path:
    """Write a skill below ``folder`` in one step; returns its folder. Files are not executable.

    Raises :class:`SkillInvalid` where one of the name is there already, unless it ``replaces`` it, and where
    the folder cannot be written.
    """
    try:
        return _install(installable, folder, replaces=replaces)
    except OSError as error:
        raise SkillInvalid(
            f"{folder} cannot be written: {error.strerror or error}. Nothing was installed."
        ) from error


def _install(installable: InstallableSkill, folder: Path, *, replaces: bool) -> Path:
    target = folder / installable.skill.name
    if os.path.lexists(target) and not replaces:
        raise SkillInvalid(
            f"{target} is there already. Pass --replace to put this one in its place."
        )
    if target.is_symlink():
        raise SkillInvalid(f"{target} is a link. Remove it first; nothing was written.")
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{installable.skill.name}-", dir=folder))
    try:
        for file in installable.files:
            path = partial / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
            path.chmod(0o644)
        partial.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    finally:
        if partial.exists():
            shutil.rmtree(partial)
    return target


def _read_folder(source: Path) -> Iterator[SourceFile]:
    count = size = 0
    for path in _walk(source, 1):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                continue
            data = file.read(MOST_BYTES - size + 1)
        count, size = count + 1, size + len(data)
        _check_size(source, count, size)
        yield SourceFile(PurePosixPath(path.relative_to(source).as_posix()), data)


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.name in _SKIPPED or entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _DEEPEST:
                yield from _walk(Path(entry.path), depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def _read_zip(source: Path) -> list[SourceFile]:
    files: list[SourceFile] = []
    size = 0
    try:
        with source.open("rb") as opened:
            if opened.read(4) != _BEGIN:
                raise SkillInvalid(
                    f"{source} is neither a folder nor a ZIP file. Nothing was written. Name a"
                    " skill's folder, a folder of skills or a ZIP file."
                )
        with zipfile.ZipFile(source) as archive:
            for info in archive.infolist():
                path = _read_name(source, info)
                if path is None:
                    continue
                with archive.open(info) as member:
                    # Not what the archive says of its size: what really comes out.
                    data = member.read(MOST_BYTES - size + 1)
                size += len(data)
                _check_size(source, len(files) + 1, size)
                files.append(SourceFile(path, data))
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError) as error:
        raise SkillInvalid(f"{source} cannot be read: {error}.") from error
    if len({file.path for file in files}) < len(files):
        raise SkillInvalid(f"{source} has two files of one name.")
    return files


def _read_name(source: Path, info: zipfile.ZipInfo) -> PurePosixPath | None:
    """Return the path of a member; None for a folder. Raises for one that leads out, or is a link."""
    name = info.filename.replace("\\", "/")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or ":" in name.split("/")[0]:
        raise SkillInvalid(
            f"{source}: the name {name!r} leads out of the archive. Nothing was written."
        )
    if not name.isprintable():
        raise SkillInvalid(
            f"{source}: the name {name!r} has control characters. Nothing was written."
        )
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind and kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise SkillInvalid(f"{source}: {name!r} is a link or no plain file. Nothing was written.")
    if info.is_dir() or any(part in _SKIPPED for part in path.parts):
        return None
    return path


def _check_size(source: Path, count: int, size: int) -> None:
    if count > MOST_FILES or size > MOST_BYTES:
        raise SkillInvalid(
            f"{source} is larger than {MOST_FILES} files or {MOST_BYTES:,} bytes. Nothing was written."
        )
