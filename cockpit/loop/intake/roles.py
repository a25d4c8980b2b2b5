"""Roles: who does which part of a task, as Markdown files in the layers built-in, user and project.

A file is TOML front matter between ``+++`` lines, then the Markdown that the session reads. A role states
its session's tools, its limits and the context of its first packet. A project's file may only tighten:
fewer tools, lower limits, protection of tests on. See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.model_tools import TOOLS
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import project_section
from cockpit.core.project.project_trust import is_trusted
from cockpit.core.read_record import convert
from cockpit.core.text import is_plain
from cockpit.loop.intake.task_types import LARGEST_FILE, LAYERS, fill

ROLES = ("coordinator", "implementer", "fixer", "spec_reviewer", "quality_reviewer")
"""The roles that there are; files change them and add none."""

PLACEHOLDERS = frozenset(
    {
        *("task", "title", "type", "description", "acceptance", "notes", "dod", "wip"),
        *("base", "branch", "diff", "changed_files", "failure", "tests", "findings", "attempt"),
    }
)

Context = Literal["task_files", "changed_files", "named_files"]
"""Files that the first packet holds: those the task names, those changed so far, those that a failure
names."""

_LONG = frozenset(
    {
        *("description", "acceptance", "notes", "dod", "wip"),
        *("diff", "changed_files", "failure", "findings"),
    }
)
"""Placeholders whose values are so long that a message has them once."""
_FENCE = "+++"
_NAMED = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")


class RoleInvalid(CockpitError):
    """A role file cannot be used. The message names the file and the field."""

    code = "task_type_invalid"


class Role(Struct, frozen=True):
    """One role.

    ``tools`` are the only ones that its session may call; ``max_waves`` and ``max_tokens`` end it;
    ``context`` is what its first packet holds; ``protects_tests``: it may not touch a test;
    ``gives_verdict``: its last words are read as one. ``template`` is what it is told, with
    :data:`PLACEHOLDERS`. ``project_words`` is that of a project's file, which stands fenced below it.
    """

    name: str
    tools: tuple[str, ...] = ("request_context", "finish")
    max_waves: int = 20
    max_tokens: int = 2_000_000
    context: tuple[Context, ...] = ()
    protects_tests: bool = False
    gives_verdict: bool = False
    template: str = ""
    project_words: str = ""
    source_layer: str = "built-in"

    @property
    def placeholders(self) -> frozenset[str]:
        """The placeholders whose values its first message shows."""
        shown = self.template + self.project_words
        return frozenset(match[1] for match in _NAMED.finditer(shown) if match[1])

    def words(self, values: Mapping[str, str]) -> str:
        """Return the session's first message. Placeholders without a value become empty."""
        filled = {**dict.fromkeys(PLACEHOLDERS, ""), **values}
        message = fill(self.template, filled)
        if not self.project_words:
            return message
        above = {name: "(above)" for name in _LONG if f"{{{name}}}" in self.template}
        words = fill(self.project_words, filled | above)
        return f"{message.rstrip()}\n\n{project_section(words, f'.cockpit/roles/{self.name}.md')}"


class LoadedRoles(Struct, frozen=True):
    """The roles by name, and one sentence for each file that is not used because it is invalid."""

    roles: Mapping[str, Role]
    problems: tuple[str, ...] = ()


def load_roles(project_root: Path | None, user_dir: Path | None) -> LoadedRoles:
    """All roles: built-in, then ``user_dir/roles``, then ``project_root/.cockpit/roles``.

    An invalid file is left out and is a problem: its role stays as the layers below have it.
    """
    _, user, project = LAYERS
    folders = (
        (user, user_dir / "roles" if user_dir else None),
        (project, project_root / ".cockpit" / "roles" if project_root else None),
    )
    return _load_layers(folders, _load_built_in_roles())


@cache
def _load_built_in_roles() -> LoadedRoles:
    """Load the files that are part of cockpit: once for a process, as they do not change."""
    return _load_layers(((LAYERS[0], files("cockpit") / "data" / "roles"),), LoadedRoles({}))


def _load_layers(
    folders: Iterable[tuple[str, Traversable | None]], below: LoadedRoles
) -> LoadedRoles:
    roles = dict(below.roles)
    problems = list(below.problems)
    for layer, folder in folders:
        try:
            entries = _entries(folder, layer)
        except RoleInvalid as error:
            problems.append(str(error))
            continue
        for entry in entries:
            try:
                role = _read(entry, layer, roles)
            except RoleInvalid as error:
                problems.append(str(error))
            else:
                roles[role.name] = role
    return LoadedRoles(MappingProxyType(roles), tuple(problems))


def _entries(folder: Traversable | None, layer: str) -> list[Traversable]:
    """The Markdown files of one layer's folder, by name. Raises :class:`RoleInvalid`."""
    try:
        if folder is None or not folder.is_dir():
            return []
        if layer == "project" and isinstance(folder, Path) and folder.is_symlink():
            raise RoleInvalid(
                f"{folder} is a link; a project's roles must be files of the project."
            )
        named = [entry for entry in folder.iterdir() if entry.name.endswith(".md")]
    except OSError as error:
        raise RoleInvalid(f"{folder} cannot be read: {error.strerror or error}.") from error
    return sorted(named, key=lambda entry: entry.name)


def _read(entry: Traversable, layer: str, below: Mapping[str, Role]) -> Role:
    where = f"role {entry.name} ({layer} layer)"
    front, body = _split(_text(entry, layer, where), where)
    name = front.pop("name", None)
    odd = [text for text in (name, *_list(front.get("tools"))) if not is_plain(str(text))]
    if odd:
        raise RoleInvalid(
            f"{where}: {odd[0]!r} has spaces around it, invisible characters or letters that look like "
            "others. Write it plainly."
        )
    if name not in ROLES:
        raise RoleInvalid(f"{where}: field `name` is {name!r}; it is one of {', '.join(ROLES)}.")
    start = below.get(name, Role(name))
    values: dict[str, Any] = {}
    for field, value in front.items():
        if field not in _FIELDS:
            raise RoleInvalid(f"{where}: unknown field `{field}`. Known: {', '.join(_FIELDS)}.")
        try:
            values[field] = convert(value, _FIELDS[field])
        except msgspec.ValidationError as error:
            raise RoleInvalid(f"{where}: field `{field}`: {error}") from error
    role = replace(start, **values, source_layer=layer)
    if body.strip():
        words = body.strip()
        ours = layer != "project"
        role = replace(role, template=words) if ours else replace(role, project_words=words)
    _check(role, where)
    if layer == "project":
        _only_tighter(role, start, where)
    return role


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


_FIELDS: Mapping[str, Any] = {
    "tools": tuple[str, ...],
    "max_waves": int,
    "max_tokens": int,
    "context": tuple[Context, ...],
    "protects_tests": bool,
    "gives_verdict": bool,
}


def _check(role: Role, where: str) -> None:
    tool_names = {tool.name for tool in TOOLS}
    if unknown := sorted(set(role.tools) - tool_names):
        raise RoleInvalid(
            f"{where}: there is no tool `{unknown[0]}`. There are: {', '.join(tool_names)}."
        )
    if "finish" not in role.tools:
        raise RoleInvalid(f"{where}: `tools` needs `finish`, or the role could never end.")
    if role.max_waves < 1 or role.max_tokens < 1:
        raise RoleInvalid(f"{where}: `max_waves` and `max_tokens` are 1 or more.")
    if unknown := sorted(role.placeholders - PLACEHOLDERS):
        raise RoleInvalid(
            f"{where}: unknown placeholder {{{unknown[0]}}}. Known: {', '.join(sorted(PLACEHOLDERS))}. "
            "Write {{ and }} for literal braces."
        )


def _only_tighter(role: Role, before: Role, where: str) -> None:
    looser = [
        name
        for name, wider in (
            ("tools", not set(role.tools) <= set(before.tools)),
            ("max_waves", role.max_waves > before.max_waves),
            ("max_tokens", role.max_tokens > before.max_tokens),
            ("protects_tests", before.protects_tests and not role.protects_tests),
            ("gives_verdict", before.gives_verdict and not role.gives_verdict),
        )
        if wider
    ]
    if looser:
        raise RoleInvalid(
            f"{where}: a project's file may not loosen `{looser[0]}`; set it in your user configuration."
        )


def _text(entry: Traversable, layer: str, where: str) -> str:
    """The file's words. A repository's link is not followed: it could lead out, or never end."""
    linked = layer == "project" and isinstance(entry, Path) and entry.is_symlink()
    if linked or not entry.is_file():
        raise RoleInvalid(f"{where}: is not a plain file.")
    try:
        with entry.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise RoleInvalid(f"{where}: is larger than {LARGEST_FILE} bytes.")
        if layer == "project" and isinstance(entry, Path) and not is_trusted(entry, data):
            raise RoleInvalid(f"{where}: you have not trusted its content; see `cockpit trust`.")
        return data.decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RoleInvalid(f"{where}: cannot be read as UTF-8 text: {error}") from error


def _split(text: str, where: str) -> tuple[dict[str, Any], str]:
    lines = text.split("\n")
    marks = [at for at, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if len(marks) < 2 or marks[0] != 0:
        raise RoleInvalid(
            f"{where}: the front matter is missing. Start the file with TOML between two `+++`"
            " lines."
        )
    try:
        # The empty first line makes TOML's line numbers those of the file.
        front = tomllib.loads("\n".join(["", *lines[1 : marks[1]], ""]))
    except tomllib.TOMLDecodeError as error:
        raise RoleInvalid(f"{where}: the front matter is not TOML: {error}") from error
    return front, "\n".join(lines[marks[1] + 1 :])


NOBODY = Role("", tools=("finish",), max_waves=1)
"""What a session has whose role is not known here: it can only end."""
