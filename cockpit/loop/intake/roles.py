"""Roles: who does which part of a task, as Markdown files in the layers built-in, user and project.

A file is TOML front matter between ``+++`` lines, then the Markdown that the session reads. A role states
its session's tools, its limits and the context of its first packet. A project's file may only tighten:
fewer tools, lower limits, protection of tests on. See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.model_tools import TOOLS
from cockpit.core.fenced_text import project_section
from cockpit.core.read_record import convert
from cockpit.core.text import is_plain
from cockpit.loop.intake.layered_files import (
    LayeredFileInvalid,
    Loaded,
    load_built_in,
    load_layers,
    read_front_matter,
)
from cockpit.loop.intake.task_types import fill

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
_NAMED = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")


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
    return LoadedRoles(*load_layers("roles", project_root, user_dir, _load_built_in_roles(), _read))


@cache
def _load_built_in_roles() -> Loaded[Role]:
    """Load the files that are part of cockpit: once for a process, as they do not change."""
    return load_built_in("roles", _read)


def _read(entry: Traversable, layer: str, below: Mapping[str, Role]) -> Role:
    where = f"role {entry.name} ({layer} layer)"
    front, body = read_front_matter(entry, layer, where)
    name = front.pop("name", None)
    odd = [text for text in (name, *_list(front.get("tools"))) if not is_plain(str(text))]
    if odd:
        raise LayeredFileInvalid(
            f"{where}: {odd[0]!r} has spaces around it, invisible characters or letters that look like "
            "others. Write it plainly."
        )
    if name not in ROLES:
        raise LayeredFileInvalid(
            f"{where}: field `name` is {name!r}; it is one of {', '.join(ROLES)}."
        )
    start = below.get(name, Role(name))
    values: dict[str, Any] = {}
    for field, value in front.items():
        if field not in _FIELDS:
            raise LayeredFileInvalid(
                f"{where}: unknown field `{field}`. Known: {', '.join(_FIELDS)}."
            )
        try:
            values[field] = convert(value, _FIELDS[field])
        except msgspec.ValidationError as error:
            raise LayeredFileInvalid(f"{where}: field `{field}`: {error}") from error
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
        raise LayeredFileInvalid(
            f"{where}: there is no tool `{unknown[0]}`. There are: {', '.join(tool_names)}."
        )
    if "finish" not in role.tools:
        raise LayeredFileInvalid(f"{where}: `tools` needs `finish`, or the role could never end.")
    if role.max_waves < 1 or role.max_tokens < 1:
        raise LayeredFileInvalid(f"{where}: `max_waves` and `max_tokens` are 1 or more.")
    if unknown := sorted(role.placeholders - PLACEHOLDERS):
        raise LayeredFileInvalid(
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
        raise LayeredFileInvalid(
            f"{where}: a project's file may not loosen `{looser[0]}`; set it in your user configuration."
        )


NOBODY = Role("", tools=("finish",), max_waves=1)
"""What a session has whose role is not known here: it can only end."""
