"""Read a ``SKILL.md``: YAML front matter between ``---`` lines, then Markdown.

Skills of other agents are read as tolerantly as those agents read them: what is odd is remarked, and only
what cannot be understood is refused. See ``docs/reference/skills.md``, layout.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cockpit.core.skills.skill import (
    LONGEST_COMPATIBILITY,
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    NAME,
    Skill,
    SkillInvalid,
)

LARGEST_FILE = 256 * 1024
"""Bytes of a ``SKILL.md``; a larger one is refused."""
_LARGEST_FRONT = 16 * 1024
_MOST_NODES = 2_000
_MOST_EXAMPLES = 20
_LONGEST_EXAMPLE = 200
_FENCE = "---"
_PLAIN_FIELD = re.compile(r"([A-Za-z][\w-]*):[ \t]+(\S.*)")
_QUOTED = "'\"[{|>&*!"
_KNOWN = frozenset(
    {
        *("name", "description", "license", "compatibility", "metadata", "allowed-tools"),
        *("keywords", "task-types", "tools", "examples"),
    }
)
"""Fields of the public layout, and ours."""
_OTHERS = frozenset(
    {
        *("argument-hint", "arguments", "user-invocable", "disable-model-invocation", "model"),
        *("effort", "context", "agent", "hooks", "paths", "shell", "version", "when_to_use"),
    }
)
"""Fields of other agents, which cockpit leaves alone or reads beside its own."""


@lru_cache(maxsize=64)
def read_skill(
    data: bytes, folder: Path, layer: str, *, files: tuple[str, ...] = (), name: str = ""
) -> Skill:
    """Read the bytes of a ``SKILL.md`` in ``folder``; ``name`` is that of the folder, where it differs.

    Raises :class:`SkillInvalid` for one that is too large, is not text, has no front matter that can be read,
    or has neither a description nor a paragraph to take its place.
    """
    folder_name = name or folder.name
    where = f"skill {folder_name} ({layer} layer)"
    if len(data) > LARGEST_FILE:
        raise SkillInvalid(f"{where}: SKILL.md is larger than {LARGEST_FILE} bytes.")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise SkillInvalid(f"{where}: SKILL.md is not UTF-8 text: {error}.") from error
    front_text, body, first_line = _split(text, where)
    remarks: list[str] = []
    front = _parse_front(front_text, where, remarks)
    metadata = _texts(front.get("metadata"))
    body = _without_controls(body, "body", remarks).strip("\n")
    description = _field(front, "description")
    extra = _field(front, "when_to_use")
    if not description:
        description = _first_paragraph(body)
        if not description:
            raise SkillInvalid(
                f"{where}: field `description` is missing: say what it does and when."
            )
        remarks.append("`description` is missing; the first paragraph takes its place.")
    description = _without_controls(
        " ".join(f"{description} {extra}".split()), "description", remarks
    )
    if len(description) > LONGEST_DESCRIPTION:
        remarks.append(f"`description` has more than {LONGEST_DESCRIPTION} characters.")
        description = description[:LONGEST_DESCRIPTION]
    compatibility = _one_line(_field(front, "compatibility"), remarks)
    if len(compatibility) > LONGEST_COMPATIBILITY:
        remarks.append(f"`compatibility` has more than {LONGEST_COMPATIBILITY} characters.")
    remarks += [
        f"field `{_one_line(str(key), [])[:40]}` is not part of the layout and is ignored."
        for key in front
        if str(key).replace("_", "-") not in _KNOWN and str(key) not in _OTHERS
    ]
    return Skill(
        name=_name(_field(front, "name"), folder_name, where, remarks),
        description=description,
        layer=layer,
        folder=folder,
        body=body,
        first_line=first_line,
        digest=hashlib.sha256(data).hexdigest(),
        keywords=_words(front, metadata, "keywords"),
        task_types=_words(front, metadata, "task-types"),
        examples=_examples(front),
        tools=_tools(front),
        license=_one_line(_field(front, "license"), remarks),
        compatibility=compatibility[:LONGEST_COMPATIBILITY],
        metadata=metadata,
        files=files,
        only_by_name=_field(front, "disable-model-invocation").lower() == "true",
        remarks=tuple(remarks),
    )


def _split(text: str, where: str) -> tuple[str, str, int]:
    """Return front matter, body and the line at which the body begins."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        raise SkillInvalid(f"{where}: SKILL.md starts with YAML front matter between `---` lines.")
    for at, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            rest = lines[at + 1 :]
            blank = next((n for n, below in enumerate(rest) if below.strip()), 0)
            return "\n".join(lines[1:at]), "\n".join(rest[blank:]), at + 2 + blank
    raise SkillInvalid(f"{where}: the front matter has no closing `---` line.")


def _parse_front(text: str, where: str, remarks: list[str]) -> Mapping[str, Any]:
    """Parse YAML into texts, lists and mappings; a value with a bare colon is read as text."""
    if len(text.encode("utf-8", "replace")) > _LARGEST_FRONT:
        raise SkillInvalid(f"{where}: the front matter is larger than {_LARGEST_FRONT} bytes.")
    try:
        front = _load_yaml(text, where)
    except ValueError as error:
        quoted = _quote_values(text)
        if quoted == text:
            raise SkillInvalid(f"{where}: the front matter is not YAML: {error}.") from error
        try:
            front = _load_yaml(quoted, where)
        except ValueError:
            raise SkillInvalid(f"{where}: the front matter is not YAML: {error}.") from error
        remarks.append("the front matter is not valid YAML; values with a colon need quotes.")
    if front is None:
        front = {}
    if not isinstance(front, dict):
        raise SkillInvalid(f"{where}: the front matter is not a list of fields.")
    return {str(key): value for key, value in front.items()}


def _load_yaml(text: str, where: str) -> Any:
    """Load YAML whose scalars are all texts: nothing is guessed to be a date or a truth value.

    Aliases are refused before anything is built: a few lines of them can stand for gigabytes. Raises
    ``ValueError`` for text that is not YAML, and :class:`SkillInvalid`.
    """
    try:
        import yaml
    except ImportError as error:
        raise SkillInvalid(
            f"{where}: the package PyYAML is missing. Install cockpit again with `make setup` or pip."
        ) from error
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        for number, event in enumerate(yaml.parse(text, Loader=loader)):
            if isinstance(event, yaml.AliasEvent):
                raise SkillInvalid(
                    f"{where}: the front matter uses YAML aliases, which are refused."
                )
            if number > _MOST_NODES:
                raise SkillInvalid(f"{where}: the front matter has too many values.")
        return yaml.load(text, Loader=loader)  # noqa: S506 - a base loader builds texts alone
    except (yaml.YAMLError, RecursionError, UnicodeError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error


def _quote_values(text: str) -> str:
    """Put the values of plain fields at the left margin between quotes."""
    lines = []
    for line in text.split("\n"):
        plain = _PLAIN_FIELD.fullmatch(line.rstrip())
        is_bare = plain is not None and plain[2][0] not in _QUOTED
        lines.append(f"{plain[1]}: {json.dumps(plain[2])}" if plain and is_bare else line)
    return "\n".join(lines)


def _field(front: Mapping[str, Any], key: str) -> str:
    value = front.get(key, front.get(key.replace("-", "_")))
    return value.strip() if isinstance(value, str) else ""


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    pairs = {str(key): each for key, each in value.items()}
    return {
        key: ", ".join(map(str, each)) if isinstance(each, list) else each
        for key, each in pairs.items()
        if isinstance(each, str | list)
    }


def _words(front: Mapping[str, Any], metadata: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Return a list of words, given as a list or with commas, at the top or among the metadata."""
    value: Any = front.get(key, front.get(key.replace("-", "_")))
    if value is None:
        value = metadata.get(key, metadata.get(key.replace("-", "_"), ""))
    parts = value if isinstance(value, list) else str(value).split(",")
    words = (" ".join(_clean(str(part)).split()) for part in parts)
    return tuple(dict.fromkeys(word for word in words if word))[:100]


def _examples(front: Mapping[str, Any]) -> tuple[str, ...]:
    """Return requests that it is for: a list, or a text with bars between, at the top or in the metadata."""
    metadata = front.get("metadata")
    inner = metadata.get("examples", "") if isinstance(metadata, dict) else ""
    value = front.get("examples", inner)
    parts = value if isinstance(value, list) else str(value).split("|")
    texts = (" ".join(_clean(str(part)).split())[:_LONGEST_EXAMPLE] for part in parts)
    return tuple(dict.fromkeys(text for text in texts if text))[:_MOST_EXAMPLES]


def _tools(front: Mapping[str, Any]) -> tuple[str, ...]:
    """Return ``allowed-tools`` and ``tools``: lists, or texts with commas or spaces outside parentheses."""
    names: list[str] = []
    for key in ("allowed-tools", "tools"):
        value = front.get(key, front.get(key.replace("-", "_"), ""))
        if isinstance(value, list):
            names += [str(part) for part in value]
        elif isinstance(value, str):
            names += re.findall(r"[^\s,(]+(?:\([^)]*\))?", value)
    return tuple(dict.fromkeys(_clean(name).strip() for name in names if name.strip()))[:100]


def _name(written: str, folder_name: str, where: str, remarks: list[str]) -> str:
    """Return the skill's name: as it is written, or the folder's where that cannot be used."""
    if written and written == folder_name and _is_name(written):
        return written
    for text in (written, folder_name):
        spelled = re.sub(r"[\s_]+", "-", text.strip()).lower()
        if not _is_name(spelled):
            continue
        if not written:
            remarks.append("`name` is missing; the folder's name takes its place.")
        elif spelled != written:
            remarks.append(
                f"`name` is read as {spelled}: it is lower-case letters, digits and hyphens."
            )
        elif spelled != folder_name:
            remarks.append(f"`name` is {spelled}, and its folder {_clean(folder_name)[:64]}.")
        return spelled
    raise SkillInvalid(
        f"{where}: field `name` must be lower-case letters, digits and single hyphens, at most"
        f" {LONGEST_NAME} characters."
    )


def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and NAME.fullmatch(text) is not None


def _first_paragraph(body: str) -> str:
    for paragraph in re.split(r"\n\s*\n", body):
        lines = [line for line in paragraph.splitlines() if not line.startswith(("#", "```", "|"))]
        if text := " ".join(" ".join(lines).split()):
            return text
    return ""


def _one_line(text: str, remarks: list[str]) -> str:
    return _without_controls(" ".join(text.split()), "front matter", remarks)


def _without_controls(text: str, place: str, remarks: list[str]) -> str:
    clean = _clean(text)
    if clean != text:
        remarks.append(f"invisible or control characters were removed from the {place}.")
    return clean


def _clean(text: str) -> str:
    """Return the text without control characters and without those that hide or turn others."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text  # what is printable is of none of these categories
    return "".join(
        letter
        for letter in text
        if letter in "\n\t\u200d"
        or unicodedata.category(letter) not in ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp")
    )
