"""What the documents say is what the code has."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import COMMANDS
from cockpit.commands.setup.init import REFUSED, config_template
from cockpit.config.all_settings import KEYS
from cockpit.config.environment_variables import ENVIRONMENT
from cockpit.config.load_settings import load_settings
from cockpit.decide.provider_extras import EXTRAS, Extra, Installation, install_command

ROOT = Path(__file__).resolve().parents[2]


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def named(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower()


def requirements() -> list[str]:
    declared = project()["project"]
    extras = declared.get("optional-dependencies", {})
    return [*declared["dependencies"], *(name for extra in extras.values() for name in extra)]


def test_the_architecture_page_names_every_folder() -> None:
    page = document("explanation/architecture.md")
    folders = {
        str(path.parent.relative_to(ROOT))
        for path in (ROOT / "cockpit").glob("*/__init__.py")
        if path.parent.name != "data"
    }
    assert [folder for folder in sorted(folders) if f"`{folder}`" not in page] == []


def test_every_dependency_is_justified_and_pinned() -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \|", document("explanation/dependencies.md"), re.MULTILINE)
    packages = {named(requirement) for requirement in requirements()}
    others = {"package", "program", "git", "gh", "ripgrep", "bubblewrap", "notify-send"}
    assert {row for row in rows if row.strip("-")} - others == packages
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    assert packages <= set(re.findall(r"^([a-z0-9_.-]+)==", pins, re.MULTILINE))


def test_the_pins_are_exact_and_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.+]*", pin) for pin in pins)


def test_every_variable_is_documented() -> None:
    page = document("reference/configuration.md")
    assert [name for name in sorted(ENVIRONMENT) if f"`{name}`" not in page] == []


def test_defaults_are_the_ones_that_hold(tmp_path: Path) -> None:
    settings = load_settings(None, env={"COCKPIT_CONFIG_DIR": str(tmp_path)})
    assert settings.origins == {}
    assert settings.scale.backend == "local" and settings.bell
    for key in KEYS:
        if key.field in ("scale.server", "notify.to"):
            continue  # what their text says is the setting
        mine = not key.field or key.field.startswith(
            ("work.", "headless.", "retention.", "scale.", "notify.")
        )
        value: Any = settings if mine else settings.runtime
        for part in (key.field or key.name).split("."):
            value = getattr(value, part)
        assert value == key.default, key.full


def test_the_template_of_init_is_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(config_template(), encoding="utf-8")
    env = {"COCKPIT_CONFIG_DIR": str(tmp_path / "none")}
    assert load_settings(tmp_path, env=env).origins == {}
    # With every example line counting it is one still, and sets what it names.
    counting = re.sub(r"^# ([A-Za-z_]+ = )", r"\1", config_template(), flags=re.MULTILINE)
    (tmp_path / "config.toml").write_text(counting, encoding="utf-8")
    given = load_settings(tmp_path, env=env).origins
    assert set(given) == {key.full for key in KEYS} - set(REFUSED)


def test_every_generated_page_is_up_to_date() -> None:
    """They list every command with its options, every setting, key, route, tool and event."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert "reference/commands.md" in generator.PAGES
    for name in generator.PAGES:
        page = document(name)
        assert page == generator.page_text(name), f"run `make docs`: {name}"
        assert page.count(generator.MARKER) == 1


def test_what_an_ability_is_tried_with_exists() -> None:
    """Each test module that the page names (a bare name is next to the one before), and each command."""
    page = document("abilities.md")
    assert set(re.findall(r"`cockpit ([a-z][a-z-]+)", page)) <= set(COMMANDS)
    missing, folder = [], ""
    for name in re.findall(r"`((?:tests/[\w/]+/)?test_\w+\.py)`", page):
        folder = name.rpartition("/")[0] or folder
        if not (ROOT / folder / name.rpartition("/")[2]).is_file():
            missing.append(name)
    assert missing == []


def test_no_document_names_a_place_that_is_not_the_project() -> None:
    words = ("git", "ls-files", "-z", "-co", "--exclude-standard")
    names = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    files = [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]
    foreign = re.compile(rb"/wo" rb"rk/(?:main|shared)|/tmp/pl" rb"an")
    assert [str(path) for path in files if foreign.search(path.read_bytes())] == []


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_installed_with_what_the_project_declares(extra: Extra, tmp_path: Path) -> None:
    declared = project()["project"]["optional-dependencies"]
    command = install_command(extra, Installation(tmp_path, "python"))
    assert list(command[command.index("install") + 1 :]) == declared[extra]
    assert declared["all"][0] in declared["dev"]
