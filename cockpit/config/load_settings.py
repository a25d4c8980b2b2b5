"""One settings object: defaults < user file < project file < environment < flags.

The user file is ``config.toml`` in the platform's configuration folder (``COCKPIT_CONFIG_DIR``
overrides it), the project file ``.cockpit/config.toml``. Each key stands once, in
:mod:`cockpit.config.all_settings`.

A project file comes with the repository, which may be anybody's. It may tighten and never widen:
its approval policy can only be ``ask``, it cannot name an address that code would be sent to, it
cannot remap keys, and its limits can only be lower. What it may not say is an error, not ignored.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cockpit.backlog.approved_plans import COMMISSIONS
from cockpit.backlog.work_settings import HeadlessSettings, WorkSettings
from cockpit.config.all_settings import KEYS, TABLES, Key, OutOfBounds, key_of
from cockpit.core.errors import CockpitError
from cockpit.decide.model_settings import ModelSettings
from cockpit.loop.runtime_settings import (
    AdaptationLimits,
    Limits,
    ObserveLimits,
    RunnerSettings,
    RuntimeSettings,
)

LARGEST_FILE = 1_000_000
_OTHERS = ("keys", "runner")
"""Tables whose keys are the person's own words."""


class ConfigInvalid(CockpitError):
    """A setting that cannot be: the message names the file, the key and what is allowed."""

    code = "config"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. ``keys`` maps an action of the screen to the keys that run it;
    ``origins`` tells for each key that is not a default which file, variable or flag set it."""

    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    headless: HeadlessSettings = field(default_factory=HeadlessSettings)
    theme: str = "cockpit-dark"
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def user_folder(env: Mapping[str, str]) -> Path:
    """Where the person's own files are: configuration, task types, non-negotiables."""
    named = env.get("COCKPIT_CONFIG_DIR", "").strip()
    if named:
        return Path(named).expanduser()
    from platformdirs import user_config_path

    return user_config_path("cockpit", appauthor=False)


def load_settings(
    project: Path | None,
    *,
    env: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """The settings for the project whose ``.cockpit`` folder is ``project`` (None: no project).

    ``flags`` maps the full name of a key (``[limits] max_waves``) to a value; None means not given.
    Raises :class:`ConfigInvalid`.
    """
    layers = _Layers()
    user_file = user_folder(env) / "config.toml"
    layers.file(user_file, trusted=True)
    if project is not None:
        layers.file(project / "config.toml", trusted=False)
    layers.environment(env)
    layers.flags(flags or {})
    return layers.settings(env)


class _Layers:
    """The values so far, and where each came from."""

    def __init__(self) -> None:
        self._values: dict[Key, Any] = {}
        self._origins: dict[str, str] = {}
        self._keys: dict[str, tuple[str, ...]] = {}
        self._runners: dict[str, RunnerSettings] = {}

    def file(self, path: Path, *, trusted: bool) -> None:
        document = _document(path)
        for table, body in document.items():
            if table not in (*TABLES, *_OTHERS):
                raise _unknown(path, f"[{table}]", [f"[{name}]" for name in (*TABLES, *_OTHERS)])
            if not isinstance(body, dict):
                raise ConfigInvalid(f"{path}: {table} is a table; write it as [{table}].")
            if table == "keys":
                self._remap(path, body, trusted)
                continue
            if table == "runner":
                self._name_runners(path, body, trusted)
                continue
            for name, value in body.items():
                key = key_of(table, name)
                if key is None:
                    names = [known.name for known in KEYS if known.table == table]
                    raise _unknown(path, f"[{table}] {name}", names)
                read = _read(key, value, f"{path}: {key.full}")
                if not trusted:
                    self._check_project(path, key, read)
                self._set(key, read, str(path))

    def environment(self, env: Mapping[str, str]) -> None:
        for key in KEYS:
            written = env.get(key.env, "").strip()
            if written:
                read = _read(key, written, f"The variable {key.env}", written_as_text=True)
                self._set(key, read, key.env)

    def flags(self, flags: Mapping[str, object]) -> None:
        by_name = {key.full: key for key in KEYS}
        for name, value in flags.items():
            if value is not None:
                key = by_name[name]
                self._set(key, _read(key, value, f"The option for {key.full}"), "command line")

    def settings(self, env: Mapping[str, str]) -> Settings:
        names = ("", "model", "limits", "observe", "adaptation", "work", "headless")
        parts: dict[str, dict[str, Any]] = {name: {} for name in names}
        screen = {}
        for key, value in self._values.items():
            if not key.field:
                screen[key.name] = value
                continue
            part, _, name = key.field.rpartition(".")
            parts[part][name] = value
        runtime = RuntimeSettings(
            model=ModelSettings(**parts["model"]),
            limits=Limits(**parts["limits"]),
            observe=ObserveLimits(**parts["observe"]),
            adaptation=AdaptationLimits(**parts["adaptation"]),
            user_dir=user_folder(env),
            environment=dict(env),
            runners=MappingProxyType(self._runners),
            commissions=COMMISSIONS,
            **parts[""],
        )
        return Settings(
            runtime=runtime,
            work=WorkSettings(**parts["work"]),
            headless=HeadlessSettings(**parts["headless"]),
            keys=MappingProxyType(self._keys),
            origins=MappingProxyType(self._origins),
            **screen,
        )

    def _set(self, key: Key, value: Any, origin: str) -> None:
        self._values[key] = value
        self._origins[key.full] = origin

    def _check_project(self, path: Path, key: Key, value: Any) -> None:
        place = f"{path}: {key.full}"
        mine = "set it in your own configuration, the environment or a flag"
        if key.full == "[approval] policy" and value != "ask":
            raise ConfigInvalid(
                f"{place} can only be 'ask' here: a repository may not decide what is approved "
                f"without you. To use {value!r}, {mine}."
            )
        if key.full == "[model] name" and ("@" in value or value.startswith("script:")):
            raise ConfigInvalid(
                f"{place} may not hold an address or a script: a repository may not choose where "
                f"your code is sent or what a model says. If you trust it, {mine}."
            )
        if key.full == "[model] base_url":
            raise ConfigInvalid(
                f"{place} is not allowed here: a repository may not choose where your code is sent. "
                f"If you trust the address, {mine}."
            )
        if key.full == "[headless] on_session_end" and value != "off":
            raise ConfigInvalid(
                f"{place} can only be 'off' here: a repository may not decide that work goes on without "
                "you. If you want that, set it in your own configuration."
            )
        if key.full == "[log] json":
            raise ConfigInvalid(
                f"{place} is not allowed here: a repository may not choose which of your files is "
                f"written. If you want the log, {mine}."
            )
        if key.table == "adaptation" and isinstance(value, str) and value != key.default:
            raise ConfigInvalid(
                f"{place} can only be {key.default!r} here: a repository may not decide how attention "
                f"shifts without you. To use {value!r}, {mine}."
            )
        if key.project == "higher":
            before = self._values.get(key, key.default)
            if value < before:
                raise ConfigInvalid(
                    f"{place} is {value:g}, less than the {before:g} that holds without it: a "
                    f"repository may only raise it. To lower it, {mine}."
                )
        if key.project == "lower":
            before = self._values.get(key, key.default)
            if before is not None and value > before:
                raise ConfigInvalid(
                    f"{place} is {value:g}, more than the {before:g} that holds without it: a "
                    f"repository may only lower a limit. To raise it, {mine}."
                )

    def _remap(self, path: Path, body: Mapping[str, Any], trusted: bool) -> None:
        if not trusted:
            raise ConfigInvalid(
                f"{path}: [keys] is not allowed here: a repository may not change what your keys do. "
                "Put it into your own configuration."
            )
        for action, written in body.items():
            keys = [written] if isinstance(written, str) else written
            fits = isinstance(keys, list) and all(isinstance(key, str) and key for key in keys)
            if not fits:
                raise ConfigInvalid(
                    f"{path}: [keys] {action} must be a key such as 'ctrl+g', or a list of keys."
                )
            self._keys[action] = tuple(keys)
        self._origins["[keys]"] = str(path)

    def _name_runners(self, path: Path, body: Mapping[str, Any], trusted: bool) -> None:
        if not trusted:
            raise ConfigInvalid(
                f"{path}: [runner] is not allowed here: a repository may not name programs that run on "
                "your machine. Put it into your own configuration."
            )
        # What starts programs takes longer to load than all else of a configuration together.
        from cockpit.config.runners import read_runners

        try:
            self._runners |= read_runners(body)
        except OutOfBounds as error:
            raise ConfigInvalid(f"{path}: {error}.") from error
        self._origins |= {f"[runner.{name}]": str(path) for name in body}


def _document(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise ConfigInvalid(f"{path} is larger than {LARGEST_FILE} bytes; that is no setting.")
        return tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"{path} is not TOML: {error}.") from error


def _read(key: Key, value: object, place: str, *, written_as_text: bool = False) -> Any:
    try:
        return key.read(value, written_as_text=written_as_text)
    except OutOfBounds as error:
        raise ConfigInvalid(f"{place} is {_shown(value)}; {error}.") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _unknown(path: Path, name: str, known: list[str]) -> ConfigInvalid:
    near = difflib.get_close_matches(name.rpartition(" ")[2], known, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    return ConfigInvalid(
        f"{path}: there is no setting {name}.{meant} There are: {', '.join(known)}."
    )
