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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.fenced_text import project_section
from cockpit.core.read_record import convert
from cockpit.core.text import is_plain, mixes_scripts
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH
from cockpit.loop.intake.layered_files import (
    LayeredFileInvalid,
    Loaded,
    load_built_in,
    load_layers,
    read_front_matter,
)
from cockpit.loop.intake.merge_task_types import ADDED, EXTENDABLE, MergeRefused, merge_values
from cockpit.loop.intake.project_lines import (
    bullet_lines,
    new_lines,
    number_lines,
    show_lines,
)
from cockpit.observe.scope_items import ScopeRefused, parse_item

NARROWEST = "ask"
"""The only approval policy that a project's file may set."""

TARGET_PLACEHOLDERS = frozenset({"number", "range", "base", "tip", "target"})
"""What a review is about: a pull request or a range."""
BRANCH_PLACEHOLDERS = frozenset({"branch", "base_branch"})
"""The current branch, and the branch that its changes go into."""
LISTED_PLACEHOLDERS = frozenset({"issue", "file"})
"""Issues (``#7``) and files (``@src/app.py``) that the user names; an entry is read once for each."""
PLACEHOLDERS = (
    TARGET_PLACEHOLDERS
    | BRANCH_PLACEHOLDERS
    | LISTED_PLACEHOLDERS
    | {
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
)

LONG_PLACEHOLDERS = frozenset(
    {
        *("words", "tools", "dod", "orient", "decide"),
        *("body", "linked_issues", "files_changed", "file_list", "diff"),
    }
)
"""Placeholders whose values are so long that a message has them once."""

OPTIONAL = "?"
"""The sign before a scope item that is read where it can be, and left out otherwise."""

_SAMPLES = {
    **dict.fromkeys(PLACEHOLDERS, "main"),
    "number": "1",
    "issue": "1",
    "range": "main..topic",
}
"""Values with which an entry of ``deterministic`` is checked before any task starts."""
_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_COMMAND = re.compile(r"/[a-z][a-z0-9-]*\Z")
_SHOWN = (
    *("dod", "tools", "tools_local", "orient", "decide", "decide_local"),
    *("non_negotiables", "context_hints"),
)
"""Fields whose text stands in the first message."""
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


class TaskType(Struct, frozen=True):
    """One kind of work.

    ``command`` is its slash command; ``aliases`` are further slash commands (``/review``) and
    plain opening words (``review``). ``arguments`` says what follows the command, for help and
    completion. ``deterministic`` are scope items fetched without asking (:data:`OPTIONAL` before one
    that may be missing), ``tools`` lines of Markdown; an entry of either that names a placeholder this
    target lacks is left out, so one file serves a pull request and a local range. ``dod`` is the
    Definition of Done, one point each. ``orient`` and ``decide`` introduce the two inner loops;
    ``tools_local`` and ``decide_local`` stand in for ``tools`` and ``decide`` when the target is a range.
    ``policy`` is the approval policy of its sessions ('' leaves it to the configuration); ``reads_only``
    types act on nothing; ``expects_change`` types are done only with a change of files, which of blank
    lines and spaces at line ends alone counts with ``blank_change_counts``;
    ``skills`` are patterns of the skills that its tasks may load by themselves (none: all), to which a
    project's file adds patterns that must match as well (``project_skills``);
    ``non_negotiables`` are rules that every task keeps, ``context_hints`` say where things are; the layers
    add to both. ``project_words`` is the template of a project's file: it is fenced below the message, and
    what the message has already is not repeated in it. ``project_lines`` are the texts that a project's file
    brought into what a message shows: they stand fenced too. ``source_layer`` is the last layer that
    touched it.
    """

    name: str
    command: str = ""
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    deterministic: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    dod: tuple[str, ...] = ()
    auto_fix: bool = False
    policy: str = ""
    reads_only: bool = False
    expects_change: bool = True
    blank_change_counts: bool = False
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
    skills: tuple[str, ...] = ()
    project_skills: tuple[str, ...] = ()
    non_negotiables: tuple[str, ...] = ()
    context_hints: tuple[str, ...] = ()
    template: str = _DEFAULT_TEMPLATE
    project_words: str = ""
    project_lines: tuple[str, ...] = ()
    source_layer: str = "built-in"

    @property
    def needs_target(self) -> bool:
        """True when its deterministic context is that of a pull request or a range."""
        return bool(self._required & TARGET_PLACEHOLDERS)

    @property
    def must_change(self) -> bool:
        """Whether a task of this type is not done while its branch has no change."""
        return self.expects_change and not self.reads_only

    @property
    def placeholders(self) -> frozenset[str]:
        """The placeholders whose values its first message shows."""
        return frozenset(_names(self.template + self.project_words))

    @property
    def needs_issue(self) -> bool:
        """True when its deterministic context is that of one issue on GitHub."""
        return "issue" in self._required

    @property
    def needs_branch(self) -> bool:
        """True when its deterministic context is the current branch's."""
        return bool(self._required & BRANCH_PLACEHOLDERS)

    @property
    def _required(self) -> set[str]:
        """The placeholders of the context that must be there."""
        required = [item for item in self.deterministic if not item.startswith(OPTIONAL)]
        return {name for item in required for name in _names(item)}

    def scope_items(
        self,
        values: Mapping[str, str],
        listed: Mapping[str, Sequence[str]] = _NOTHING,
        *,
        only: str | None = None,
    ) -> tuple[str, ...]:
        """The deterministic scope items that apply to these target values, each once.

        ``listed`` has the values of :data:`LISTED_PLACEHOLDERS`. An optional item keeps its sign. With
        ``only`` those of one entry.
        """
        items: dict[str, None] = {}
        for entry in self.deterministic if only is None else (only,):
            names = _names(entry) & LISTED_PLACEHOLDERS
            rounds = [{name: value} for name in names for value in listed.get(name, ())]
            for more in rounds if names else [{}]:
                items.update(dict.fromkeys(_fitting([entry], {**values, **more})))
        return tuple(items)

    def message(self, values: Mapping[str, str], *, local: bool = False) -> str:
        """The first user message. ``values`` may lack placeholders; they become empty."""
        tools = (self.tools_local or self.tools) if local else self.tools
        rows = [(line, f"- {text}") for line in tools for text in _fitting((line,), values)]
        filled = {
            **dict.fromkeys(PLACEHOLDERS, ""),
            "tools": self.show_rows(rows),
            "dod": self.definition_of_done(),
            "orient": self.show_text(self.orient),
            "decide": self.show_text((self.decide_local or self.decide) if local else self.decide),
            **values,
        }
        message = fill(self.template, filled)
        if standing := self.standing_words():
            message = f"{message.rstrip()}\n\n{standing}\n"
        if not self.project_words:
            return message
        above = dict.fromkeys(_names(self.template) & LONG_PLACEHOLDERS, "(above)")
        words = fill(self.project_words, filled | above)
        return f"{message.rstrip()}\n\n{project_section(words, project_file(self.name))}"

    def standing_words(self) -> str:
        """Return its non-negotiables and context hints as Markdown; empty without any."""
        sections = (
            ("Non-Negotiables", self.non_negotiables),
            ("Where Things Are", self.context_hints),
        )
        return "\n\n".join(
            f"### {title}\n\n{self.show_rows(bullet_lines(lines))}"
            for title, lines in sections
            if lines
        )

    def definition_of_done(self) -> str:
        """Return its Definition of Done as a numbered list; the points of a project's file fenced."""
        return self.show_rows(number_lines(self.dod))

    def show_text(self, text: str) -> str:
        """Return one of its texts; a project's fenced."""
        return self.show_rows([(text, text)])

    def show_rows(self, rows: Iterable[tuple[str, str]]) -> str:
        """Return the texts of ``rows`` (a line of a field, its text); those of a project's file fenced."""
        return show_lines(rows, self.project_lines, project_file(self.name))


_FIELDS = {
    name: kind
    for name, kind in get_type_hints(TaskType).items()
    if name
    not in {"name", "template", "project_words", "project_lines", "project_skills", "source_layer"}
}


def project_file(name: str) -> str:
    """Return the path of a project's own file for the task type ``name``."""
    return f".cockpit/task-types/{name}.md"


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace placeholders in one pass; a value's own braces stay as they are.

    Raises ``KeyError`` for a placeholder without a value (loading has refused unknown ones).
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        return values[name] if name else match[0][0]

    return _PLACEHOLDER.sub(value_of, template)


class LoadedTaskTypes(Struct, frozen=True):
    """The task types by name, sorted, and one sentence for each file that is not used."""

    types: Mapping[str, TaskType]
    problems: tuple[str, ...] = ()


def load_task_types(project_root: Path | None, user_dir: Path | None) -> LoadedTaskTypes:
    """All task types: built-in, then ``user_dir/task-types``, then ``project_root/.cockpit/task-types``.

    Either may be None or missing. A file that cannot be read, with an unknown field, a wrong type, an
    unknown placeholder or a command of another type is left out, and is a problem: what it would have
    changed stays as the layers below have it.
    """
    return LoadedTaskTypes(
        *load_layers("task-types", project_root, user_dir, _load_built_in_types(), check_task_type)
    )


@cache
def _load_built_in_types() -> Loaded[TaskType]:
    """Load the files that are part of cockpit: once for a process, as they do not change."""
    return load_built_in("task-types", check_task_type)


def check_name(name: object, where: str = "") -> str:
    """Return the name of a task type. Raises :class:`LayeredFileInvalid` for what cannot be one."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise LayeredFileInvalid(
            f"{where}field `name` must be lower-case letters, digits and _, such as "
            f"`review_pr`; it is {name!r}."
        )
    return name


def check_task_type(entry: Traversable, layer: str, types: Mapping[str, TaskType]) -> TaskType:
    """Read one file as it would apply over ``types`` in ``layer``; nothing is changed.

    Raises ``LayeredFileInvalid``.
    """
    kind = _read(entry, layer, types)
    _refuse_shared_commands(kind, types, f"task type {entry.name} ({layer} layer)")
    return kind


def _read(entry: Traversable, layer: str, below: Mapping[str, TaskType]) -> TaskType:
    where = f"task type {entry.name} ({layer} layer)"
    front, body = read_front_matter(entry, layer, where)
    name = check_name(front.pop("name", None), f"{where}: ")
    extend = front.pop("extend", {})
    if not isinstance(extend, dict):
        raise LayeredFileInvalid(f"{where}: `extend` is not a table. Write it as [extend], last.")
    values = {field: _value(field, value, where) for field, value in front.items()}
    extended = {field: _value(field, value, where) for field, value in extend.items()}
    for texts in (values, extended):
        _refuse_odd_names(texts, where)
        if layer == "project":
            texts |= {field: _on_a_line(texts[field]) for field in _SHOWN if field in texts}
    if layer == "project" and "skills" in extended:
        raise LayeredFileInvalid(
            f"{where}: a project's file may not extend `skills`: it only leaves out more."
        )
    if layer == "project" and (
        values.get("auto_fix") or values.get("policy", NARROWEST) != NARROWEST
    ):
        # Whoever clones a repository must not inherit approvals from it.
        raise LayeredFileInvalid(
            f"{where}: a project's file may not loosen `policy` or `auto_fix`; set them in your "
            f"user configuration."
        )
    reads_only = name in below and below[name].reads_only
    expects = below[name].expects_change if name in below else False
    if (
        layer == "project"
        and expects
        and (not values.get("expects_change", True) or values.get("blank_change_counts"))
    ):
        raise LayeredFileInvalid(
            f"{where}: a {name} is done only with a change, and a project's file may not loosen that; set "
            f"`expects_change` and `blank_change_counts` in your user configuration, or give the new type a"
            f" name of its own."
        )
    if layer == "project" and reads_only and not values.get("reads_only", True):
        raise LayeredFileInvalid(
            f"{where}: {name} only reads, and a project's file may not give it actions; loosen "
            f"`reads_only` in your user configuration, or give the new type a name of its own."
        )
    if layer == "project" and "skills" in values:
        values["project_skills"] = values.pop("skills")  # it leaves out more, and brings in nothing
    start = below.get(name) or TaskType(name=name, command="/" + name.replace("_", "-"))
    if name not in below and not (values.get("dod") or extended.get("dod")):
        raise LayeredFileInvalid(f"{where}: a new task type needs `dod`, its Definition of Done.")
    try:
        lists = {key: getattr(start, key) for key in (*EXTENDABLE, *ADDED)}
        values = merge_values(lists, values, extended)
    except MergeRefused as error:
        raise LayeredFileInvalid(f"{where}: {error}") from error
    kind = replace(start, **values, source_layer=layer)
    if body.strip():
        ours = layer != "project"
        kind = replace(kind, template=body) if ours else replace(kind, project_words=body)
    if layer == "project":
        kind = replace(kind, project_lines=(*start.project_lines, *new_lines(start, kind, _SHOWN)))
    _check(kind, where)
    return kind


def _refuse_odd_names(values: Mapping[str, Any], where: str) -> None:
    """Refuse names that are judged as others than they look: they must be written plainly."""
    for field in ("command", "policy", "aliases", "deterministic"):
        value = values.get(field, ())
        for name in (value,) if isinstance(value, str) else value:
            if not is_plain(name) or (field != "deterministic" and mixes_scripts(name)):
                raise LayeredFileInvalid(
                    f"{where}: field `{field}`: {name!r} has spaces around it, invisible characters or"
                    " letters that look like others. Write it plainly."
                )


def _on_a_line(value: Any) -> Any:
    """Return a project's text, or texts, without line ends: it adds no heading of its own to a message."""
    if isinstance(value, tuple):
        return tuple(_on_a_line(text) for text in value)
    return " ".join(value.split()) if isinstance(value, str) else value


def _value(field: str, value: Any, where: str) -> Any:
    if field not in _FIELDS:
        names = ", ".join(sorted({"name", "extend", *_FIELDS}))
        raise LayeredFileInvalid(f"{where}: unknown field `{field}`. Known: {names}.")
    try:
        return convert(value, _FIELDS[field])
    except msgspec.ValidationError as error:
        raise LayeredFileInvalid(f"{where}: field `{field}`: {error}") from error


def _check(kind: TaskType, where: str) -> None:
    for command in (kind.command, *(alias for alias in kind.aliases if alias.startswith("/"))):
        if not _COMMAND.match(command):
            raise LayeredFileInvalid(
                f"{where}: field `command` or `aliases`: {command!r} is not a slash command such "
                f"as `/review-pr`."
            )
    if kind.policy and kind.policy not in POLICY_WIDTH:
        raise LayeredFileInvalid(
            f"{where}: field `policy` is {kind.policy!r}; it is one of {', '.join(POLICY_WIDTH)}."
        )
    if not all(alias.strip() for alias in kind.aliases):
        raise LayeredFileInvalid(f"{where}: field `aliases`: an alias is empty.")
    for field, texts in (
        ("template", (kind.template, kind.project_words)),
        ("tools", kind.tools),
        ("tools_local", kind.tools_local),
        ("deterministic", kind.deterministic),
    ):
        for text in texts:
            if unknown := sorted(_names(text) - PLACEHOLDERS):
                raise LayeredFileInvalid(
                    f"{where}: field `{field}`: unknown placeholder {{{unknown[0]}}}. Known: "
                    f"{', '.join(sorted(PLACEHOLDERS))}. Write {{{{ and }}}} for literal braces."
                )
    _check_scope(kind, where)


def _check_scope(kind: TaskType, where: str) -> None:
    """Refuse an entry of ``deterministic`` that is not a scope item, whatever its placeholders become."""
    for entry in kind.deterministic:
        item = entry.removeprefix(OPTIONAL)
        listed = _names(item) & LISTED_PLACEHOLDERS
        if len(listed) > 1:
            raise LayeredFileInvalid(
                f"{where}: field `deterministic`: {entry!r} names {' and '.join(sorted(listed))}; an "
                f"entry takes one of them."
            )
        try:
            parse_item(fill(item, _SAMPLES))
        except ScopeRefused as error:
            raise LayeredFileInvalid(f"{where}: field `deterministic`: {error}") from error


def _refuse_shared_commands(kind: TaskType, types: Mapping[str, TaskType], where: str) -> None:
    """Refuse a type with a command or an alias that another type has already."""
    claimed = {word.casefold() for word in (kind.command, *kind.aliases)}
    for other in types.values():
        shared = claimed & {word.casefold() for word in (other.command, *other.aliases)}
        if shared and other.name != kind.name:
            raise LayeredFileInvalid(
                f"{where}: task types {other.name} and {kind.name} both claim {min(shared)!r}; change "
                f"`command` or `aliases` of one."
            )


def _fitting(lines: Sequence[str], values: Mapping[str, str]) -> Iterator[str]:
    for line in lines:
        if all(values.get(name) for name in _names(line)):
            yield fill(line, values)


def _names(text: str) -> set[str]:
    return {match[1] for match in _PLACEHOLDER.finditer(text) if match[1]}
