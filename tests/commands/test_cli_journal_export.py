"""An export has its digests: it verifies without its store, and what was changed in it is told."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from chains.chain_world import Chains

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Chains, list[str]]:
    world = Chains.made(tmp_path_factory.mktemp("exported"), 2)
    return world, world.project.run("journal", "--all", "--json").stdout.splitlines()


def verdict(world: Chains, lines: list[str], expect: int = 0) -> dict[str, object]:
    """What `debug journal --export -` says of these lines."""
    told = world.project.run(
        "debug",
        "journal",
        "--export",
        "-",
        "--json",
        stdin="\n".join(lines),
        expect=expect,
    )
    answer: dict[str, object] = json.loads(told.stdout)
    return answer


def changes(lines: list[str]) -> dict[str, list[str]]:
    chance = random.Random(7)
    at = chance.randrange(1, len(lines) - 1)

    def edited(place: int, **fields: object) -> list[str]:
        body = json.loads(lines[place]) | fields
        return [*lines[:place], json.dumps(body), *lines[place + 1 :]]

    return {
        "a detail": edited(at, detail={"task_id": "T-9"}),
        "an actor": edited(at, actor="nobody"),
        "a row less": [*lines[:at], *lines[at + 1 :]],
        "the first row": lines[1:],
        "a row twice": [*lines[:at], lines[at], *lines[at:]],
        "two swapped": [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]],
        "no JSON": [*lines[:at], "nothing", *lines[at:]],
        "no row": [*lines[:at], "{}", *lines[at:]],
    }


def test_whatever_was_changed_in_an_export_is_told(exported) -> None:
    world, lines = exported
    for name, changed in changes(lines).items():
        told = verdict(world, changed, expect=1)
        assert told["ok"] is False, name
        assert told["why"], name


def test_an_export_of_a_pruned_journal_verifies(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 2)
    world.project.run("prune", "--older-than", "2999-01-01", "--journal")
    world.project.run("tasks", "add", "Later")
    lines = world.project.run("journal", "--all", "--json").stdout.splitlines()
    assert any("journal.pruned" in line for line in lines)
    told = verdict(world, lines)
    assert (told["ok"], told["store"]) == (True, "")
    at = next(place for place, line in enumerate(lines) if "journal.pruned" in line)
    assert verdict(world, [*lines[:at], *lines[at + 1 :]], expect=1)["ok"] is False


def test_an_export_verifies_here_and_elsewhere(exported, tmp_path: Path) -> None:
    world, lines = exported
    rows = [json.loads(line) for line in lines]
    told = verdict(world, lines)
    assert (told["ok"], told["rows"]) == (True, len(rows))
    assert (told["last"], told["digest"]) == (rows[-1]["seq"], rows[-1]["digest"])
    assert told["store"] == ""
    cut = verdict(world, lines[:-3])
    assert (cut["ok"], cut["last"]) == (True, rows[-4]["seq"]), "a cut export names its end"
    file = tmp_path / "journal.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    other = Chains.made(tmp_path / "other", 1)
    text = other.project.run("debug", "journal", "--export", str(file)).stdout
    assert f"ok: {len(lines)} rows to row" in text and "store: " in text
