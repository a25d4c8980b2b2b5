from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.decide.choose_model import DEFAULT_MODELS, ModelSettings, choose_model
from cockpit.decide.model import ModelError

NONE = ModelSettings()
SCENARIO = '[[turn]]\ntext = "hello"\n'


def named(spec: str | None, config: ModelSettings = NONE, **env: str) -> str:
    return choose_model(spec, config=config, env=env).name


def refused(spec: str | None, config: ModelSettings = NONE, **env: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        choose_model(spec, config=config, env=env)
    return caught.value


def test_the_name_given_wins_over_settings_and_keys(tmp_path: Path) -> None:
    script = tmp_path / "s.toml"
    script.write_text(SCENARIO)
    config = ModelSettings(model="openai:gpt-x")
    assert named(f"script:{script}", config, OPENAI_API_KEY="k") == f"script:{script}"
    assert named(None, config, ANTHROPIC_API_KEY="a", OPENAI_API_KEY="o") == "openai:gpt-x"


@pytest.mark.parametrize(
    ("env", "vendor"),
    [
        ({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, "anthropic"),
        ({"ANTHROPIC_API_KEY": "  ", "OPENAI_API_KEY": "o"}, "openai"),
    ],
)
def test_without_a_name_the_key_that_is_set_decides(env: dict[str, str], vendor: str) -> None:
    model = DEFAULT_MODELS["anthropic" if vendor == "anthropic" else "openai"]
    assert named(None, **env) == f"{vendor}:{model}"
    assert named(vendor, **env) == f"{vendor}:{model}"


def test_a_compatible_address_comes_from_the_name_then_settings_then_environment() -> None:
    written = "openai-compatible:qwen2.5:7b@http://10.0.0.2:8000/v1"
    assert named(written) == written
    config = ModelSettings(base_url="http://settings/v1")
    for spec, given, env, url in (
        (written, config, {}, "http://10.0.0.2:8000/v1"),
        ("openai-compatible:q", config, {"COCKPIT_BASE_URL": "http://env/v1"}, "settings"),
        ("openai-compatible:q", NONE, {"COCKPIT_BASE_URL": "http://env/v1"}, "http://env/v1"),
        ("openai-compatible:q", NONE, {"OPENAI_BASE_URL": "http://oai/v1"}, "http://oai/v1"),
    ):
        model = choose_model(spec, config=given, env=env)
        assert url in repr(vars(model))


def test_the_openai_key_goes_only_to_the_address_paired_with_it() -> None:
    key = "sk-canary"
    for env, variable in (
        ({"OPENAI_BASE_URL": "http://oai/v1", "OPENAI_API_KEY": key}, "OPENAI_API_KEY"),
        ({"COCKPIT_BASE_URL": "http://own/v1", "OPENAI_API_KEY": key}, "COCKPIT_API_KEY"),
    ):
        model = choose_model("openai-compatible:q", config=NONE, env=env)
        assert f"key_variable='{variable}'" in repr(vars(model))


def test_a_key_is_in_no_representation() -> None:
    model = choose_model("anthropic", config=NONE, env={"ANTHROPIC_API_KEY": "sk-canary"})
    assert "canary" not in repr(model) + repr(vars(model))


@pytest.mark.parametrize(
    "spec", ["gpt-4", "claude:x", "openai-compatible:", "script:", "offline:x", "script", "@"]
)
def test_an_unknown_name_is_answered_with_the_accepted_ones(spec: str) -> None:
    error = refused(spec)
    assert error.code == "config"
    for form in ("anthropic:NAME", "openai-compatible:NAME@http", "offline", "script:FILE"):
        assert form in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "https://", "http://user:secret@host/v1", "http://host:0/v1", "http://host:99999/v1",
        "http://host/v1?key=1", "http://ho st/v1",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_is_refused(url: str) -> None:
    error = refused(f"openai-compatible:m@{url}")
    assert error.code == "config"
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("spec", "config", "env", "code", "words"),
    [
        ("openai:gpt-x", NONE, {"OPENAI_API_KEY": " "}, "auth", "OPENAI_API_KEY"),
        ("anthropic:x", NONE, {"ANTHROPIC_API_KEY": "sk-canary\nX-Evil: 1"}, "auth", "ANTHROPIC"),
        ("openai-compatible:m", ModelSettings(base_url="ftp://x"), {}, "config", "[model] base_url"),
        ("openai-compatible:m", NONE, {}, "config", "COCKPIT_BASE_URL"),
    ],
)  # fmt: skip
def test_what_is_missing_or_wrong_is_named_without_the_key(
    spec: str, config: ModelSettings, env: dict[str, str], code: str, words: str
) -> None:
    error = refused(spec, config, **env)
    assert (error.code, words in str(error)) == (code, True), error
    assert "canary" not in str(error)
