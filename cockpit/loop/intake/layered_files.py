"""Markdown files with TOML front matter in the layers built-in, user and project: task types and roles.

A file is TOML between two ``+++`` lines, then Markdown. A later layer changes what the layers below it say. A
project's file counts once the user trusts its content, and none of its links is followed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from cockpit.core.errors import CockpitError
from cockpit.core.project.project_trust import is_trusted

LAYERS = ("built-in", "user", "project")
LARGEST_FILE = 256 * 1024
"""Bytes of a file that are read; a larger one is refused."""
_FENCE = "+++"


class LayeredFileInvalid(CockpitError):
    """A file cannot be used. The message names the file and the field."""

    code = "task_type_invalid"


class Named(Protocol):
    """What a file is about: a task type, a role."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)
Loaded = tuple[Mapping[str, T], tuple[str, ...]]
"""What files say, by name, and one sentence for each file that is not used because it is invalid."""
Read = Callable[[Traversable, str, Mapping[str, T]], T]
"""Reads a file of a layer as it applies over what the layers below say. Raises ``LayeredFileInvalid``."""


def load_built_in(folder: str, read: Read[T]) -> Loaded[T]:
    """Load the files of that folder that are part of cockpit."""
    return _load(((LAYERS[0], files("cockpit") / "data" / folder),), ({}, ()), read)


def load_layers(
    folder: str, project_root: Path | None, user_dir: Path | None, below: Loaded[T], read: Read[T]
) -> Loaded[T]:
    """Load the user's files, then the project's, over those ``below``.

    An invalid file is left out and is a problem: what it is about stays as the layers below have it.
    """
    _, user, project = LAYERS
    places = (
        (user, user_dir / folder if user_dir else None),
        (project, project_root / ".cockpit" / folder if project_root else None),
    )
    return _load(places, below, read)


def _load(
    places: Iterable[tuple[str, Traversable | None]], below: Loaded[T], read: Read[T]
) -> Loaded[T]:
    named, problems = dict(below[0]), list(below[1])
    for layer, place in places:
        try:
            entries = _list_entries(place, layer)
        except LayeredFileInvalid as error:
            problems.append(str(error))
            continue
        for entry in entries:
            try:
                each = read(entry, layer, named)
            except LayeredFileInvalid as error:
                problems.append(str(error))
            else:
                named[each.name] = each
    return MappingProxyType(dict(sorted(named.items()))), tuple(problems)


def _list_entries(place: Traversable | None, layer: str) -> list[Traversable]:
    """List the Markdown files of one layer's folder, by name."""
    try:
        if place is None or not place.is_dir():
            return []
        if layer == "project" and isinstance(place, Path) and place.is_symlink():
            raise LayeredFileInvalid(f"{place} is a link; its files must be files of the project.")
        named = [entry for entry in place.iterdir() if entry.name.endswith(".md")]
    except OSError as error:
        raise LayeredFileInvalid(f"{place} cannot be read: {error.strerror or error}.") from error
    return sorted(named, key=lambda entry: entry.name)


def read_front_matter(entry: Traversable, layer: str, where: str) -> tuple[dict[str, Any], str]:
    """Return a file's front matter and the Markdown after it; ``where`` names the file in errors."""
    lines = _read_text(entry, layer, where).replace("\r\n", "\n").split("\n")
    marks = [at for at, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if len(marks) < 2 or marks[0] != 0:
        raise LayeredFileInvalid(
            f"{where}: the front matter is missing. Start the file with TOML between two `+++`"
            " lines."
        )
    try:
        # The empty first line makes TOML's line numbers those of the file.
        front = tomllib.loads("\n".join(["", *lines[1 : marks[1]], ""]))
    except tomllib.TOMLDecodeError as error:
        raise LayeredFileInvalid(f"{where}: the front matter is not TOML: {error}") from error
    return front, "\n".join(lines[marks[1] + 1 :]).lstrip("\n")


def _read_text(entry: Traversable, layer: str, where: str) -> str:
    """Return the file's words. A repository's link is not followed: it could lead out, or never end."""
    if layer == "project" and isinstance(entry, Path) and entry.is_symlink():
        raise LayeredFileInvalid(f"{where}: is a link; a project's files must be plain files.")
    if not entry.is_file():
        raise LayeredFileInvalid(f"{where}: it is not a plain file. Put the file itself there.")
    try:
        with entry.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise LayeredFileInvalid(
                f"{where}: the file is larger than {LARGEST_FILE} bytes. Make it smaller."
            )
        if layer == "project" and isinstance(entry, Path) and not is_trusted(entry, data):
            raise LayeredFileInvalid(
                f"{where}: you have not trusted its content; see `cockpit trust`."
            )
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LayeredFileInvalid(f"{where}: cannot be read as UTF-8 text: {error}") from error
