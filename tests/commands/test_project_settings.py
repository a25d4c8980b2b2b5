"""What a project's file may set: each setting has a class, and none lets a repository loosen anything.

Generated from the table of settings: a new one without a class does not load, and one whose class is wrong
is written out here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from cockpit.config import load_settings as loading
from cockpit.config.all_settings import KEYS
from cockpit.config.load_settings import ConfigInvalid, load_settings
from cockpit.config.setting import Key

NEUTRAL = {"[screen] theme", "[screen] bell"}
"""Settings that protect nothing: how the screen looks."""
FILLS = {"[model] name": ("offline", "anthropic:other"), "[work] test_command": ("make", "true")}
"""Settings without an order: the user's own choice counts, and a project's where there is none."""


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
    return f"[{key.table}]\n{key.name} = {msgspec.json.encode(value).decode()}\n"


def choices(key: Key) -> list[Any]:
    """Values of a setting, lowest first: its bounds, its order, or its default and another one."""
    if key.order:
        return list(key.order)
    if key.type is bool:
        return [False, True]
    bounds = next((each for each in get_args(key.type) if isinstance(each, msgspec.Meta)), None)
    if bounds is not None and bounds.ge is not None:
        middle = key.default if key.default is not None else (bounds.ge + bounds.le) / 2
        whole = get_args(key.type)[0] is int
        values = sorted({bounds.ge, middle, bounds.le})
        return [int(value) if whole else float(value) for value in values]
    return [value for value in get_args(key.type) if isinstance(value, str)] or ["one", "two"]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.full)
def test_a_setting_has_a_class(key: Key) -> None:
    assert key.project in ("neutral", "fills", "lower", "higher", "none")
    assert (key.project == "neutral") == (key.full in NEUTRAL)
    assert (key.project == "fills") == (key.full in FILLS)
    if key.project in ("lower", "higher"):
        assert key.order or not isinstance(choices(key)[0], str), "it needs an order"
        assert set(key.order) <= set(choices(key)) or key.order


LEADS = [key for key in KEYS if key.project in ("lower", "higher")]


@pytest.mark.parametrize("key", LEADS, ids=lambda key: key.full)
def test_a_project_moves_a_limit_one_way_only(folders: tuple[Path, Path], key: Key) -> None:
    values = choices(key) if key.project == "lower" else choices(key)[::-1]
    for at, mine in enumerate(values):
        for tighter in values[: at + 1]:
            load(folders, written(key, mine), written(key, tighter))
        for looser in values[at + 1 :]:
            with pytest.raises(ConfigInvalid, match="a repository may"):
                load(folders, written(key, mine), written(key, looser))
    if key.default is not None:
        for looser in values[values.index(key.default) + 1 :]:
            with pytest.raises(ConfigInvalid, match="a repository may"):
                load(folders, "", written(key, looser))


NONE = [key for key in KEYS if key.project == "none"]


@pytest.mark.parametrize("key", NONE, ids=lambda key: key.full)
def test_a_project_sets_nothing_that_is_the_users(folders: tuple[Path, Path], key: Key) -> None:
    for value in choices(key):
        load(folders, written(key, value), "")
        if value != key.default:
            with pytest.raises(ConfigInvalid, match="a repository may"):
                load(folders, "", written(key, value))


@pytest.mark.parametrize("name", FILLS)
def test_a_project_does_not_replace_a_choice_of_the_user(
    folders: tuple[Path, Path], name: str
) -> None:
    key = next(key for key in KEYS if key.full == name)
    mine, other = FILLS[name]
    load(folders, "", written(key, other))
    load(folders, written(key, mine), written(key, mine))
    with pytest.raises(ConfigInvalid, match="may not replace your choice"):
        load(folders, written(key, mine), written(key, other))


@pytest.mark.parametrize("table", [name for name in loading._FREE_TABLES if name != "mcp"])
def test_a_project_has_no_table_of_its_own(folders: tuple[Path, Path], table: str) -> None:
    with pytest.raises(ConfigInvalid, match="is not allowed here, because a repository may"):
        load(folders, "", f"[{table}]\nx = 1\n")


SERVER = '[mcp.github]\ncommand = ["github-mcp"]\ntools = ["search", "read"]\nallow = ["search"]\n'


def test_a_project_only_tightens_servers(folders: tuple[Path, Path]) -> None:
    settings = load(folders, SERVER, '[mcp.github]\ntools = ["read", "write"]\n')
    assert settings.runtime.mcp["github"].tools == ("read",)
    settings = load(folders, SERVER, "[mcp.github]\nenabled = false\n[mcp.other]\ntools = []\n")
    assert [server.enabled for server in settings.runtime.mcp.values()] == [False]


@pytest.mark.parametrize(
    "line",
    [
        'command = ["./run"]',
        'url = "https://example.com"',
        'allow = ["read"]',
        "sandbox = false",
        "network = true",
        'env = ["TOKEN"]',
        "enabled = true",
        'reads = ["write"]',
        "timeout_s = 5",
    ],
)
def test_a_project_neither_names_nor_widens_a_server(folders: tuple[Path, Path], line: str) -> None:
    for table in ("github", "other"):
        with pytest.raises(ConfigInvalid, match="only"):
            load(folders, SERVER, f"[mcp.{table}]\n{line}\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
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
    ],
)
def test_a_server_that_cannot_be_used_is_an_error(
    folders: tuple[Path, Path], text: str, problem: str
) -> None:
    with pytest.raises(ConfigInvalid, match=problem):
        load(folders, f"[mcp.github]\n{text}\n", "")


def test_a_setting_without_a_class_does_not_load() -> None:
    with pytest.raises(TypeError, match="project"):
        Key("x", "y", field="", type=int, allowed="", default=1, env="", purpose="")  # type: ignore[call-arg]
