"""Change a setting in the user's own ``config.toml``; every other line stays as it is.

Specified in ``docs/reference/configuration.md``, changing settings.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.config.all_settings import KEYS
from cockpit.config.load_settings import ConfigInvalid, load_settings
from cockpit.config.setting import Key
from cockpit.core.project_paths import user_folder

_NEXT_TABLE = re.compile(r"^\[", re.MULTILINE)


class SettingRow(Struct, frozen=True):
    """A setting with its value."""

    key: Key
    value: Any
    """None where nothing is set and there is no default."""
    origin: str
    """The file, variable or option that set it; empty for the default."""


def list_settings(project: Path | None, env: Mapping[str, str] = os.environ) -> list[SettingRow]:
    """Return every setting as files and the environment have it now, in the order of the reference page.

    ``project`` is a project's ``.cockpit`` folder. Raises :class:`ConfigInvalid`.
    """
    settings = load_settings(project, env=env)
    return [
        SettingRow(
            key,
            settings.values.get(key.full, key.default),
            settings.origins.get(key.full, ""),
        )
        for key in KEYS
    ]


def find_setting(name: str) -> Key:
    """Return the setting that ``name`` names: ``limits.max_waves``, ``[limits] max_waves``, ``max_waves``.

    Raises :class:`ConfigInvalid` for an unknown name.
    """
    plain = name.replace("[", "").replace("]", ".").replace(" ", "")
    for key in KEYS:
        if plain in (f"{key.table}.{key.name}", key.name):
            return key
    raise ConfigInvalid(f"There is no setting {name[:80]}. `cockpit settings` lists them.")


def read_text(key: Key, text: str) -> Any:
    """Return the value that ``text`` stands for. Raises :class:`ConfigInvalid` where it is not allowed."""
    try:
        return key.read(text, written_as_text=True)
    except ValueError as error:
        raise ConfigInvalid(f"{key.full} cannot be {text[:80]!r}; {error}.") from error


def describe_value(value: Any) -> str:
    """Write a value as :func:`read_text` reads it; ``–`` for none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def change_setting(key: Key, value: Any, env: Mapping[str, str] = os.environ) -> Path:
    """Write a value into the user's ``config.toml``, None to take it out; return the file.

    Raises :class:`ConfigInvalid` when the file cannot be written, or cannot be changed safely.
    """
    path = user_folder(env) / "config.toml"
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = with_value(before, key, value)
        if _document(path, after) != _with_value(_document(path, before), key, value):
            spelled = "out of it" if value is None else f"to {_spell(value)} in it"
            raise ConfigInvalid(
                f"{path} cannot be changed safely, because of how it is written. Set {key.full}"
                f" {spelled} yourself."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".toml.new")
        draft.write_text(after, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be written: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid(f"{path} is not UTF-8 text (byte {error.start}).") from error
    return path


def remember_theme(name: str, env: Mapping[str, str] = os.environ) -> None:
    """Write the theme that the user chose on the screen. Raises :class:`ConfigInvalid`."""
    change_setting(find_setting("screen.theme"), name, env)


def with_value(text: str, key: Key, value: Any) -> str:
    """Return the configuration ``text`` with a setting at ``value``, or without it for None."""
    header = re.compile(rf"^\[{re.escape(key.table)}\][^\n]*(?:\n|\Z)", re.MULTILINE)
    entry = re.compile(rf"^{re.escape(key.name)}[ \t]*=[^\n]*(\n|\Z)", re.MULTILINE)
    line = "" if value is None else f"{key.name} = {_spell(value)}\n"
    table = header.search(text)
    if table is None:
        if value is None:
            return text
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{'' if not text else chr(10)}[{key.table}]\n{line}"
    following = _NEXT_TABLE.search(text, table.end())
    end = following.start() if following else len(text)
    body = text[table.end() : end]
    body, replaced = entry.subn(lambda _: line, body, count=1)
    if not replaced:
        body = f"{line}{body}"
    head = text[: table.end()]
    return head + ("" if head.endswith("\n") or not body else "\n") + body + text[end:]


def _spell(value: Any) -> str:
    """Write a value as TOML does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_spell, value))}]"
    return repr(value) if isinstance(value, (int, float)) else json.dumps(str(value))


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"{path} is not TOML: {error}.") from error


def _with_value(document: dict[str, Any], key: Key, value: Any) -> dict[str, Any]:
    table = document.get(key.table)
    if table is None and value is None:
        return document
    body = {**(table if isinstance(table, dict) else {})}
    if value is None:
        body.pop(key.name, None)
    else:
        body[key.name] = list(value) if isinstance(value, tuple) else value
    return {**document, key.table: body}
