"""Save the theme that the user chose on the screen in their own configuration."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cockpit.config.load_settings import ConfigInvalid
from cockpit.core.project_paths import user_folder

_SCREEN = re.compile(r"^\[screen\][^\n]*\n", re.MULTILINE)
_THEME = re.compile(r"^theme[ \t]*=[^\n]*$", re.MULTILINE)
_NEXT_TABLE = re.compile(r"^\[", re.MULTILINE)


def remember_theme(name: str, env: Mapping[str, str] = os.environ) -> None:
    """Write the theme into the user's ``config.toml``; every other line stays as it is.

    Raises :class:`ConfigInvalid` when the file cannot be written, or cannot be changed safely.
    """
    path = user_folder(env) / "config.toml"
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = with_theme(before, name)
        if _document(path, after) != _with_theme_value(_document(path, before), name):
            raise ConfigInvalid(
                f"{path} cannot be changed safely, because of how it is written. Set [screen] theme = "
                f"{json.dumps(name)} in it yourself."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".toml.new")
        draft.write_text(after, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be written: {error.strerror or error}.") from error


def with_theme(text: str, name: str) -> str:
    """Return the configuration ``text`` with ``[screen] theme`` set to ``name``."""
    line = f"theme = {json.dumps(name)}"
    table = _SCREEN.search(text)
    if table is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{'' if not text else chr(10)}[screen]\n{line}\n"
    following = _NEXT_TABLE.search(text, table.end())
    end = following.start() if following else len(text)
    body = text[table.end() : end]
    body, replaced = _THEME.subn(lambda _: line, body, count=1)
    if not replaced:
        body = f"{line}\n{body}"
    return text[: table.end()] + body + text[end:]


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"{path} is not TOML: {error}.") from error


def _with_theme_value(document: dict[str, Any], name: str) -> dict[str, Any]:
    screen = document.get("screen", {})
    return {**document, "screen": {**(screen if isinstance(screen, dict) else {}), "theme": name}}
