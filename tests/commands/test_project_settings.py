"""What a project's file may set: each setting has a class, and none lets a repository loosen anything.

Generated from the table of settings: a new one without a class does not load, and one whose class is wrong
is written out here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from cockpit.config.all_settings import KEYS
from cockpit.config.load_settings import ConfigInvalid, load_settings
from cockpit.config.setting import NAMES, Key

NEUTRAL = {"[screen] theme"}
"""Settings that protect nothing: how the screen looks."""
FILLS = {
    "[model] name": ("offline", "anthropic:other"),
    "[work] test_command": ("make", "true"),
    "[work] setup": ("make", ["make", "true"]),
    "[work] copy": (["a"], ["b"]),
    "[work] link": (["a"], ["b"]),
    "[work] env": ({"A": "1"}, {"A": "2"}),
}
"""Settings without an order: the user's own choice counts, and a project's where there is none."""
SAMPLES: dict[str, list[Any]] = {
    "[scale] server": ["nats://one:4222/shop", "tls://two?credentials=/c&lease=5"],
    "[notify] to": [["desktop"], ["bell", "ntfy:https://example.org/topic"]],
}
"""Values of settings whose text has a form."""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    mine, project = tmp_path / "mine", tmp_path / "project" / ".cockpit"
    mine.mkdir()
    project.mkdir(parents=True)
    return mine, project


def load(folders: tuple[Path, Path], mine: str, project: str) -> Any:
    for folder, text in zip(folders, (mine, project), strict=True):
        (folder / "config.toml").write_text(text, encoding="utf-8")
    return load_settings(folders[1], env={"COCKPIT_CONFIG_DIR": str(folders[0])})


def written(key: Key, value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    if isinstance(value, dict):
        text = text.replace(":", "=")
    return f"[{key.table}]\n{key.name} = {text}\n"


def choices(key: Key) -> list[Any]:
    """Values of a setting, lowest first: its bounds, its order, or its default and another one."""
    if key.full in SAMPLES:
        return SAMPLES[key.full]
    if key.order:
        return list(key.order)
    if key.type is bool:
        return [False, True]
    if key.type is NAMES:
        return [["one"], ["two"]]
    if isinstance(key.default, tuple):
        return [["one"], ["one", "two"]]
    bounds = next((each for each in get_args(key.type) if isinstance(each, msgspec.Meta)), None)
    if bounds is not None and bounds.ge is not None:
        middle = key.default if key.default is not None else (bounds.ge + bounds.le) / 2
        whole = get_args(key.type)[0] is int
        values = sorted({bounds.ge, middle, bounds.le})
        return [int(value) if whole else float(value) for value in values]
    return [value for value in get_args(key.type) if isinstance(value, str)] or ["one", "two"]


SERVER = '[mcp.github]\ncommand = ["github-mcp"]\ntools = ["search", "read"]\nallow = ["search"]\n'


def test_a_setting_has_a_class_and_a_project_only_tightens_it(folders: tuple[Path, Path]) -> None:
    assert len({key.name for key in KEYS}) == len(KEYS), "a setting is found by its name"
    for key in KEYS:
        values = choices(key)
        assert key.project in ("neutral", "fills", "lower", "higher", "none"), key.full
        assert (key.project == "neutral") == (key.full in NEUTRAL)
        assert (key.project == "fills") == (key.full in FILLS)
        if key.project == "none":
            for value in values:
                load(folders, written(key, value), "")
                if value != key.default:
                    refuse(folders, "", written(key, value))
        if key.project in ("lower", "higher"):
            assert key.order or not isinstance(values[0], str), "it needs an order"
            values = values if key.project == "lower" else values[::-1]
            for at, mine in enumerate(values):
                for tighter in values[: at + 1]:
                    load(folders, written(key, mine), written(key, tighter))
                for looser in values[at + 1 :]:
                    refuse(folders, written(key, mine), written(key, looser))
            if key.default is not None:
                for looser in values[values.index(key.default) + 1 :]:
                    refuse(folders, "", written(key, looser))


def refuse(
    folders: tuple[Path, Path], mine: str, project: str, why: str = "a repository may"
) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        load(folders, mine, project)


def test_a_project_replaces_no_choice_and_has_no_table_of_its_own(
    folders: tuple[Path, Path],
) -> None:
    for key in KEYS:
        if key.full in FILLS:
            mine, other = FILLS[key.full]
            load(folders, "", written(key, other))
            load(folders, written(key, mine), written(key, mine))
            refuse(folders, written(key, mine), written(key, other), "may not replace your choice")
    for table in ("keys", "runner", "prices", "sandbox", "webhook"):
        refuse(folders, "", f"[{table}]\nx = 1\n", "because a repository may")


def test_a_project_only_tightens_servers(folders: tuple[Path, Path]) -> None:
    settings = load(folders, SERVER, '[mcp.github]\ntools = ["read", "write"]\n')
    assert settings.runtime.mcp["github"].tools == ("read",)
    settings = load(folders, SERVER, "[mcp.github]\nenabled = false\n[mcp.other]\ntools = []\n")
    assert [server.enabled for server in settings.runtime.mcp.values()] == [False]
    for line in (
        *('command = ["./run"]', 'url = "https://example.com"', 'allow = ["read"]'),
        *("sandbox = false", "network = true", 'env = ["TOKEN"]', "enabled = true"),
        *('reads = ["write"]', "timeout_s = 5"),
    ):
        for table in ("github", "other"):
            refuse(folders, SERVER, f"[mcp.{table}]\n{line}\n", "only")


def test_a_server_that_cannot_be_used_is_an_error(folders: tuple[Path, Path]) -> None:
    for text, problem in (
        ("", "either command or url"),
        ('command = ["x"]\nurl = "https://x.example"', "either command or url"),
        ('command = ["./x"]', "a program of the project"),
        ('url = "http://x.example"', "not encrypted"),
        ('url = "https://me:pw@x.example"', "password"),
        ('url = "file:///etc/passwd"', "https address"),
        ('command = ["x"]\nenv = ["A=b"]', "name of a variable"),
        ('command = ["x"]\ntimeout_s = 0', "Expected"),
        ('command = ["x"]\nallowed = ["y"]', "unknown field"),
        ('command = ["x"]\nread_places = ["/"]', "absolute paths"),
    ):
        refuse(folders, f"[mcp.github]\n{text}\n", "", problem)
