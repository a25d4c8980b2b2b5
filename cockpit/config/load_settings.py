"""Load the settings in layers: defaults < user file < project file < environment < options.

The user file is ``config.toml`` in the platform's configuration folder, or in ``COCKPIT_CONFIG_DIR``;
the project file is ``.cockpit/config.toml``. :mod:`cockpit.config.all_settings` lists every setting.

A project file comes with a repository from anyone, so it may tighten settings and never widen them:
its approval policy can only be ``ask``, it cannot name an address that code would be sent to, it
cannot remap keys, and its limits can only be lower. A forbidden setting is an error.

Specified in ``docs/reference/configuration.md``.
"""

from __future__ import annotations

import difflib
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from cockpit.access.notices import BELL_CHANNEL, NotifySettings, read_channels
from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.backlog.planning.backlog_plan_target import APPROVAL_EFFECTS, BacklogPlanTarget
from cockpit.backlog.work_settings import HeadlessSettings, WorkSettings
from cockpit.chains.remote.scale_settings import ScaleSettings, read_scale
from cockpit.config.all_settings import KEYS, TABLES, Key, OutOfBounds, find_key
from cockpit.core.errors import CockpitError
from cockpit.core.project.project_trust import is_trusted
from cockpit.core.project_paths import user_folder
from cockpit.core.text import is_plain
from cockpit.decide.model_settings import ModelPrice, ModelSettings
from cockpit.evolve.adoption_effect import ADOPTION_EFFECTS
from cockpit.loop.external_agent_interface import ExternalAgents
from cockpit.loop.knowledge.knowledge_settings import KnowledgeSettings
from cockpit.loop.runtime_settings import (
    Limits,
    ProfileChangeLimits,
    RunnerSettings,
    RuntimeSettings,
    WebhookRule,
)
from cockpit.observe.fan_out import ObserveLimits
from cockpit.tasks.agent_changes.change_effects import CHANGE_EFFECTS

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.sessions import Session

LARGEST_FILE = 1_000_000
_FREE_TABLES = {
    "keys": "change what your keys do",
    "runner": "name programs that run on your machine",
    "prices": "say what your models cost",
    "sandbox": "say what its programs may do",
    "mcp": "",
    "webhook": "decide what work is begun",
}
"""Tables that are no lists of settings, and what one of a repository would do; ``mcp`` only tightens."""

_FORBIDDEN = {
    "[model] base_url": "choose where your code is sent",
    "[headless] on_session_end": "start work without you",
    "[log] json": "choose which of your files is written",
    "[retention] sessions_days": "decide how long your records stay",
    "[retention] journal_days": "decide how long your records stay",
}
"""What a project's value of a setting that only the user has would do, where it is more than to decide it."""

_OPTIONS = {
    "[model] name": "--model",
    "[approval] policy": "--approve",
    "[approval] deadline_s": "--deadline",
}
"""Options of commands that are not named as their setting is."""


class ConfigInvalid(CockpitError):
    """An invalid setting; the message names the file, the setting and the allowed values."""

    code = "config"


class RetentionSettings(Struct, frozen=True):
    """``[retention]``: after how many days ``cockpit prune`` archives records; None: never."""

    sessions_days: int | None = None
    """Facts, packets and jobs of ended sessions."""
    journal_days: int | None = None
    """Rows of the journal."""


class Settings(Struct, frozen=True):
    """All settings of one process."""

    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    headless: HeadlessSettings = field(default_factory=HeadlessSettings)
    scale: ScaleSettings = field(default_factory=ScaleSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    theme: str = "cockpit-dark"
    bell: bool = True
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By action of the screen: the keys that run it."""
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """By full name of a setting that is not the default: the file, variable or option that set it."""
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """By full name likewise: its value."""


def load_settings(
    project: Path | None,
    *,
    env: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Load the settings for the project whose ``.cockpit`` folder is ``project`` (None: no project).

    ``flags`` maps the full name of a setting (``[limits] max_waves``) to the value of its command-line
    option; None means the option was not used. Raises :class:`ConfigInvalid`.
    """
    layers = _Layers()
    layers.read_file(user_folder(env) / "config.toml", trusted=True)
    if project is not None:
        layers.read_file(project / "config.toml", trusted=False)
    layers.read_environment(env)
    layers.read_flags(flags or {})
    return layers.build(env)


class _Layers:
    """The values of the layers read so far, and the origin of each."""

    def __init__(self) -> None:
        self._values: dict[Key, Any] = {}
        self._origins: dict[str, str] = {}
        self._keys: dict[str, tuple[str, ...]] = {}
        self._runners: dict[str, RunnerSettings] = {}
        self._prices: dict[str, ModelPrice] = {}
        self._sandbox: SandboxChoices | None = None
        self._servers: dict[str, McpServer] = {}
        self._webhooks: dict[str, WebhookRule] = {}
        self._policy_is_final = False

    def read_file(self, path: Path, *, trusted: bool) -> None:
        document = _document(path, trusted)
        for table, body in document.items():
            if table not in (*TABLES, *_FREE_TABLES):
                raise _unknown(
                    path, f"[{table}]", [f"[{name}]" for name in (*TABLES, *_FREE_TABLES)]
                )
            if not isinstance(body, dict):
                raise ConfigInvalid(f"{path}: {table} is a table. Write it as [{table}].")
            if table in _FREE_TABLES:
                self._read_free_table(path, table, body, trusted)
                continue
            for name, value in body.items():
                key = find_key(table, name)
                if key is None:
                    names = [each.name for each in KEYS if each.table == table]
                    raise _unknown(path, f"[{table}] {name}", names)
                checked = _read(key, value, f"{path}: [{table}] {name}")
                if not trusted:
                    self._check_project(path, key, checked)
                self._set(key, checked, str(path))
                if key.full == "[approval] policy":
                    self._policy_is_final = not trusted

    def read_environment(self, env: Mapping[str, str]) -> None:
        for key in KEYS:
            text = env.get(key.env, "").strip() if key.env else ""
            if text:
                value = _read(key, text, f"The variable {key.env}", written_as_text=True)
                self._set(key, value, key.env)

    def read_flags(self, flags: Mapping[str, object]) -> None:
        by_name = {key.full: key for key in KEYS}
        for name, value in flags.items():
            if value is not None:
                if name not in by_name:
                    raise _unknown(Path("The options"), name, list(by_name))
                key = by_name[name]
                option = _OPTIONS.get(name, f"--{key.name.replace('_', '-')}")
                self._set(key, _read(key, value, option), "command line")
                self._policy_is_final = self._policy_is_final or name == "[approval] policy"

    def build(self, env: Mapping[str, str]) -> Settings:
        parts: dict[str, dict[str, Any]] = defaultdict(dict)
        screen = {}
        for key, value in self._values.items():
            if not key.field:
                screen[key.name] = value
                continue
            part, _, name = key.field.rpartition(".")
            parts[part][name] = value
        try:
            scale = read_scale(**parts["scale"])
        except ValueError as error:
            raise ConfigInvalid(f"[scale] server: {error}.") from error
        channels = parts["notify"].get("to", (BELL_CHANNEL,))
        runtime = RuntimeSettings(
            model=ModelSettings(**parts["model"], prices=MappingProxyType(self._prices)),
            limits=Limits(**parts["limits"]),
            observe=ObserveLimits(**parts["observe"]),
            adaptation=ProfileChangeLimits(**parts["adaptation"]),
            knowledge=KnowledgeSettings(**parts["knowledge"]),
            user_dir=user_folder(env),
            environment=dict(env),
            runners=MappingProxyType(self._runners),
            sandbox=self._sandbox or SandboxChoices(),
            mcp=MappingProxyType(self._servers),
            webhooks=tuple(self._webhooks.values()),
            approval_effects={**APPROVAL_EFFECTS, **CHANGE_EFFECTS, **ADOPTION_EFFECTS},
            plan_target=BacklogPlanTarget(),
            carry_out=_carry_out_changes,
            propose_branch=_propose_branch,
            grow_tool=_grow_tool,
            external_agents=_open_external_agents,
            on_session_end=_end_task_of_session,
            policy_is_final=self._policy_is_final,
            test_command=parts["work"].get("test_command"),
            **parts[""],
        )
        return Settings(
            runtime=runtime,
            work=WorkSettings(**parts["work"]),
            headless=HeadlessSettings(**parts["headless"]),
            scale=scale,
            retention=RetentionSettings(**parts["retention"]),
            notify=read_channels(channels),
            bell=BELL_CHANNEL in channels,
            keys=MappingProxyType(self._keys),
            origins=MappingProxyType(self._origins),
            values=MappingProxyType({key.full: each for key, each in self._values.items()}),
            **screen,
        )

    def _set(self, key: Key, value: Any, origin: str) -> None:
        self._values[key] = value
        self._origins[key.full] = origin

    def _check_project(self, path: Path, key: Key, value: Any) -> None:
        place = f"{path}: {key.full}"
        override = "set it in your own configuration, the environment or an option"
        if key.full == "[approval] policy" and value != "ask":
            raise ConfigInvalid(
                f"{place} can only be 'ask' here, because a repository may not decide what is "
                f"approved without you. To use {value!r}, {override}."
            )
        texts = [value] if isinstance(value, str) else []
        if isinstance(value, (tuple, dict)):
            texts = [*value, *(value.values() if isinstance(value, dict) else ())]
        if not all(map(is_plain, texts)):
            raise ConfigInvalid(
                f"{place} is {_shorten(value)}, with spaces around it, invisible characters or letters that"
                " look like others; a repository's names are written plainly."
            )
        if key.full == "[model] name" and ("@" in value or value.casefold().startswith("script:")):
            raise ConfigInvalid(
                f"{place} may not contain an address or a script, because a repository may not choose "
                f"where your code is sent or what a model says. If you trust it, {override}."
            )
        if key.project == "none" and value != key.default:
            only = "not allowed" if key.default is None else f"only {key.default!r}"
            why = _FORBIDDEN.get(key.full, "decide it")
            raise ConfigInvalid(
                f"{place} is {only} here, because a repository may not {why}. To use {_shorten(value)}, "
                f"{override}."
            )
        before = self._values.get(key, key.default)
        if key.project == "fills" and key in self._values and value != before:
            raise ConfigInvalid(
                f"{place} is {_shorten(value)}, and you have set {_shorten(before)} yourself; a repository"
                f" may not replace your choice. To use another one here, {override}."
            )
        if before is None or key.project not in ("lower", "higher"):
            return
        order = key.rank(value), key.rank(before)
        if order[0] != order[1] and (order[0] > order[1]) == (key.project == "lower"):
            less, may, other = (
                ("more", "lower a limit", "raise")
                if key.project == "lower"
                else ("less", "raise it", "lower")
            )
            raise ConfigInvalid(
                f"{place} is {_spell(value)}, {less} than the {_spell(before)} that applies without it, and "
                f"a repository may only {may}. To {other} it, {override}."
            )

    def _read_free_table(
        self, path: Path, table: str, body: Mapping[str, Any], trusted: bool
    ) -> None:
        """Read a table that is no list of settings; what reads it is loaded only for who has one."""
        if not trusted and (why := _FREE_TABLES[table]):
            raise ConfigInvalid(
                f"{path}: [{table}] is not allowed here, because a repository may not {why}. Move it to your"
                " own configuration."
            )
        try:
            match table:
                case "keys":
                    self._keys |= _read_keys(body)
                case "runner":
                    from cockpit.config.runners import read_runners

                    self._runners |= read_runners(body)
                case "prices":
                    from cockpit.config.prices import read_prices

                    self._prices |= read_prices(body)
                case "sandbox":
                    from cockpit.config.sandbox_table import read_sandbox

                    self._sandbox = read_sandbox(body)
                case "webhook":
                    from cockpit.config.webhook_table import read_webhooks

                    self._webhooks |= read_webhooks(body)
                case _:
                    from cockpit.config.mcp_table import read_servers, tighten_servers

                    self._servers = (
                        {**self._servers, **read_servers(body)}
                        if trusted
                        else tighten_servers(self._servers, body)
                    )
        except OutOfBounds as error:
            raise ConfigInvalid(f"{path}: {error}.") from error
        if table in ("keys", "sandbox"):
            self._origins[f"[{table}]"] = str(path)
        else:
            form = '[prices."{}"]' if table == "prices" else f"[{table}.{{}}]"
            self._origins |= {form.format(name): str(path) for name in body}


def _read_keys(body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Read ``[keys]``: the keys of actions of the screen. Raises :class:`OutOfBounds`."""
    read = {}
    for action, value in body.items():
        keys = [value] if isinstance(value, str) else value
        if not (isinstance(keys, list) and all(isinstance(key, str) and key for key in keys)):
            raise OutOfBounds(f"[keys] {action} must be a key such as 'ctrl+g', or a list of keys")
        read[action] = tuple(keys)
    return read


def _document(path: Path, trusted: bool) -> dict[str, Any]:
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise ConfigInvalid(f"{path} is larger than {LARGEST_FILE:,} bytes. Make it smaller.")
        if not trusted and not is_trusted(path, data):
            return {}  # the user has not agreed to this content
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
        raise ConfigInvalid(f"{place} is {_shorten(value)}; {error}.") from error


def _spell(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _unknown(path: Path, name: str, names: list[str]) -> ConfigInvalid:
    near = difflib.get_close_matches(name.rpartition(" ")[2], names, n=1)
    suggestion = f" Did you mean {near[0]}?" if near else ""
    return ConfigInvalid(
        f"{path}: there is no setting {name}.{suggestion} The settings are: {', '.join(names)}."
    )


def _open_external_agents() -> ExternalAgents:
    from cockpit.agents.acp_client.running_agents import RunningAgents
    from cockpit.tasks.agent_changes.propose_change import propose_change
    from cockpit.tasks.worktree import choose_folder

    return RunningAgents(propose_change, choose_folder)


async def _propose_branch(engine: Any, name: str, drop: bool) -> str:
    from cockpit.tasks.agent_changes.propose_branch import propose_branch

    return await propose_branch(engine, name, drop=drop)


async def _carry_out_changes(engine: Any) -> None:
    from cockpit.evolve import propose_grown_tool
    from cockpit.tasks.agent_changes.carry_out import carry_out

    try:
        await carry_out(engine)
    finally:
        await propose_grown_tool.carry_out(engine)


async def _grow_tool(context: Any, order: Any) -> Any:
    from cockpit.evolve.grow_for_task import grow_for_task

    return await grow_for_task(context, order)


def _end_task_of_session(tx: Tx, session: Session) -> None:
    from cockpit.backlog.session_end import record_session_end

    record_session_end(tx, session)
