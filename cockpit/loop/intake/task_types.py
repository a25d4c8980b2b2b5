"""Task types: what a kind of work needs, as Markdown files in the layers built-in, user and project.

A file is TOML front matter between ``+++`` lines, then Markdown: the template of the first user message.
TOML because its errors name a line, Python reads it without a dependency, and no value is guessed to be a
date or a truth value. A later layer overrides field by field; a body of only white space keeps the template
below it.

Placeholders are ``{name}``; ``{{`` and ``}}`` are literal braces. Filling is one pass: the text of a value is
never expanded again. See ``docs/reference/task-types.md``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

import msgspec

from cockpit.core.errors import CockpitError
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH

LAYERS = ("built-in", "user", "project")

LARGEST_FILE = 256 * 1024
"""Bytes of a task-type file that are read; a larger one is refused."""

TARGET_PLACEHOLDERS = frozenset({"number", "range", "base", "tip", "target"})
PLACEHOLDERS = TARGET_PLACEHOLDERS | {
    "subject",
    "title",
    "words",
    "tools",
    "dod",
    "orient",
    "decide",
    "author",
    "state",
    "body",
    "linked_issues",
    "files_changed",
    "file_list",
    "diff",
}

_FENCE = "+++"
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_COMMAND = re.compile(r"/[a-z][a-z0-9-]*\Z")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")

_DEFAULT_TEMPLATE = """## Task: {title}

### What Was Asked

{words}

### Tools That Help

{tools}

### Definition of Done

{dod}

### How This Goes (OODA)

**Orient (context alignment)**
{orient}

**Decide (action alignment)**
{decide}

Both loops can re-open if new information changes things.
"""


class TaskTypeInvalid(CockpitError):
    """A task-type file cannot be used. The message names the file and the field."""

    code = "task_type_invalid"


@dataclass(frozen=True, slots=True)
class TaskType:
    """One kind of work.

    ``command`` is its slash command; ``aliases`` are further slash commands (``/review``) and
    plain opening words (``review``). ``arguments`` says what follows the command, for help and
    completion. ``deterministic`` are scope items fetched without asking, ``tools`` lines of
    Markdown; an entry of either that names a placeholder this target lacks is left out, so one
    file serves a pull request and a local range. ``dod`` is the Definition of Done, one point
    each. ``orient`` and ``decide`` introduce the two inner loops; ``tools_local`` and
    ``decide_local`` stand in for ``tools`` and ``decide`` when the target is a range. ``policy`` is
    the default approval policy; ``reads_only`` types act on nothing; ``source_layer`` is the last
    layer that touched it.
    """

    name: str
    command: str = ""
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    deterministic: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    dod: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    auto_fix: bool = False
    policy: str = "ask"
    reads_only: bool = False
    orient: str = (
        "If you need more context beyond what's provided, propose what you think you need. I'll "
        "confirm, challenge, or narrow. Iterate until aligned, then fetch."
    )
    decide: str = (
        "When ready, call the tool for the action. A confirmation shows exactly what will happen: "
        "press Enter to execute, or Escape to discuss. If you escape, I'll tell you what's on my "
        "mind, you revise, and we iterate until aligned."
    )
    tools_local: tuple[str, ...] = ()
    decide_local: str = ""
    template: str = _DEFAULT_TEMPLATE
    source_layer: str = "built-in"

    @property
    def needs_target(self) -> bool:
        """True when its deterministic context is that of a pull request or a range."""
        return any(_names(item) & TARGET_PLACEHOLDERS for item in self.deterministic)

    def scope_items(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """The deterministic scope items that apply to these target values."""
        return tuple(_fitting(self.deterministic, values))

    def message(self, values: Mapping[str, str], *, local: bool = False) -> str:
        """The first user message. ``values`` may lack placeholders; they become empty."""
        numbered = "\n".join(f"{at}. {point}" for at, point in enumerate(self.dod, 1))
        tools = (self.tools_local or self.tools) if local else self.tools
        filled = {
            **dict.fromkeys(PLACEHOLDERS, ""),
            "tools": "\n".join(f"- {line}" for line in _fitting(tools, values)),
            "dod": numbered,
            "orient": self.orient,
            "decide": (self.decide_local or self.decide) if local else self.decide,
            **values,
        }
        return fill(self.template, filled)


_FIELDS = {
    name: kind
    for name, kind in get_type_hints(TaskType).items()
    if name not in {"name", "template", "source_layer"}
}


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace placeholders in one pass; a value's own braces stay as they are.

    Raises ``KeyError`` for a placeholder without a value (loading has refused unknown ones).
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        return values[name] if name else match[0][0]

    return _PLACEHOLDER.sub(value_of, template)


def load_task_types(project_root: Path | None, user_dir: Path | None) -> Mapping[str, TaskType]:
    """All task types by name, sorted: built-in, then ``user_dir/task-types``, then
    ``project_root/.cockpit/task-types``. Either may be None or missing.

    Raises :class:`TaskTypeInvalid` for a file that cannot be read, an unknown field, a wrong type,
    an unknown placeholder, or a command that two types claim.
    """
    places: tuple[Traversable | None, ...] = (
        files("cockpit") / "data" / "task-types",
        user_dir / "task-types" if user_dir else None,
        project_root / ".cockpit" / "task-types" if project_root else None,
    )
    types: dict[str, TaskType] = {}
    for layer, place in zip(LAYERS, places, strict=True):
        if place is None or not place.is_dir():
            continue
        if layer == "project" and isinstance(place, Path) and place.is_symlink():
            raise TaskTypeInvalid(
                f"{place} is a link; a project's task types must be files of the project."
            )
        for entry in sorted(place.iterdir(), key=lambda item: item.name):
            if entry.name.endswith(".md"):
                kind = _read(entry, layer, types)
                types[kind.name] = kind
    _refuse_shared_commands(types)
    return MappingProxyType(dict(sorted(types.items())))


def _read(entry: Traversable, layer: str, below: Mapping[str, TaskType]) -> TaskType:
    where = f"task type {entry.name} ({layer} layer)"
    front, body = _split(_text(entry, layer, where).replace("\r\n", "\n"), where)
    name = front.pop("name", None)
    if not isinstance(name, str) or not _NAME.match(name):
        raise TaskTypeInvalid(
            f"{where}: field `name` must be lower-case letters, digits and _, such as "
            f"`review_pr`; it is {name!r}."
        )
    values = {field: _value(field, value, where) for field, value in front.items()}
    if layer == "project" and (values.get("auto_fix") or values.get("policy", "ask") != "ask"):
        # Whoever clones a repository must not inherit approvals from it.
        raise TaskTypeInvalid(
            f"{where}: a project's file may not loosen `policy` or `auto_fix`; set them in your "
            f"user configuration."
        )
    reads_only = name in below and below[name].reads_only
    if layer == "project" and reads_only and not values.get("reads_only", True):
        raise TaskTypeInvalid(
            f"{where}: {name} only reads, and a project's file may not give it actions; loosen "
            f"`reads_only` in your user configuration, or give the new type a name of its own."
        )
    start = below.get(name) or TaskType(name=name, command="/" + name.replace("_", "-"))
    if name not in below and not values.get("dod"):
        raise TaskTypeInvalid(f"{where}: a new task type needs `dod`, its Definition of Done.")
    kind = replace(start, **values, source_layer=layer)
    if body.strip():
        kind = replace(kind, template=body)
    _check(kind, where)
    return kind


def _text(entry: Traversable, layer: str, where: str) -> str:
    """The file's words. A repository's link is not followed: it could lead out, or never end."""
    if layer == "project" and isinstance(entry, Path) and entry.is_symlink():
        raise TaskTypeInvalid(f"{where}: is a link; a project's task types must be plain files.")
    if not entry.is_file():
        raise TaskTypeInvalid(f"{where}: is no plain file.")
    try:
        with entry.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise TaskTypeInvalid(f"{where}: is larger than {LARGEST_FILE} bytes.")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskTypeInvalid(f"{where}: cannot be read as UTF-8 text: {error}") from error


def _split(text: str, where: str) -> tuple[dict[str, Any], str]:
    lines = text.split("\n")
    marks = [at for at, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if len(marks) < 2 or marks[0] != 0:
        raise TaskTypeInvalid(f"{where}: starts with TOML front matter between two `+++` lines.")
    try:
        # The empty first line makes TOML's line numbers those of the file.
        front = tomllib.loads("\n".join(["", *lines[1 : marks[1]], ""]))
    except tomllib.TOMLDecodeError as error:
        raise TaskTypeInvalid(f"{where}: the front matter is not TOML: {error}") from error
    return front, "\n".join(lines[marks[1] + 1 :]).lstrip("\n")


def _value(field: str, value: Any, where: str) -> Any:
    if field not in _FIELDS:
        names = ", ".join(sorted({"name", *_FIELDS}))
        raise TaskTypeInvalid(f"{where}: unknown field `{field}`. Known: {names}.")
    try:
        return msgspec.convert(value, type=_FIELDS[field])
    except msgspec.ValidationError as error:
        raise TaskTypeInvalid(f"{where}: field `{field}`: {error}") from error


def _check(kind: TaskType, where: str) -> None:
    for command in (kind.command, *(alias for alias in kind.aliases if alias.startswith("/"))):
        if not _COMMAND.match(command):
            raise TaskTypeInvalid(
                f"{where}: field `command` or `aliases`: {command!r} is not a slash command such "
                f"as `/review-pr`."
            )
    if kind.policy not in POLICY_WIDTH:
        raise TaskTypeInvalid(
            f"{where}: field `policy` is {kind.policy!r}; it is one of {', '.join(POLICY_WIDTH)}."
        )
    if not all(alias.strip() for alias in kind.aliases):
        raise TaskTypeInvalid(f"{where}: field `aliases`: an alias is empty.")
    for field, texts in (
        ("template", (kind.template,)),
        ("tools", kind.tools),
        ("tools_local", kind.tools_local),
        ("deterministic", kind.deterministic),
    ):
        for text in texts:
            if unknown := sorted(_names(text) - PLACEHOLDERS):
                raise TaskTypeInvalid(
                    f"{where}: field `{field}`: unknown placeholder {{{unknown[0]}}}. Known: "
                    f"{', '.join(sorted(PLACEHOLDERS))}. Write {{{{ and }}}} for literal braces."
                )


def _refuse_shared_commands(types: Mapping[str, TaskType]) -> None:
    owner: dict[str, str] = {}
    for kind in types.values():
        for word in (kind.command, *kind.aliases):
            other = owner.setdefault(word.lower(), kind.name)
            if other != kind.name:
                raise TaskTypeInvalid(
                    f"task types {other} and {kind.name} both claim {word!r}; change `command` or "
                    f"`aliases` of one."
                )


def _fitting(lines: Sequence[str], values: Mapping[str, str]) -> Iterator[str]:
    for line in lines:
        if all(values.get(name) for name in _names(line)):
            yield fill(line, values)


def _names(text: str) -> set[str]:
    return {match[1] for match in _PLACEHOLDER.finditer(text) if match[1]}
