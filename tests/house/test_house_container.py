"""The container file copies what the wheel is built from, and runs as an ordinary user."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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


def test_it_runs_as_a_user_of_its_own_and_holds_no_secret() -> None:
    last_stage = instructions()[[word for word, _ in instructions()].index("USER") :]
    assert last_stage[0] == ("USER", "cockpit")
    assert "RUN" not in {word for word, _ in last_stage}
    for rest in arguments("ENV"):
        assert not re.search(r"KEY|TOKEN|SECRET|PASSWORD", rest)
