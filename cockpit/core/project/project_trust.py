"""Trust of a project's own files: they are loaded only with contents that the user has agreed to.

Settings, task types, roles and skills come with the code, from whoever wrote it. Their digests are kept
in the user's state folder; a file that is new or changed is not loaded until the user has seen it.
Specified in ``docs/reference/security.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from cockpit.core.find_checkout import find_checkout
from cockpit.core.project_paths import OWN_FOLDER, ProjectPaths
from cockpit.core.state_folder import describe_problem

REQUIRED = True
"""Whether loading asks for trust. Only tests of other things set it to False."""
TRUST_FILE = "trust.json"
_FOLDERS = ("task-types", "roles")
PROJECT_SKILLS = (".claude/skills", ".agents/skills", ".cockpit/skills")
"""A project's folders of skills, those of other agents too; the last one has the last word."""
_SKILL_FILE = "SKILL.md"
_TOP_FOLDERS = (OWN_FOLDER, ".claude", ".agents")
_LARGEST = 1_000_001
_LARGEST_TRUST = 20_000_000
_MOST_FILES = 200


class LoadableFile(Struct, frozen=True):
    """A file of the project that cockpit would load."""

    name: str
    """Its path below ``.cockpit``; ``../PATH`` for a skill in another agent's folder."""
    digest: str
    """sha256 of its bytes."""
    text: str
    """Its content, with secrets masked."""
    before: str | None
    """The content that was trusted last; None for a file that never was."""
    trusted: bool


def list_loadable(home: Path) -> list[LoadableFile]:
    """List the files in ``.cockpit`` of the main checkout ``home`` that cockpit would load, by name."""
    folder = home / OWN_FOLDER
    paths = [folder / "config.toml"]
    for name in _FOLDERS:
        inner = folder / name
        if inner.is_dir() and not inner.is_symlink():
            paths += sorted(path for path in inner.iterdir() if path.suffix == ".md")[:_MOST_FILES]
    paths += _list_skills(home)
    agreed = _read_trust(home)
    files = []
    for path in paths:
        data = _read_plain(path)
        if data is None:
            continue
        from cockpit.core.secrets import mask  # late: most projects have no such file

        name = _name_of(path, home)
        digest, before = hashlib.sha256(data).hexdigest(), agreed.get(name)
        files.append(
            LoadableFile(
                name,
                digest,
                mask(data.decode("utf-8", "replace")),
                before["text"] if before else None,
                not REQUIRED or (before is not None and before["digest"] == digest),
            )
        )
    return files


def list_untrusted(home: Path) -> list[LoadableFile]:
    """List the files that are not loaded, because the user has not agreed to their content."""
    return [file for file in list_loadable(home) if not file.trusted] if REQUIRED else []


def is_trusted(path: Path, data: bytes) -> bool:
    """Whether the file ``path`` in a project's ``.cockpit`` may be loaded with the content ``data``."""
    if not REQUIRED:
        return True
    home = next((parent.parent for parent in path.parents if parent.name in _TOP_FOLDERS), None)
    if home is None:
        return False
    entry = _read_trust(home).get(_name_of(path, home))
    return entry is not None and entry["digest"] == hashlib.sha256(data).hexdigest()


def _name_of(path: Path, home: Path) -> str:
    """Return the name under which a file is trusted: its path below ``.cockpit``, or as ``../PATH``."""
    inside = path.relative_to(home)
    if inside.parts[0] == OWN_FOLDER:
        return inside.relative_to(OWN_FOLDER).as_posix()
    return f"../{inside.as_posix()}"


def _list_skills(home: Path) -> list[Path]:
    """List the ``SKILL.md`` files of the project's folders of skills; links are not followed."""
    paths: list[Path] = []
    for name in PROJECT_SKILLS:
        folder = home / name
        if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
            continue
        skills = sorted(path for path in folder.iterdir() if not path.is_symlink())[:_MOST_FILES]
        paths += [path / _SKILL_FILE for path in skills if path.is_dir()]
    return paths


def trust_file(place: ProjectPaths, path: Path, data: bytes) -> None:
    """Remember that the user agrees to the file ``path`` of the main checkout with the content ``data``.

    Raises ``StoreUnwritable`` and ``OSError``.
    """
    from cockpit.core.secrets import mask  # late: most projects have no such file

    name = _name_of(path, place.home)
    text = mask(data.decode("utf-8", "replace"))
    new = LoadableFile(name, hashlib.sha256(data).hexdigest(), text, None, True)
    kept = [
        LoadableFile(each, entry["digest"], entry["text"], None, True)
        for each, entry in _read_trust(place.home).items()
        if each != name
    ]
    write_trust(place, [*kept, new])


def write_trust(place: ProjectPaths, files: list[LoadableFile]) -> None:
    """Remember that the user agrees to exactly these files; an empty list revokes all.

    Raises ``StoreUnwritable`` and ``OSError``.
    """
    place.prepare()
    body = {file.name: {"digest": file.digest, "text": file.text} for file in files}
    partial = place.state / f".{TRUST_FILE}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(partial, flags, 0o600), "w", encoding="utf-8") as out:
        json.dump({"version": 1, "files": body}, out, indent=1)
    partial.replace(place.state / TRUST_FILE)


def read_trusted_names(state: Path) -> tuple[str, ...]:
    """Return the names of the files that are trusted in the project with the state folder ``state``."""
    return tuple(sorted(_read_file(state / TRUST_FILE)))


def _read_trust(home: Path) -> Mapping[str, dict[str, str]]:
    checkout = find_checkout(os.path.realpath(home))
    if checkout is None or describe_problem(checkout.state):
        return {}
    return _read_file(Path(checkout.state) / TRUST_FILE)


def _read_file(path: Path) -> Mapping[str, dict[str, str]]:
    try:
        with path.open("rb") as file:
            files = json.loads(file.read(_LARGEST_TRUST))["files"]
        return {
            str(name): {"digest": str(entry["digest"]), "text": str(entry["text"])}
            for name, entry in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _read_plain(path: Path) -> bytes | None:
    """Return the content of a plain file; None for a link or what is not a file. Loaders refuse those."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(_LARGEST) if stat.S_ISREG(os.fstat(handle).st_mode) else None
