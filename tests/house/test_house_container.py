"""The container file: what it copies is there, what it runs is tidy, and it ends as an ordinary user."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "ENTRYPOINT"}


def instructions() -> list[tuple[str, str]]:
    """Every instruction with its arguments, continued lines joined, comments left out."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    rows = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(word, rest) for word, rest in rows]


def arguments(word: str) -> list[str]:
    return [rest for name, rest in instructions() if name == word]


def project() -> dict[str, object]:
    loaded: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return loaded


def test_every_instruction_is_one_that_builders_agree_on() -> None:
    assert {word for word, _ in instructions()} <= INSTRUCTIONS
    assert instructions()[0][0] == "FROM"
    assert instructions()[-1][0] == "ENTRYPOINT"
    assert [json.loads(rest) for rest in arguments("ENTRYPOINT")] == [["cockpit"]]
    assert [json.loads(rest) for rest in arguments("VOLUME")] == [["/state", "/config"]]


def test_the_images_below_are_versions_that_cockpit_supports() -> None:
    lowest = re.search(r">=3\.(\d+)", str(project()["project"]["requires-python"]))  # type: ignore[index]
    assert lowest is not None
    for image in arguments("FROM"):
        version = re.fullmatch(r"python:3\.(\d+)-slim(?: AS build)?", image)
        assert version is not None, image
        assert int(version[1]) >= int(lowest[1])


def test_what_is_copied_is_what_the_wheel_is_built_from() -> None:
    copied = {
        name
        for rest in arguments("COPY")
        if not rest.startswith("--from=")
        for name in rest.split()[:-1]
    }
    build = project()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]  # type: ignore[index]
    table = project()["project"]
    assert isinstance(table, dict)
    assert copied == {
        *("pyproject.toml", "constraints.txt", table["readme"]),
        *build,
        *table["license-files"],
    }
    assert all((ROOT / name).exists() for name in copied)
    for ignore in (".containerignore", ".dockerignore"):
        lines = (ROOT / ignore).read_text(encoding="utf-8").splitlines()
        assert {line[1:] for line in lines if line.startswith("!")} == copied
        assert "*" in lines and "**/__pycache__" in lines


def test_packages_leave_no_lists_and_extras_exist() -> None:
    runs = arguments("RUN")
    for run in runs:
        if "apt-get install" in run:
            assert "apt-get update" in run
            assert "--no-install-recommends" in run
            assert "rm -rf /var/lib/apt/lists/*" in run
        if "pip install" in run:
            assert "--no-cache-dir" in run and "--constraint constraints.txt" in run
    extras = re.findall(r"'\.\[([a-z,]+)\]'", " ".join(runs))
    assert extras
    declared = project()["project"]["optional-dependencies"]  # type: ignore[index]
    assert set(extras[0].split(",")) <= set(declared)


def test_it_runs_as_a_user_of_its_own_and_holds_no_secret() -> None:
    last_stage = instructions()[[word for word, _ in instructions()].index("USER") :]
    assert last_stage[0] == ("USER", "cockpit")
    assert "RUN" not in {word for word, _ in last_stage}
    for rest in arguments("ENV"):
        assert not re.search(r"KEY|TOKEN|SECRET|PASSWORD", rest)
