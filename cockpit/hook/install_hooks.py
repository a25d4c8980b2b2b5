"""Install cockpit's hooks in an agent's settings, and remove them, without touching other hooks.

Claude Code reads ``settings.json`` (``hooks`` in it), Codex ``hooks.json``; both have the same three
levels: event, matcher group, handler. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import copy
import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from cockpit.agents.runs.agent_hooks import hook_groups
from cockpit.core.errors import CockpitError

Scope = Literal["project", "local", "user"]


class SettingsInvalid(CockpitError):
    """An agent's settings cannot be read or changed; nothing was written."""

    code = "config"


class Settings(Struct, frozen=True):
    """An agent's settings file: ``before`` is its text (None: no file), ``body`` its parsed content."""

    agent: str
    path: Path
    before: str | None
    body: Mapping[str, Any]


def place_of(agent: str, scope: Scope, root: Path, env: Mapping[str, str]) -> Path:
    """Return the file in which ``agent`` looks for hooks.

    Raises :class:`SettingsInvalid` for a scope that the agent does not have.
    """
    home = Path(env.get("HOME", "") or Path.home())
    if agent == "codex":
        if scope == "local":
            raise SettingsInvalid("Codex has no personal settings in a project; use --user.")
        own = Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else home / ".codex"
        return (own if scope == "user" else root / ".codex") / "hooks.json"
    if scope == "user":
        own = Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else home / ".claude"
        return own / "settings.json"
    name = "settings.local.json" if scope == "local" else "settings.json"
    return root / ".claude" / name


def load(agent: str, path: Path, *, inside: Path | None = None) -> Settings:
    """Read the agent's file, which must not lead out of ``inside``. Raises :class:`SettingsInvalid`."""
    real = Path(os.path.realpath(path))
    if inside is not None and not real.is_relative_to(inside.resolve()):
        raise SettingsInvalid(
            f"{path} leads out of the project, to {real}; change that file yourself."
        )
    try:
        text = real.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings(agent, real, None, {})
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{path} cannot be read: {error}.") from error
    try:
        body = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise SettingsInvalid(
            f"{path} is not JSON ({error}), so it cannot be changed safely; fix it and try again."
        ) from error
    hooks = body.get("hooks", {}) if isinstance(body, dict) else None
    sound = isinstance(hooks, dict) and all(isinstance(groups, list) for groups in hooks.values())
    if not sound:
        raise SettingsInvalid(
            f"{path}: its hooks are not written as {agent} writes them; fix them."
        )
    return Settings(agent, real, text, body)


def is_ours(handler: Any) -> bool:
    """Whether a handler runs ``cockpit hook``, from any path."""
    command = handler.get("command") if isinstance(handler, dict) else None
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return len(words) > 1 and Path(words[0]).name == "cockpit" and words[1] == "hook"


def list_installed(settings: Settings) -> list[str]:
    """List the events for which cockpit's hook is installed."""
    return [
        event
        for event, groups in settings.body.get("hooks", {}).items()
        if any(is_ours(handler) for group in groups for handler in _handlers(group))
    ]


def with_ours(
    settings: Settings,
    program: str,
    *,
    approve: bool = False,
    guard: bool = False,
    config: str = "",
) -> str:
    """Return the file's text with cockpit's hooks in it, once and as this version writes them.

    ``approve``: permissions wait for the user in an open cockpit. ``guard``: redundant reads are refused.
    ``config`` is the folder of the user's settings, where the hooks read the policy.
    """
    body = _without(settings.body)
    hooks = body.setdefault("hooks", {})
    groups_by_event = hook_groups(
        settings.agent, program, approve=approve, guard=guard, config=config
    )
    for event, groups in groups_by_event.items():
        hooks[event] = [*hooks.get(event, []), *groups]
    return _written(body, settings.before)


def without_ours(settings: Settings) -> str | None:
    """Return the file's text without cockpit's hooks.

    It is the text from before the installation where the content is the same again. None when nothing else
    is in it and no file was there before.
    """
    body = _without(settings.body)
    before = _text_before(settings.path)
    if before is not None and _parse(before) == _bare(body):
        return before
    return _written(body, settings.before) if body else None


def backup_of(path: Path) -> Path:
    """Return the path of the backup."""
    return path.with_name(f"{path.name}.before-cockpit")


def _text_before(path: Path) -> str | None:
    try:
        return backup_of(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # it was never there, or is not a copy of ours


def _parse(text: str) -> Any:
    try:
        body = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return _bare(body) if isinstance(body, dict) else None


def _bare(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``body`` without events that have no hooks."""
    rest, hooks = dict(body), body.get("hooks")
    if isinstance(hooks, dict):
        rest["hooks"] = {event: groups for event, groups in hooks.items() if groups}
    return rest if rest.get("hooks") else {key: rest[key] for key in rest if key != "hooks"}


def write(settings: Settings, text: str | None) -> Path | None:
    """Replace the file's text (None: remove it); returns the path of the backup.

    The backup is made at the first installation and removed when the file has that content again. Raises
    :class:`SettingsInvalid`, also when the file has changed since it was read.
    """
    path, backup = settings.path, backup_of(settings.path)
    try:
        now = path.read_text(encoding="utf-8") if path.exists() else None
        if now != settings.before:
            raise SettingsInvalid(f"{path} changed meanwhile; nothing was written. Try again.")
        if settings.before is not None and not list_installed(settings):
            _replace(backup, settings.before, path)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, text, path)
        if backup.exists() and backup.read_text(encoding="utf-8") == text:
            backup.unlink()
        return backup if backup.exists() else None
    except OSError as error:
        raise SettingsInvalid(f"{path} cannot be written: {error.strerror or error}.") from error


def _replace(path: Path, text: str, like: Path) -> None:
    """Write the file atomically, with the mode of ``like``."""
    mode = like.stat().st_mode & 0o777 if like.exists() else 0o644
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, mode)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _without(body: Mapping[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = copy.deepcopy(dict(body))
    hooks = copied.get("hooks")
    if not isinstance(hooks, dict):
        return copied
    for event in list(hooks):
        groups = []
        for group in hooks[event]:
            left = [handler for handler in _handlers(group) if not is_ours(handler)]
            if len(left) == len(_handlers(group)):
                groups.append(group)
            elif left:
                groups.append({**group, "hooks": left})
        if groups or not hooks[event]:
            hooks[event] = groups
        else:
            del hooks[event]
    if not hooks and body.get("hooks"):
        del copied["hooks"]
    return copied


def _handlers(group: Any) -> list[Any]:
    handlers = group.get("hooks", []) if isinstance(group, dict) else []
    return handlers if isinstance(handlers, list) else []


def _written(body: Mapping[str, Any], before: str | None) -> str:
    """Format ``body`` with the file's indentation."""
    indent: int | str = 2
    for line in (before or "").splitlines():
        space = line[: len(line) - len(line.lstrip())]
        if space:
            indent = space if "\t" in space else len(space)
            break
    return json.dumps(body, indent=indent, ensure_ascii=False) + "\n"
