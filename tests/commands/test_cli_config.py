"""Settings: five layers, precise errors, and a project file that can only tighten."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.config.change_setting import (
    change_setting,
    find_setting,
    list_settings,
    read_text,
    remember_theme,
)
from cockpit.config.load_settings import ConfigInvalid, Settings, load_settings

FLAG = "[limits] max_waves"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The person's folder and the project's."""
    mine, project = tmp_path / "mine", tmp_path / "project" / ".cockpit"
    mine.mkdir()
    project.mkdir(parents=True)
    return mine, project


def load(folders: tuple[Path, Path], mine: str = "", project: str = "", **env: str) -> Settings:
    (folders[0] / "config.toml").write_text(mine, encoding="utf-8")
    (folders[1] / "config.toml").write_text(project, encoding="utf-8")
    return load_settings(folders[1], env={"COCKPIT_CONFIG_DIR": str(folders[0]), **env})


def test_each_layer_overrides_the_one_before(folders: tuple[Path, Path]) -> None:
    mine, project = folders
    env = {"COCKPIT_CONFIG_DIR": str(mine)}

    def most() -> tuple[int, str | None]:
        settings = load_settings(project, env=env, flags=flags)
        return settings.runtime.limits.max_waves, settings.origins.get(FLAG)

    flags: dict[str, object] = {FLAG: None}
    assert most() == (50, None)
    (mine / "config.toml").write_text("[limits]\nmax_waves = 40\n", encoding="utf-8")
    assert most() == (40, str(mine / "config.toml"))
    (project / "config.toml").write_text("[limits]\nmax_waves = 30\n", encoding="utf-8")
    assert most() == (30, str(project / "config.toml"))
    env["COCKPIT_MAX_WAVES"] = "60"
    assert most() == (60, "COCKPIT_MAX_WAVES")
    flags[FLAG] = 70
    assert most() == (70, "command line")


def test_files_that_are_none_are_refused(folders: tuple[Path, Path]) -> None:
    file = folders[1] / "config.toml"
    file.write_bytes(b"\xff\xfe")
    env = {"COCKPIT_CONFIG_DIR": str(folders[0])}
    with pytest.raises(ConfigInvalid, match="not UTF-8"):
        load_settings(folders[1], env=env)
    file.write_bytes(b"# " + b"x" * 1_000_001)
    with pytest.raises(ConfigInvalid, match="larger than"):
        load_settings(folders[1], env=env)
    file.unlink()
    file.symlink_to("/dev/zero")
    assert load_settings(folders[1], env=env).origins == {}


def test_a_file_that_cannot_be_changed_safely_is_left_alone(folders: tuple[Path, Path]) -> None:
    text = "screen.theme = 'day'\n"
    (folders[0] / "config.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigInvalid):
        remember_theme("night", {"COCKPIT_CONFIG_DIR": str(folders[0])})
    assert (folders[0] / "config.toml").read_text(encoding="utf-8") == text


def test_the_user_sets_what_a_model_costs(folders: tuple[Path, Path]) -> None:
    text = '[prices."openai-compatible:local"]\ninput = 2\noutput = 8\ncached_input = 0.2\n'
    price = load(folders, mine=text).runtime.model.prices["openai-compatible:local"]
    cost = price.cost(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=500_000)
    assert cost == pytest.approx(1.0 + 0.1 + 0.8)
    whole = load(folders, mine="[prices.local]\ninput = 2\noutput = 8\n").runtime.model.prices[
        "local"
    ]
    assert whole.cost(input_tokens=10, output_tokens=0, cached_tokens=20) == pytest.approx(20e-6)


def test_the_names_of_settings_in_files_and_environment(folders: tuple[Path, Path]) -> None:
    text = "[budget]\nORIENTATION_TOKEN_BUDGET = 60000\n[observe]\nMAX_FACTS_PER_WAVE = 10\n"
    settings = load(folders, mine=text, MAX_CONCURRENT_OBSERVERS="7").runtime
    assert (settings.token_budget, settings.observe.max_facts) == (60_000, 10)
    assert settings.observe.max_concurrent == 7
    settings = load(folders, mine=text, ORIENTATION_TOKEN_BUDGET="90000").runtime
    assert settings.token_budget == 90_000
    assert load(folders, COCKPIT_MAX_CHAINS="3").headless.max_chains == 3


WRONG = [
    ("[model]\ntimeout_s = nan\n", "[model] timeout_s is nan; it must be a number of seconds"),
    (
        "[work]\nmax_test_retries = 2.5\n",
        "[work] max_test_retries is 2.5; it must be a whole number",
    ),
    (
        "[work]\nmax_test_retries = '2'\n",
        "[work] max_test_retries is '2'; it must be a whole number",
    ),
    ("[limits]\nmax_waves = true\n", "[limits] max_waves is True; it must be a whole number"),
    ("[model]\ntimeot_s = 3\n", "no setting [model] timeot_s. Did you mean timeout_s?"),
    ("[limit]\n", "no setting [limit]. Did you mean [limits]?"),
    ("limits = 3\n", "limits is a table. Write it as [limits]"),
    ("[limits\n", "is not TOML"),
    ("[keys]\napprove = 3\n", "[keys] approve must be a key"),
    ("[approval]\npolicy = 'everything'\n", "one of ask, trusted, reads, all"),
    ("[observe]\nMAX_FACTS_PER_WAVE = 50001\n", "from 1 to 50000"),
    *(
        (f"[prices.local]\n{body}\n", '[prices."local"]')
        for body in ("input = 2", "input = -1\noutput = 1", 'input = "2"\noutput = 1', "x = 1")
    ),
]


def test_a_wrong_value_names_its_place_and_the_allowed_values(folders: tuple[Path, Path]) -> None:
    for text, said in WRONG:
        with pytest.raises(ConfigInvalid) as caught:
            load(folders, mine=text)
        assert str(caught.value).startswith(str(folders[0] / "config.toml")), text
        assert said in str(caught.value)
    for written in ("many", "1.5", "0", "1001", "nan", "1_0x", "²"):
        with pytest.raises(ConfigInvalid, match=r"COCKPIT_MAX_WAVES is .*from 1 to 1000"):
            load(folders, COCKPIT_MAX_WAVES=written)


def test_a_setting_is_written_read_and_taken_out_again(folders: tuple[Path, Path]) -> None:
    env = {"COCKPIT_CONFIG_DIR": str(folders[0])}
    (folders[0] / "config.toml").write_text("# mine\n[screen]\ntheme = 'day' # keep\n")
    for name, text in (
        ("limits.max_waves", "7"),
        ("[limits] max_waves", "7"),
        ("knowledge.enable_rag", "false"),
        ("model.timeout_s", "2.5"),
        ("model.name", 'openai-compatible:a"b\\'),
    ):
        key = find_setting(name)
        path = change_setting(key, read_text(key, text), env)
        (row,) = [row for row in list_settings(None, env) if row.key == key]
        assert (row.value, row.origin) == (read_text(key, text), str(path))
        assert "theme = 'day' # keep" in path.read_text(encoding="utf-8")
        change_setting(key, None, env)
        (row,) = [row for row in list_settings(None, env) if row.key == key]
        assert (row.value, row.origin) == (key.default, "")
    for name, text, says in (
        ("limits.max_waves", "many", "must be"),
        ("approval.policy", "yolo", "must be"),
        ("no.such", "1", "no setting"),
    ):
        with pytest.raises(ConfigInvalid, match=says):
            read_text(find_setting(name), text)
